//! Arguments of `rutter plan`.

use super::run::ToolSourceArgs;
use super::{DatabaseArgs, EXIT_CODES, TenantArgs};
use clap::{Args as Options, Subcommand, ValueEnum};
use rutter_core::plan::Driver;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Report every error and warning in plans
    #[command(after_help = EXIT_CODES)]
    Check(PlanCheckArgs),
    /// Print what a plan would do: guarantees, what can be undone, and what if a step fails
    #[command(after_help = EXIT_CODES)]
    Preview(PlanPreviewArgs),
    /// Draw the steps and their dependencies
    #[command(after_help = EXIT_CODES)]
    Graph(PlanGraphArgs),
    /// Print what changed between two plans, by meaning and not by text
    #[command(after_help = EXIT_CODES)]
    Diff(PlanDiffArgs),
    /// Check a plan against the available tools and save it; a change becomes the next revision
    #[command(after_help = EXIT_CODES)]
    Save(PlanSaveArgs),
    /// List saved plans, last saved first
    #[command(after_help = EXIT_CODES)]
    List(PlanListArgs),
    /// Print a plan as it was written
    #[command(after_help = EXIT_CODES)]
    Show(PlanShowArgs),
}

#[derive(Debug, Options)]
pub(crate) struct PlanCheckArgs {
    /// Plans in YAML or JSON; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Fix the errors that can be fixed automatically, with --strict also warnings. A JSON file is rewritten in place.
    /// YAML (which would lose its comments) and stdin are printed to stdout as JSON, and the findings go to stderr
    #[arg(long)]
    pub(crate) fix: bool,
    #[command(flatten)]
    pub(crate) common: PlanCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanPreviewArgs {
    /// Plans in YAML or JSON; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print every detail of this step only
    #[arg(long, value_name = "ID")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) common: PlanCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanGraphArgs {
    /// Plans in YAML or JSON; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: PlanCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanDiffArgs {
    /// The old plan
    pub(crate) old: PathBuf,
    /// The new plan
    pub(crate) new: PathBuf,
    #[command(flatten)]
    pub(crate) common: PlanCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanSaveArgs {
    /// The plan, in YAML or JSON; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Save it as the next revision of this plan, or as a new plan with this id [default: a new id]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Who calls the tools
    #[arg(long, value_enum, value_name = "WHO", default_value = "server")]
    pub(crate) driver: DriverValue,
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanListArgs {
    /// Only plans that contain all these words
    pub(crate) words: Vec<String>,
    /// Only plans with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) count: u32,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanShowArgs {
    /// The plan's id, from `rutter plan list`
    #[arg(value_name = "ID")]
    pub(crate) plan: String,
    /// An earlier revision [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) revision: Option<u32>,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanCommonArgs {
    /// The catalogue of tools to check against (JSON). Without one, tools are not looked up
    #[arg(long, value_name = "CATALOG")]
    pub(crate) tools: Option<PathBuf>,
    /// Who calls the tools [default: server with --tools, agent without]
    #[arg(long, value_enum, value_name = "WHO")]
    driver: Option<DriverValue>,
    /// Print one JSON object per file, each on its own line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DriverValue {
    /// Rutter calls the tools, so each must exist
    Server,
    /// The agent calls them, also tools that Rutter does not know
    Agent,
}

impl From<DriverValue> for Driver {
    fn from(driver: DriverValue) -> Driver {
        match driver {
            DriverValue::Server => Driver::Server,
            DriverValue::Agent => Driver::Agent,
        }
    }
}

impl PlanCommonArgs {
    pub(crate) fn driver(&self) -> Driver {
        let default = if self.tools.is_some() { DriverValue::Server } else { DriverValue::Agent };
        self.driver.unwrap_or(default).into()
    }
}
