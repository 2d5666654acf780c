//! The command line arguments.

pub(crate) mod begin;
pub(crate) mod db;
pub(crate) mod journal;
pub(crate) mod key;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod tools;

use begin::{ConfigCommand, DoctorArgs, InitArgs, ManualArgs};
use clap::{ArgMatches, Args as Options, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use db::DbCommand;
use journal::JournalCommand;
use key::{KeyCommand, OpenBrowserArgs};
use plan::PlanCommand;
use policy::PolicyCommand;
use run::{ExecCommand, RunPlanArgs};
use rutter_app::verb::Verb;
use rutter_core::id::TenantId;
use serve::{McpCommandArgs, ServeArgs, StopServerArgs};
use std::path::PathBuf;
use tools::ToolsCommand;

/// Check and execute plans of tool calls for AI agents, with a tamper-evident journal.
#[derive(Debug, Parser)]
#[command(name = "rutter", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    /// When to use colour; `auto` looks at the terminal and at NO_COLOR
    #[arg(long, global = true, value_enum, default_value_t = ColorMode::Auto, value_name = "WHEN")]
    pub(crate) color: ColorMode,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

impl Args {
    /// Parses the command line. The second value says whether errors are printed as JSON too.
    pub(crate) fn read() -> Result<(Args, bool), clap::Error> {
        let matches = command().try_get_matches()?;
        let args = Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command()))?;
        // The stdout of `rutter mcp` carries the protocol only.
        let is_json = !matches!(args.command, CliCommand::Mcp(_)) && is_json(&matches);
        Ok((args, is_json))
    }
}

/// Whether the innermost command has the flag `--json`.
fn is_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, matches)) => is_json(matches),
        None => matches.try_get_one("json").is_ok_and(|flag: Option<&bool>| flag == Some(&true)),
    }
}

/// The command line: the verbs of `rutter exec` take their help and aliases from the table of verbs.
pub(crate) fn command() -> clap::Command {
    let described = |command: clap::Command| match Verb::parse(command.get_name()).map(Verb::row) {
        Some(row) => command.about(row.meaning).visible_aliases(row.synonyms.iter().copied()),
        None => command,
    };
    Args::command().mut_subcommands(|command| match command.get_name() {
        "exec" => command.mut_subcommands(described),
        _ => command,
    })
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done; warnings are allowed
  1  an execution ended and did not complete; `plan diff`: the plans differ;
     `journal verify`, `doctor`: something is wrong; stored data is damaged
  2  wrong usage, an unreadable file, a plan with errors (with --strict also warnings),
     or a request that is refused: no such database or entry, database in use
  3  an execution waits for a person, or was left running
  4  internal error, disk failure, a demo with an unexpected outcome, or unwritable output

Results go to stdout, messages to stderr. `-` as a file is stdin.";

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ColorMode {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Show what Rutter does in six short scenes, with a real server in a temporary directory
    #[command(after_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Set up a project: settings, a first plan, and the MCP servers that other programs use
    #[command(after_help = EXIT_CODES)]
    Init(InitArgs),
    /// Check that everything works, and suggest how to fix what does not
    #[command(after_help = EXIT_CODES)]
    Doctor(DoctorArgs),
    /// Execute a plan: check it, start it, follow it until it ends or waits for a person
    #[command(after_help = EXIT_CODES)]
    Run(RunPlanArgs),
    /// Serve agents and people, over a socket beside the database and over HTTP
    #[command(after_help = EXIT_CODES)]
    Serve(ServeArgs),
    /// Serve MCP over stdin and stdout, for an agent to start. Starts a server if none runs
    #[command(after_help = EXIT_CODES)]
    Mcp(McpCommandArgs),
    /// Print a one-time sign-in link for the dashboard and open it in a browser. Starts a server if none runs
    #[command(after_help = EXIT_CODES)]
    Open(OpenBrowserArgs),
    /// Stop the server of a database; calls in flight end first
    #[command(after_help = EXIT_CODES)]
    Stop(StopServerArgs),
    /// List, show and control executions
    #[command(subcommand)]
    Exec(ExecCommand),
    /// List, show and call tools
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// Check, preview, compare and save plans
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Show the operator's policy, and explain it for calls and plans
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Verify, export, show and erase journals
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Migrate, back up, restore, measure and clean the database
    #[command(subcommand)]
    Db(DbCommand),
    /// Manage the keys with which programs and people authenticate over HTTP
    #[command(subcommand)]
    Key(KeyCommand),
    /// Show and check the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the completion script of a shell
    #[command(after_help = "For bash, add this to ~/.bashrc:  source <(rutter completions bash)")]
    Completions { shell: Shell },
    /// Print the manual page of a command, or write all of them
    #[command(after_help = "To read one:  rutter man | man -l -")]
    Man(ManualArgs),
}

#[derive(Debug, Options)]
pub(crate) struct DemoArgs {
    /// Do not pause between lines
    #[arg(long)]
    pub(crate) fast: bool,
    /// Keep the server and the directory, and print how to connect to it and how to stop it
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print one JSON object per scene
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which database, and whether to print JSON.
#[derive(Clone, Debug, Default, Options)]
pub(crate) struct DatabaseArgs {
    /// The directory of the database [default: RUTTER_DIR, `dir` in rutter.toml, or the system's data directory]
    #[arg(long, visible_alias = "data", value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Settings to use instead of ./rutter.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Options)]
pub(crate) struct TenantArgs {
    /// The tenant
    #[arg(long, default_value = "default", value_name = "NAME")]
    tenant: String,
}

impl TenantArgs {
    pub(crate) fn id(&self) -> TenantId {
        TenantId::new(&self.tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_app::verb::VERBS;
    use std::collections::BTreeSet;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_is_a_subcommand_of_exec_and_the_others_only_read() {
        let exec = command().find_subcommand("exec").expect("`rutter exec` exists").clone();
        let typed: BTreeSet<String> = exec.get_subcommands().map(|one| one.get_name().to_owned()).collect();
        let verbs = VERBS.iter().map(|row| row.name.replace('_', "-"));
        assert_eq!(typed, verbs.chain(["list", "show", "watch"].map(str::to_owned)).collect());
    }

    #[test]
    fn a_synonym_is_typed_like_the_verb() {
        for row in VERBS {
            for word in [row.name].iter().chain(row.synonyms) {
                let help = command().try_get_matches_from(["rutter", "exec", &word.replace('_', "-"), "--help"]);
                let help = help.expect_err("help is no command").to_string();
                assert!(help.contains(row.meaning.split(['.', ',', ';', ':']).next().unwrap_or("")), "{help}");
            }
        }
    }
}
