//! What was typed after `rutter journal`.

use super::{EXIT_CODES, StoreArgs, TenantArgs};
use clap::{Args as Options, Subcommand, ValueEnum};
use rutter_core::journal::verify::Assurance;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// Check that nothing was changed, inserted, removed or reordered, and say how sure that is
    #[command(after_help = EXIT_CODES)]
    Verify(VerifyArgs),
    /// Write journals for somebody else, one JSON object per line, with all that is needed to verify them
    #[command(after_help = EXIT_CODES)]
    Export(ExportArgs),
    /// Print the newest signed checkpoint, to be kept elsewhere and given to `verify --checkpoint` later
    #[command(after_help = EXIT_CODES)]
    Checkpoint(CheckpointArgs),
    /// Print what shows later that an entry was there, to be given to `verify --receipt`
    #[command(after_help = EXIT_CODES)]
    Receipt(ReceiptArgs),
    /// Print the public key that checkpoints are signed with, to be given to `verify --key`
    #[command(after_help = EXIT_CODES)]
    Key(KeyArgs),
    /// Tell what happened in an execution, entry by entry
    #[command(after_help = EXIT_CODES)]
    Show(ShowArgs),
    /// Tell what happened last, in all executions
    #[command(after_help = EXIT_CODES)]
    Tail(TailArgs),
    /// Erase parameters, results and evidence of an execution; the proof of everything else stays whole
    #[command(after_help = EXIT_CODES)]
    Erase(EraseArgs),
}

#[derive(Debug, Options)]
pub(crate) struct VerifyArgs {
    /// Check this export and no database; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dir", "config", "projections", "tenant"])]
    pub(crate) export: Option<PathBuf>,
    /// A public key to trust, or a file with one [default: for a database, the key beside it]
    #[arg(long = "key", value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// A signed checkpoint that was kept elsewhere
    #[arg(long = "checkpoint", value_name = "FILE")]
    pub(crate) checkpoints: Vec<PathBuf>,
    /// A receipt that was kept elsewhere
    #[arg(long = "receipt", value_name = "FILE")]
    pub(crate) receipts: Vec<PathBuf>,
    /// Replay every execution too, and compare with what the database says about it
    #[arg(long)]
    pub(crate) projections: bool,
    /// How sure the answer must be: v0 agrees with itself, v1 is signed by a trusted key, v2 was compared with
    /// something kept elsewhere
    #[arg(long, value_enum, default_value_t = Level::V0, value_name = "LEVEL", hide_possible_values = true)]
    pub(crate) require: Level,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Level {
    V0,
    V1,
    V2,
}

impl From<Level> for Assurance {
    fn from(level: Level) -> Assurance {
        match level {
            Level::V0 => Assurance::ChainOnly,
            Level::V1 => Assurance::Signed,
            Level::V2 => Assurance::Compared,
        }
    }
}

#[derive(Debug, Options)]
pub(crate) struct ExportArgs {
    /// Only this execution, with proofs that it is in the ledger; may be repeated [default: the whole ledger]
    #[arg(long = "execution", value_name = "ID")]
    pub(crate) executions: Vec<String>,
    #[command(flatten)]
    pub(crate) out: OutArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Where an answer goes.
#[derive(Debug, Options)]
pub(crate) struct OutArgs {
    /// Write to this file, which is there whole or not at all [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

#[derive(Debug, Options)]
pub(crate) struct CheckpointArgs {
    #[command(flatten)]
    pub(crate) out: OutArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ReceiptArgs {
    /// The execution; `ledger` is the ledger's own journal
    #[arg(value_name = "EXECUTION")]
    pub(crate) execution: String,
    /// The entry [default: the last one]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seq: Option<u64>,
    #[command(flatten)]
    pub(crate) out: OutArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct KeyArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ShowArgs {
    /// The execution; `ledger` is the ledger's own journal
    #[arg(value_name = "EXECUTION")]
    pub(crate) execution: String,
    /// Print parameters, results and evidence, not only how large they are
    #[arg(long)]
    pub(crate) payloads: bool,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct TailArgs {
    /// How many
    #[arg(short = 'n', long, default_value_t = 20, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) count: u32,
    /// Only events of this type, such as attempt_failed; may be repeated
    #[arg(long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Only what this party did: `rutter`, `agent NAME`, or the name of a person
    #[arg(long, value_name = "ACTOR")]
    pub(crate) actor: Option<String>,
    /// Go on with what is written from now on, until interrupted
    #[arg(long)]
    pub(crate) follow: bool,
    /// Print parameters, results and evidence, not only how large they are
    #[arg(long)]
    pub(crate) payloads: bool,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct EraseArgs {
    #[arg(value_name = "EXECUTION")]
    pub(crate) execution: String,
    /// Only what this entry carries; may be repeated [default: what all its entries carry]
    #[arg(long = "seq", value_name = "NUMBER")]
    pub(crate) entries: Vec<u64>,
    /// Why, for the ledger's own journal
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

impl JournalCommand {
    pub(crate) fn store(&self) -> &StoreArgs {
        match self {
            JournalCommand::Verify(args) => &args.store,
            JournalCommand::Export(args) => &args.store,
            JournalCommand::Checkpoint(args) => &args.store,
            JournalCommand::Receipt(args) => &args.store,
            JournalCommand::Key(args) => &args.store,
            JournalCommand::Show(args) => &args.store,
            JournalCommand::Tail(args) => &args.store,
            JournalCommand::Erase(args) => &args.store,
        }
    }
}
