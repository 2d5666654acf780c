//! What was typed after `rutter plan`.

use super::run::ToolArgs;
use super::{EXIT_CODES, StoreArgs, TenantArgs};
use clap::{Args as Options, Subcommand, ValueEnum};
use rutter_core::plan::Driver;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Find every mistake in plans, and what is doubtful
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),
    /// Say what would happen: guarantees, what can be undone, and what if a step fails
    #[command(after_help = EXIT_CODES)]
    Preview(PreviewArgs),
    /// Draw the steps and what they wait for
    #[command(after_help = EXIT_CODES)]
    Graph(GraphArgs),
    /// Say what changed between two plans, by meaning and not by text
    #[command(after_help = EXIT_CODES)]
    Diff(DiffArgs),
    /// Check a plan against the tools there are, and keep it; a change becomes the next revision
    #[command(after_help = EXIT_CODES)]
    Save(SaveArgs),
    /// List the plans that are kept, last saved first
    #[command(after_help = EXIT_CODES)]
    List(PlanListArgs),
    /// Print a plan as it was written
    #[command(after_help = EXIT_CODES)]
    Show(PlanShowArgs),
}

#[derive(Debug, Options)]
pub(crate) struct CheckArgs {
    /// Plans in YAML or JSON; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Repair the errors a machine can repair, with --strict also warnings. A JSON file is rewritten in place.
    /// YAML would lose its comments and stdin has no place to go: those are printed to stdout as JSON, and the
    /// findings go to stderr
    #[arg(long)]
    pub(crate) fix: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PreviewArgs {
    /// Plans in YAML or JSON; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Tell everything about this step only
    #[arg(long, value_name = "ID")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct GraphArgs {
    /// Plans in YAML or JSON; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct DiffArgs {
    /// The plan as it was
    pub(crate) old: PathBuf,
    /// The plan as it is now
    pub(crate) new: PathBuf,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct SaveArgs {
    /// The plan, in YAML or JSON; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Make it the next revision of this plan; one that is not there gets this id [default: a new id]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Who will call the tools
    #[arg(long, value_enum, value_name = "WHO", default_value = "server")]
    pub(crate) driver: DriverArg,
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanListArgs {
    /// Only those with all these words in them
    pub(crate) words: Vec<String>,
    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// At most so many
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) count: u32,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanShowArgs {
    /// The plan, as `rutter plan list` names it
    #[arg(value_name = "ID")]
    pub(crate) plan: String,
    /// An earlier revision [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) revision: Option<u32>,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct CommonArgs {
    /// The catalogue of tools to check against (JSON). Without one, tools are not looked up
    #[arg(long, value_name = "CATALOG")]
    pub(crate) tools: Option<PathBuf>,
    /// Who will call the tools [default: server with --tools, agent without]
    #[arg(long, value_enum, value_name = "WHO")]
    driver: Option<DriverArg>,
    /// Print one JSON object per file and line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DriverArg {
    /// Rutter calls the tools, so each must be there
    Server,
    /// The agent calls them, also tools nobody registered
    Agent,
}

impl From<DriverArg> for Driver {
    fn from(driver: DriverArg) -> Driver {
        match driver {
            DriverArg::Server => Driver::Server,
            DriverArg::Agent => Driver::Agent,
        }
    }
}

impl CommonArgs {
    pub(crate) fn driver(&self) -> Driver {
        let default = if self.tools.is_some() { DriverArg::Server } else { DriverArg::Agent };
        self.driver.unwrap_or(default).into()
    }
}

impl PlanCommand {
    pub(crate) fn is_json(&self) -> bool {
        match self {
            PlanCommand::Check(args) => args.common.json,
            PlanCommand::Preview(args) => args.common.json,
            PlanCommand::Graph(args) => args.common.json,
            PlanCommand::Diff(args) => args.common.json,
            PlanCommand::Save(args) => args.store.json,
            PlanCommand::List(args) => args.store.json,
            PlanCommand::Show(args) => args.store.json,
        }
    }
}
