//! Arguments of `rutter journal`.

use super::{DatabaseArgs, EXIT_CODES, TenantArgs};
use clap::{Args as Options, Subcommand, ValueEnum};
use rutter_core::journal::verify::Assurance;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// Verify that no entry was changed, inserted, removed or reordered, and print the level of assurance
    #[command(after_help = EXIT_CODES)]
    Verify(JournalVerifyArgs),
    /// Export journals, one JSON object per line, with everything needed to verify them
    #[command(after_help = EXIT_CODES)]
    Export(JournalExportArgs),
    /// Print the newest signed checkpoint, to store elsewhere and pass to `verify --checkpoint` later
    #[command(after_help = EXIT_CODES)]
    Checkpoint(JournalCheckpointArgs),
    /// Print a receipt that proves an entry, to pass to `verify --receipt` later
    #[command(after_help = EXIT_CODES)]
    Receipt(JournalReceiptArgs),
    /// Print the public key that checkpoints are signed with, to pass to `verify --key`
    #[command(after_help = EXIT_CODES)]
    Key(JournalKeyArgs),
    /// Print the journal of an execution, entry by entry
    #[command(after_help = EXIT_CODES)]
    Show(JournalShowArgs),
    /// Print the latest entries of all executions
    #[command(after_help = EXIT_CODES)]
    Tail(JournalTailArgs),
    /// Erase parameters, results and evidence of an execution; everything else can still be verified
    #[command(after_help = EXIT_CODES)]
    Erase(JournalEraseArgs),
}

#[derive(Debug, Options)]
pub(crate) struct JournalVerifyArgs {
    /// Verify this export instead of a database; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dir", "config", "projections", "tenant"])]
    pub(crate) export: Option<PathBuf>,
    /// A public key to trust, or a file with one [default: for a database, the key beside it]
    #[arg(long = "key", value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// A signed checkpoint that was stored elsewhere
    #[arg(long = "checkpoint", value_name = "FILE")]
    pub(crate) checkpoints: Vec<PathBuf>,
    /// A receipt that was stored elsewhere
    #[arg(long = "receipt", value_name = "FILE")]
    pub(crate) receipts: Vec<PathBuf>,
    /// Also replay every execution, and compare with its stored state
    #[arg(long)]
    pub(crate) projections: bool,
    /// The assurance required: v0 is consistent in itself, v1 is signed by a trusted key, v2 was compared with
    /// a checkpoint or receipt stored elsewhere
    #[arg(long, value_enum, default_value_t = AssuranceLevel::V0, value_name = "LEVEL", hide_possible_values = true)]
    pub(crate) require: AssuranceLevel,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AssuranceLevel {
    V0,
    V1,
    V2,
}

impl From<AssuranceLevel> for Assurance {
    fn from(level: AssuranceLevel) -> Assurance {
        match level {
            AssuranceLevel::V0 => Assurance::ChainOnly,
            AssuranceLevel::V1 => Assurance::Signed,
            AssuranceLevel::V2 => Assurance::Compared,
        }
    }
}

#[derive(Debug, Options)]
pub(crate) struct JournalExportArgs {
    /// Only this execution, with proofs that it is in the ledger; may be repeated [default: the whole ledger]
    #[arg(long = "execution", value_name = "ID")]
    pub(crate) executions: Vec<String>,
    #[command(flatten)]
    pub(crate) out: OutputArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

/// Where the output goes.
#[derive(Debug, Options)]
pub(crate) struct OutputArgs {
    /// Write to this file, completely or not at all [default: stdout]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

#[derive(Debug, Options)]
pub(crate) struct JournalCheckpointArgs {
    #[command(flatten)]
    pub(crate) out: OutputArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct JournalReceiptArgs {
    /// The execution; `ledger` is the ledger's own journal
    #[arg(value_name = "EXECUTION")]
    pub(crate) execution: String,
    /// The entry [default: the last one]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seq: Option<u64>,
    #[command(flatten)]
    pub(crate) out: OutputArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct JournalKeyArgs {
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct JournalShowArgs {
    /// The execution; `ledger` is the ledger's own journal
    #[arg(value_name = "EXECUTION")]
    pub(crate) execution: String,
    /// Print parameters, results and evidence, not only their sizes
    #[arg(long)]
    pub(crate) payloads: bool,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct JournalTailArgs {
    /// The number of entries
    #[arg(short = 'n', long, default_value_t = 20, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) count: u32,
    /// Only events of this type, such as attempt_failed; may be repeated
    #[arg(long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Only entries by this actor: `rutter`, `agent NAME`, or the name of a person
    #[arg(long, value_name = "ACTOR")]
    pub(crate) actor: Option<String>,
    /// Continue with new entries, until interrupted
    #[arg(long)]
    pub(crate) follow: bool,
    /// Print parameters, results and evidence, not only their sizes
    #[arg(long)]
    pub(crate) payloads: bool,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct JournalEraseArgs {
    #[arg(value_name = "EXECUTION")]
    pub(crate) execution: String,
    /// Only the payloads of this entry; may be repeated [default: those of all its entries]
    #[arg(long = "seq", value_name = "NUMBER")]
    pub(crate) entries: Vec<u64>,
    /// The reason, for the ledger's own journal
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}
