//! What was typed after `rutter serve`, `rutter mcp` and `rutter stop`.

use super::StoreArgs;
use super::run::ToolArgs;
use clap::Args as Options;
use rutter_server::guest::Toolset;
use std::net::SocketAddr;

#[derive(Debug, Options)]
pub(crate) struct ServeArgs {
    /// Where to listen for HTTP [default: `server.listen` in rutter.toml, or 127.0.0.1:7411]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Only the socket beside the database
    #[arg(long, conflicts_with = "listen")]
    pub(crate) no_http: bool,
    /// Leave the terminal to others, and say nothing
    #[arg(long, hide = true)]
    pub(crate) background: bool,
    /// End when nobody needs it for so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle: Option<u64>,
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct McpArgs {
    /// The tools to offer: default, journal or admin; may be given several times
    #[arg(long = "toolset", value_name = "SET", default_value = "default", value_delimiter = ',')]
    pub(crate) toolsets: Vec<Toolset>,
    /// Have the database in this process instead of coming to a server; executions stop when the agent quits
    #[arg(long)]
    pub(crate) embedded: bool,
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
