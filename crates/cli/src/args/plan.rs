//! Arguments of `rutter plan`.

use super::journal::OutputArgs;
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
    /// Suggest what would improve a plan: parallelism, order, probes, timeouts and retries learned from history
    #[command(after_help = EXIT_CODES, visible_alias = "optimise")]
    Optimize(PlanOptimizeArgs),
    /// Check a plan against the available tools and save it; a change becomes the next revision
    #[command(after_help = EXIT_CODES)]
    Save(PlanSaveArgs),
    /// List saved plans, last saved first
    #[command(after_help = EXIT_CODES)]
    List(PlanListArgs),
    /// Print a plan as it was written
    #[command(after_help = EXIT_CODES)]
    Show(PlanShowArgs),
    /// Write a saved plan as JSON, or several with --all, to be imported elsewhere
    #[command(after_help = EXIT_CODES)]
    Export(PlanExportArgs),
    /// Check and save the plans of an export, or one plan
    #[command(after_help = EXIT_CODES)]
    Import(PlanImportArgs),
    /// List the templates and their parameters
    Templates(PlanTemplatesArgs),
    /// Make a plan of a template
    #[command(after_help = EXIT_CODES)]
    New(PlanNewArgs),
    /// Put a plan away: it is no longer listed and cannot be started
    #[command(after_help = EXIT_CODES)]
    Archive(PlanChangeArgs),
    /// Take an archived plan back into use
    #[command(after_help = EXIT_CODES)]
    Restore(PlanChangeArgs),
    /// Give a plan another name, as its next revision
    #[command(after_help = EXIT_CODES)]
    Rename(PlanRenameArgs),
    /// Delete a plan and its text; refused while executions of it have not ended
    #[command(after_help = EXIT_CODES)]
    Delete(PlanChangeArgs),
}

#[derive(Debug, Options)]
pub(crate) struct PlanTemplatesArgs {
    /// Print one JSON object per template
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Options)]
pub(crate) struct PlanNewArgs {
    /// The name of a template, or a file with one
    #[arg(long, value_name = "NAME")]
    pub(crate) template: String,
    /// A parameter as `name=value`; the value is JSON if it can be parsed as such and the parameter is no text
    #[arg(long = "input", value_name = "K=V")]
    pub(crate) inputs: Vec<String>,
    /// Write the plan to this new file [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON; a plan is printed as JSON anyway
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Options)]
pub(crate) struct PlanChangeArgs {
    /// The plan's name or id
    #[arg(value_name = "PLAN")]
    pub(crate) plan: String,
    /// Why; recorded in the ledger
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanRenameArgs {
    /// The new name
    #[arg(long, value_name = "NAME")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) change: PlanChangeArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanCheckArgs {
    /// Plans in YAML or JSON, or the names or ids of saved ones; `-` is stdin
    #[arg(required = true, value_name = "PLAN")]
    pub(crate) files: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Fix the errors that can be fixed automatically, with --strict also warnings. A JSON file is rewritten in place.
    /// YAML (which would lose its comments), stdin and saved plans are printed to stdout as JSON, and the findings go to stderr
    #[arg(long)]
    pub(crate) fix: bool,
    #[command(flatten)]
    pub(crate) common: PlanCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanPreviewArgs {
    /// Plans in YAML or JSON, or the names or ids of saved ones; `-` is stdin
    #[arg(required = true, value_name = "PLAN")]
    pub(crate) files: Vec<PathBuf>,
    /// Print every detail of this step only
    #[arg(long, value_name = "ID")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) common: PlanCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanGraphArgs {
    /// Plans in YAML or JSON, or the names or ids of saved ones; `-` is stdin
    #[arg(required = true, value_name = "PLAN")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: PlanCommonArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanDiffArgs {
    /// The old plan: a file, or the name or id of a saved one
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
    /// Save it as the next revision of this plan, by name or id [default: the plan with its name, or a new one]
    #[arg(long, value_name = "PLAN")]
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
    /// Only plans with all these words, or beginnings of words, in name, goal, tags or tools, or as parts of the name
    pub(crate) words: Vec<String>,
    /// Archived plans instead of the others
    #[arg(long)]
    pub(crate) archived: bool,
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
    /// The plan's name or id, from `rutter plan list`
    #[arg(value_name = "PLAN")]
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
pub(crate) struct PlanExportArgs {
    /// Names or ids of plans, each with or without `@REVISION`; one plan is written as its document
    #[arg(value_name = "PLAN", required_unless_present = "all")]
    pub(crate) plans: Vec<String>,
    /// All plans that are not archived, in their newest revision
    #[arg(long, conflicts_with = "plans")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) out: OutputArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct PlanOptimizeArgs {
    /// A plan in YAML or JSON, or the name or id of a saved one; `-` is stdin
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Apply every fix: a JSON file is rewritten, YAML and stdin are printed as JSON, a saved plan gets its next revision
    #[arg(long)]
    pub(crate) apply: bool,
    /// Who calls the tools of a file
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
pub(crate) struct PlanImportArgs {
    /// An export, or one plan in YAML or JSON; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Who calls the tools of one plan; an export says it for each
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
pub(crate) struct PlanCommonArgs {
    /// The catalogue of tools to check against (JSON) [default: the tools of the settings `rutter run` would use]
    #[arg(long, value_name = "CATALOG")]
    pub(crate) tools: Option<PathBuf>,
    /// Look no tools up, also if there are settings
    #[arg(long, conflicts_with = "tools")]
    pub(crate) no_tools: bool,
    /// Settings to use instead of ./rutter.toml
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tools", "no_tools"])]
    pub(crate) config: Option<PathBuf>,
    /// Who calls the tools [default: server with a catalogue of tools, agent without]
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
    pub(crate) fn driver(&self, has_catalog: bool) -> Driver {
        let default = if has_catalog { DriverValue::Server } else { DriverValue::Agent };
        self.driver.unwrap_or(default).into()
    }

    /// Whether the tools of the settings are used, if there are settings.
    pub(crate) fn uses_settings(&self) -> bool {
        self.tools.is_none() && !self.no_tools
    }
}
