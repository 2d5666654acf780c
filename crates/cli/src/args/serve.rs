//! Arguments of `rutter serve`, `rutter mcp` and `rutter stop`.

use super::DatabaseArgs;
use super::run::ToolSourceArgs;
use clap::Args as Options;
use rutter_app::principal::McpToolset;
use std::net::SocketAddr;

#[derive(Debug, Options)]
pub(crate) struct ServeArgs {
    /// The address to listen on for HTTP [default: `server.listen` in rutter.toml, or 127.0.0.1:7411]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Listen only on the socket beside the database
    #[arg(long, conflicts_with = "listen")]
    pub(crate) no_http: bool,
    /// Detach from the terminal, and print nothing
    #[arg(long, hide = true)]
    pub(crate) background: bool,
    /// Stop after this many seconds without connections and open executions
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle: Option<u64>,
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct McpCommandArgs {
    /// The tools to offer: default, journal or admin; may be given several times
    #[arg(long = "toolset", value_name = "SET", default_value = "default", value_delimiter = ',')]
    pub(crate) toolsets: Vec<McpToolset>,
    /// Open the database in this process instead of connecting to a server; executions stop when the agent quits
    #[arg(long)]
    pub(crate) embedded: bool,
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct StopServerArgs {
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}
