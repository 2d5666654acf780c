//! What was typed.

pub(crate) mod begin;
pub(crate) mod db;
pub(crate) mod journal;
pub(crate) mod key;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod tools;

use begin::{ConfigCommand, DoctorArgs, InitArgs, ManArgs};
use clap::{Args as Options, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use db::DbCommand;
use journal::JournalCommand;
use key::{KeyCommand, OpenArgs};
use plan::PlanCommand;
use run::{ExecCommand, RunArgs};
use rutter_core::id::TenantId;
use serve::{McpArgs, ServeArgs, StopArgs};
use std::path::PathBuf;
use tools::ToolsCommand;

/// The plan an AI agent sails by, and the log of how it went.
#[derive(Debug, Parser)]
#[command(name = "rutter", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    /// When to use colour; `auto` looks at the terminal and at NO_COLOR
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done; warnings are allowed
  1  an execution ended and did not complete; `plan diff`: the plans differ; `journal verify`, `doctor`: something is wrong; stored data is damaged
  2  wrong usage, a file that cannot be read, a plan with errors (with --strict also warnings),
     or something that cannot be done as things are: no such database or entry, in use, refused
  3  an execution waits for somebody, or was left under way
  4  internal error, a failing disk, a demo that did not end as told, or no way to write the output

Answers go to stdout, remarks to stderr. `-` as a file is stdin.";

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See what Rutter does, in six scenes and a few seconds: a real server in a temporary directory, nothing outside
    #[command(after_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Begin with a project: settings, a first plan, and the MCP servers other programs know
    #[command(after_help = EXIT_CODES)]
    Init(InitArgs),
    /// Look whether everything works, and say what to do about what does not
    #[command(after_help = EXIT_CODES)]
    Doctor(DoctorArgs),
    /// Carry out a plan: check it, start it, follow it to its end or to where somebody is needed
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// Have the database and serve agents and people, over a socket beside it and over HTTP
    #[command(after_help = EXIT_CODES)]
    Serve(ServeArgs),
    /// Speak MCP over pipes: what an agent starts. Starts a server if there is none
    #[command(after_help = EXIT_CODES)]
    Mcp(McpArgs),
    /// Print a link that lets a browser in, once, and open it. Starts a server if there is none
    #[command(after_help = EXIT_CODES)]
    Open(OpenArgs),
    /// End the server of a database; what is under way comes to its end first
    #[command(after_help = EXIT_CODES)]
    Stop(StopArgs),
    /// Look at executions and steer them
    #[command(subcommand)]
    Exec(ExecCommand),
    /// Look at the tools there are, and try them
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// Look at plans without carrying them out, and keep them
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Look at journals: verify, export, show them, and erase what is in them
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Look after the database: migrate, back up, restore, measure and clean it
    #[command(subcommand)]
    Db(DbCommand),
    /// Look after the keys with which programs and people come in over HTTP
    #[command(subcommand)]
    Key(KeyCommand),
    /// Look at the settings and where they come from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Measure how fast this machine lets Rutter be
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Print the completion script of a shell
    #[command(after_help = "For bash, put this into ~/.bashrc:  source <(rutter completions bash)")]
    Completions { shell: Shell },
    /// Print the manual page of a command, or write all of them
    #[command(after_help = "To read one:  rutter man | man -l -")]
    Man(ManArgs),
}

#[derive(Debug, Options)]
pub(crate) struct DemoArgs {
    /// Do not pause between lines
    #[arg(long)]
    pub(crate) fast: bool,
    /// Leave the server up and the directory in place, and say how to connect to it and how to stop it
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print one JSON object per scene
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Write, verify and query journals on a scratch database, beside what disk and SQLite alone can do
    #[command(after_help = EXIT_CODES)]
    Store(BenchStoreArgs),
    /// Carry out plans of ten steps that do nothing, one and many at a time, beside the bare store
    #[command(after_help = EXIT_CODES)]
    Engine(BenchEngineArgs),
    /// Ask the HTTP API with 1, 16 and 128 connections, to look and to change, beside the same without HTTP
    #[command(after_help = EXIT_CODES)]
    Http(BenchHttpArgs),
}

#[derive(Debug, Options)]
pub(crate) struct BenchHttpArgs {
    /// Where the scratch database is made and removed; the disk that counts is the one under it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Seconds for each measurement
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// Executions in the database beforehand
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) executions: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Options)]
pub(crate) struct BenchEngineArgs {
    /// Where the scratch database is made and removed; the disk that counts is the one under it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Only carry out so many at once, and print the bytes of memory that takes
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) memory_of: Option<u64>,
    /// Seconds for each of three rounds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Options)]
pub(crate) struct BenchStoreArgs {
    /// Where the scratch database is made and removed; the disk that counts is the one under it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Seconds for each measurement of writing
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// Entries in the large database
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..=100_000_000))]
    pub(crate) entries: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which database, and how to answer.
#[derive(Clone, Debug, Default, Options)]
pub(crate) struct StoreArgs {
    /// The directory of the database [default: RUTTER_DIR, `dir` in rutter.toml, or where the system keeps data]
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
    /// Whose journals
    #[arg(long, default_value = "default", value_name = "NAME")]
    tenant: String,
}

impl TenantArgs {
    pub(crate) fn id(&self) -> TenantId {
        TenantId::new(&self.tenant)
    }
}

impl Command {
    /// Whether a program asked, and errors are to be told to it as JSON too.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Command::Demo(args) => args.json,
            Command::Init(args) => args.json,
            Command::Doctor(args) => args.store.json,
            Command::Journal(command) => command.store().json,
            Command::Db(command) => command.store().json,
            Command::Run(args) => args.store.json,
            Command::Serve(args) => args.store.json,
            Command::Stop(args) => args.store.json,
            Command::Open(args) => args.store.json,
            Command::Key(command) => command.store().json,
            Command::Exec(command) => command.store().json,
            Command::Tools(command) => command.is_json(),
            Command::Plan(command) => command.is_json(),
            Command::Config(ConfigCommand::Show(args)) => args.store.json,
            Command::Config(ConfigCommand::Check(args)) => args.store.json,
            Command::Bench(BenchCommand::Store(args)) => args.json,
            Command::Bench(BenchCommand::Engine(args)) => args.json,
            Command::Bench(BenchCommand::Http(args)) => args.json,
            Command::Man(args) => args.json,
            // What this one writes to stdout is the protocol's, whatever happens.
            Command::Mcp(_) => false,
            Command::Completions { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
