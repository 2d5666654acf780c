//! What was typed after `rutter tools`.

use super::StoreArgs;
use super::run::ToolArgs;
use clap::{Args as Options, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools of all servers, or those that fit some words
    List(ToolsListArgs),
    /// Tell everything about one tool: what it takes and gives, how safely it can be repeated and why
    Show(ToolsShowArgs),
    /// Call a tool once, outside of any plan; nothing is recorded
    Call(ToolsCallArgs),
    /// Read another program's list of MCP servers, and print it as settings for rutter.toml
    Import(ToolsImportArgs),
    /// Start every server and say what works, what does not and what to do about it
    Doctor(ToolsDoctorArgs),
}

#[derive(Debug, Options)]
pub(crate) struct ToolsListArgs {
    /// Words to look for in names and descriptions
    pub(crate) words: Vec<String>,
    /// At most so many when words are looked for
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    pub(crate) count: usize,
    #[command(flatten)]
    pub(crate) common: ToolsArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ToolsShowArgs {
    /// `server.tool`
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) common: ToolsArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ToolsCallArgs {
    /// `server.tool`
    pub(crate) tool: String,
    /// The parameters, as a JSON object
    #[arg(default_value = "{}")]
    pub(crate) parameters: String,
    /// Seconds to wait
    #[arg(long, default_value_t = 60, value_name = "N")]
    pub(crate) timeout: u64,
    #[command(flatten)]
    pub(crate) common: ToolsArgs,
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
    pub(crate) common: ToolsArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

impl ToolsCommand {
    pub(crate) fn is_json(&self) -> bool {
        match self {
            ToolsCommand::List(args) => args.common.store.json,
            ToolsCommand::Show(args) => args.common.store.json,
            ToolsCommand::Call(args) => args.common.store.json,
            ToolsCommand::Import(args) => args.json,
            ToolsCommand::Doctor(args) => args.common.store.json,
        }
    }
}
