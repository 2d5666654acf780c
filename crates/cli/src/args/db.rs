//! What was typed after `rutter db`.

use super::{EXIT_CODES, StoreArgs, TenantArgs};
use clap::{Args as Options, Subcommand, ValueEnum};
use rutter_core::port::upkeep::CleanedPart;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Bring the database up to date with this program, or make a new one
    #[command(after_help = EXIT_CODES)]
    Migrate(MigrateArgs),
    /// Copy the database into a file while it is used, and verify the copy
    #[command(after_help = EXIT_CODES)]
    Backup(BackupArgs),
    /// Begin again from a backup; executions that were open then are paused
    #[command(after_help = EXIT_CODES)]
    Restore(RestoreArgs),
    /// Say how large things are
    #[command(after_help = EXIT_CODES)]
    Stats(StatsArgs),
    /// Remove what ended long ago; hashes stay, so that the rest can still be verified
    #[command(after_help = EXIT_CODES)]
    Clean(CleanArgs),
}

#[derive(Debug, Options)]
pub(crate) struct MigrateArgs {
    /// Change nothing; exit code 1 when there is something to do
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct BackupArgs {
    /// The new file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct RestoreArgs {
    /// The backup
    pub(crate) file: PathBuf,
    /// Put the database that is there aside
    #[arg(long)]
    pub(crate) replace: bool,
    /// Why, for the ledger's own journal
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct CleanArgs {
    /// Only executions that nothing happened to for so long, such as 30d [default: what the settings say under retention]
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// Only executions that ended so; may be repeated [default: however they ended]
    #[arg(long = "status", value_name = "STATUS")]
    pub(crate) statuses: Vec<String>,
    /// What to take away [default: payloads with --older-than, else what the settings say under retention]
    #[arg(long, value_enum)]
    pub(crate) what: Option<What>,
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Why, for the ledger's own journal [default: the age]
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Parameters, results and evidence; what happened can still be told
    Payloads,
    /// Everything but the hashes
    Executions,
}

impl From<What> for CleanedPart {
    fn from(what: What) -> CleanedPart {
        match what {
            What::Payloads => CleanedPart::Payloads,
            What::Executions => CleanedPart::Executions,
        }
    }
}

impl DbCommand {
    pub(crate) fn store(&self) -> &StoreArgs {
        match self {
            DbCommand::Migrate(args) => &args.store,
            DbCommand::Backup(args) => &args.store,
            DbCommand::Restore(args) => &args.store,
            DbCommand::Stats(args) => &args.store,
            DbCommand::Clean(args) => &args.store,
        }
    }
}
