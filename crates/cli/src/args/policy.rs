//! Arguments of `rutter policy`.

use super::{DatabaseArgs, EXIT_CODES};
use clap::{Args as Options, Subcommand, ValueEnum};
use rutter_core::tool::Safety;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Print the rules as they are understood, or explain them for a call or for the steps of a plan
    #[command(after_help = EXIT_CODES)]
    Check(PolicyCheckArgs),
}

#[derive(Debug, Options)]
pub(crate) struct PolicyCheckArgs {
    /// Settings to read (TOML), or a plan (YAML or JSON) to explain the rules for [default: the settings in effect]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Explain for a call of this tool which rules match and why; nothing is called
    #[arg(long, value_name = "TOOL")]
    pub(crate) call: Option<String>,
    /// The parameters of the call, as a JSON object [default: {}]
    #[arg(long, value_name = "JSON", requires = "call")]
    pub(crate) parameters: Option<String>,
    /// How safely the plan lets the tool be repeated; it can only be stricter than the tool [default: the tool's own]
    #[arg(long, value_enum, value_name = "SAFETY", requires = "call")]
    pub(crate) safety: Option<SafetyValue>,
    /// Who opens the execution: `agent:NAME` or `person:NAME` [default: for a call the user, for a plan anyone]
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
    /// The tenant [default: for a call `default`, for a plan any]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SafetyValue {
    ReadOnly,
    Idempotent,
    Once,
}

impl From<SafetyValue> for Safety {
    fn from(safety: SafetyValue) -> Safety {
        match safety {
            SafetyValue::ReadOnly => Safety::ReadOnly,
            SafetyValue::Idempotent => Safety::Idempotent,
            SafetyValue::Once => Safety::Once,
        }
    }
}
