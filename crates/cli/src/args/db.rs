//! Arguments of `rutter db`.

use super::{DatabaseArgs, EXIT_CODES, TenantArgs};
use clap::{Args as Options, Subcommand, ValueEnum};
use rutter_core::port::upkeep::CleanedPart;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Migrate the database to the schema of this program, or create a new one
    #[command(after_help = EXIT_CODES)]
    Migrate(DbMigrateArgs),
    /// Copy the database to a file while it is in use, and verify the copy
    #[command(after_help = EXIT_CODES)]
    Backup(DbBackupArgs),
    /// Restore a backup; executions that were open in it are paused
    #[command(after_help = EXIT_CODES)]
    Restore(DbRestoreArgs),
    /// Print the size of the database and what it contains
    #[command(after_help = EXIT_CODES)]
    Stats(DbStatsArgs),
    /// Remove old executions or their payloads; hashes stay, so that the rest can still be verified
    #[command(after_help = EXIT_CODES)]
    Clean(DbCleanArgs),
}

#[derive(Debug, Options)]
pub(crate) struct DbMigrateArgs {
    /// Change nothing; exit with 1 if a migration is needed
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct DbBackupArgs {
    /// The file to create
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct DbRestoreArgs {
    /// The backup
    pub(crate) file: PathBuf,
    /// Move the existing database aside
    #[arg(long)]
    pub(crate) replace: bool,
    /// The reason, for the ledger's own journal
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct DbStatsArgs {
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct DbCleanArgs {
    /// Only executions without activity for this long, such as 30d [default: the settings under retention]
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// Only executions that ended with this status; may be repeated [default: any status]
    #[arg(long = "status", value_name = "STATUS")]
    pub(crate) statuses: Vec<String>,
    /// What to remove [default: payloads with --older-than, otherwise the settings under retention]
    #[arg(long, value_enum)]
    pub(crate) what: Option<CleanTarget>,
    /// Only print what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The reason, for the ledger's own journal [default: the age]
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CleanTarget {
    /// Parameters, results and evidence; the events stay readable
    Payloads,
    /// Everything but the hashes
    Executions,
}

impl From<CleanTarget> for CleanedPart {
    fn from(what: CleanTarget) -> CleanedPart {
        match what {
            CleanTarget::Payloads => CleanedPart::Payloads,
            CleanTarget::Executions => CleanedPart::Executions,
        }
    }
}
