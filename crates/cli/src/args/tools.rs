//! Arguments of `rutter tools`.

use super::DatabaseArgs;
use super::run::ToolSourceArgs;
use clap::{Args as Options, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools of all servers, or those that match some words
    List(ToolsListArgs),
    /// Show everything about a tool: parameters, result, and how safely it can be repeated
    Show(ToolsShowArgs),
    /// Call a tool once, outside of any plan, if the operator's policy allows it; only its refusal is journaled
    Call(ToolsCallArgs),
    /// Convert another program's list of MCP servers to settings for rutter.toml
    Import(ToolsImportArgs),
    /// Start every server, and report what works, what does not and how to fix it
    Doctor(ToolsDoctorArgs),
}

#[derive(Debug, Options)]
pub(crate) struct ToolsListArgs {
    /// Words to search for in names and descriptions
    pub(crate) words: Vec<String>,
    /// At most this many matches
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    pub(crate) count: usize,
    #[command(flatten)]
    pub(crate) common: ToolsCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ToolsShowArgs {
    /// `server.tool`
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) common: ToolsCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ToolsCallArgs {
    /// `server.tool`
    pub(crate) tool: String,
    /// The parameters, as a JSON object
    #[arg(default_value = "{}")]
    pub(crate) parameters: String,
    /// The timeout in seconds
    #[arg(long, default_value_t = 60, value_name = "N")]
    pub(crate) timeout: u64,
    #[command(flatten)]
    pub(crate) common: ToolsCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ToolsImportArgs {
    /// A file with `mcpServers` or `servers`
    pub(crate) file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Options)]
pub(crate) struct ToolsDoctorArgs {
    #[command(flatten)]
    pub(crate) common: ToolsCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ToolsCommonArgs {
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}
