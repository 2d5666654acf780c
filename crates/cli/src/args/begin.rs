//! Arguments of `rutter init`, `rutter doctor`, `rutter config` and `rutter man`.

use super::run::ToolSourceArgs;
use super::{DatabaseArgs, EXIT_CODES};
use clap::{Args as Options, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Options)]
pub(crate) struct InitArgs {
    /// The directory of your project
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Import MCP servers from these files instead of searching for them; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "no_import")]
    pub(crate) import: Vec<PathBuf>,
    /// Import no MCP servers
    #[arg(long)]
    pub(crate) no_import: bool,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Options)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the effective settings; credentials only as references
    #[command(after_help = EXIT_CODES)]
    Show(ConfigShowArgs),
    /// Read all settings and check that they are consistent; nothing is started
    #[command(after_help = EXIT_CODES)]
    Check(ConfigCheckArgs),
}

#[derive(Debug, Options)]
pub(crate) struct ConfigShowArgs {
    /// Print where each value comes from: flag, variable, file with line, or default
    #[arg(long)]
    pub(crate) origin: bool,
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ConfigCheckArgs {
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ManualArgs {
    /// The command to print the page of, such as `plan check` [default: rutter itself]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) dir: Option<PathBuf>,
    /// Print all commands as one Markdown document
    #[arg(long, conflicts_with_all = ["command", "dir"])]
    pub(crate) markdown: bool,
    /// Print one JSON object instead of a page
    #[arg(long)]
    pub(crate) json: bool,
}
