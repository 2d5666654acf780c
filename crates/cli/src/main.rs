//! The `rutter` program: reads the command line, does what it says, answers with an exit code.

mod args;
mod bench;
mod clock;
mod completions;
mod config;
mod daemon;
mod db;
mod demo;
mod doctor;
mod exec;
mod failure;
mod graph;
mod helm;
mod import;
mod init;
mod journal;
mod key;
mod log;
mod man;
mod mcp;
mod open;
mod outcome;
mod outlet;
mod plan;
mod progress;
mod report;
mod run;
mod serve;
mod store;
mod table;
mod terminal;
mod tools;

use args::plan::PlanCommand;
use args::{Args, BenchCommand, Command};
use clap::Parser;
use failure::{Failure, Refusal};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use terminal::Terminal;

/// How a command ended, for whoever called it. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Exit {
    Done = 0,
    /// An execution did not complete, plans differ, or what is stored is not what was written.
    Differs = 1,
    Refused = 2,
    /// An execution needs somebody, or was left under way.
    Waiting = 3,
    Internal = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Words that are not for people: how a command is started under its limits, a tool to measure with, and the tools of
    // the demo.
    match words.next() {
        Some(word) if word == tools::LAUNCH => return rutter_tools::child::launch::main(words),
        Some(word) if word == bench::engine::echo::WORD => return bench::engine::echo::main(),
        Some(word) if word == demo::tools::WORD => return demo::tools::main(words),
        _ => {}
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return mistyped(&error),
    };
    log::start();
    let terminal = Terminal::from_environment(args.color);
    let is_json = args.command.is_json();
    // A panic is our mistake; it ends as an internal error like the others.
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| run(args.command, &terminal)));
    match outcome {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(error)) if is_closed_pipe(&error) => Exit::Done.into(),
        Ok(Err(error)) => {
            terminal.progress("");
            let failure = Failure::of(&error);
            match is_json {
                // Whoever cannot be answered learns it from the exit code.
                true => drop(terminal.answer(&format!("{}\n", failure.json()))),
                false => terminal.remark(&failure.text()),
            }
            failure.exit.into()
        }
        Err(_) => Exit::Internal.into(),
    }
}

fn run(command: Command, terminal: &Terminal) -> anyhow::Result<Exit> {
    match command {
        Command::Demo(args) => demo::run(&args, terminal),
        Command::Plan(PlanCommand::Check(args)) => plan::check::run(&args, terminal),
        Command::Plan(PlanCommand::Preview(args)) => plan::preview::run(&args, terminal),
        Command::Plan(PlanCommand::Graph(args)) => plan::graph::run(&args, terminal),
        Command::Plan(PlanCommand::Diff(args)) => plan::diff::run(&args, terminal),
        Command::Plan(PlanCommand::Save(args)) => plan::save::run(&args, terminal),
        Command::Plan(PlanCommand::List(args)) => plan::list::run(&args, terminal),
        Command::Plan(PlanCommand::Show(args)) => plan::show::run(&args, terminal),
        Command::Config(command) => config::show::run(&command, terminal),
        Command::Init(args) => init::run(&args, terminal),
        Command::Doctor(args) => doctor::run(&args, terminal),
        Command::Man(args) => man::run(&args, terminal),
        Command::Journal(command) => journal::run(&command, terminal),
        Command::Db(command) => db::run(&command, terminal),
        Command::Run(args) => run::run(&args, terminal),
        Command::Serve(args) => serve::run(&args, terminal),
        Command::Mcp(args) => mcp::run(&args),
        Command::Stop(args) => serve::stop(&args, terminal),
        Command::Open(args) => open::run(&args, terminal),
        Command::Key(command) => key::run(&command, terminal),
        Command::Exec(command) => exec::run(&command, terminal),
        Command::Tools(command) => tools::run(&command, terminal),
        Command::Bench(BenchCommand::Store(args)) => bench::run(&args, terminal),
        Command::Bench(BenchCommand::Engine(args)) => bench::engine::run(&args, terminal),
        Command::Bench(BenchCommand::Http(args)) => bench::http::run(&args, terminal),
        Command::Completions { shell } => completions::run(shell, terminal),
    }
}

/// Help and the version are answers; a mistake is told to programs as they asked to be told.
fn mistyped(error: &clap::Error) -> ExitCode {
    let is_json = std::env::args_os().any(|word| word == "--json");
    let code = u8::try_from(error.exit_code()).unwrap_or(Exit::Refused as u8);
    if error.use_stderr() && is_json {
        let refusal = Refusal::new("command.invalid", first_paragraph(&error.to_string()));
        let failure = Failure::of(&refusal.with_hint("`rutter COMMAND --help` says what there is").into());
        drop(Terminal::from_environment(args::Colour::Auto).answer(&format!("{}\n", failure.json())));
    } else {
        // Whoever reads it may have gone.
        let _ = error.print();
    }
    ExitCode::from(code)
}

/// What clap says, without its usage and tips.
fn first_paragraph(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    text.split("\n\n").next().unwrap_or(text).trim().to_owned()
}

/// Whoever read our answer has read enough, as `head` does.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
