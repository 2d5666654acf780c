//! The `rutter` program: parses the command line, runs the command, and returns an exit code.

mod args;
mod blocking;
mod clock;
mod completions;
mod config;
mod daemon;
mod db;
mod demo;
mod doctor;
mod exec;
mod exit;
mod failure;
mod graph;
mod import;
mod init;
mod journal;
mod key;
mod log;
mod man;
mod mcp;
mod open;
mod outcome;
mod output;
mod owner;
mod plan;
mod policy;
mod printable;
mod progress;
mod report;
mod run;
mod runtime;
mod serve;
mod settings;
mod socket;
mod store;
mod table;
mod terminal;
mod tools;

use args::plan::PlanCommand;
use args::{Args, CliCommand};
use exit::CommandExit;
use failure::{CommandFailure, CommandRefusal};
use rutter_app::plans::state::PlanAction;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use terminal::Terminal;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Internal arguments: the launcher of command tools, and the tools of the demo.
    match words.next() {
        Some(word) if word == runtime::LAUNCH => return rutter_tools::child::launch::main(words),
        Some(word) if word == demo::tools::WORD => return demo::tools::main(words),
        _ => {}
    }
    let (args, is_json) = match Args::read() {
        Ok(read) => read,
        Err(error) => return mistyped(&error),
    };
    log::start();
    let terminal = Terminal::from_environment(args.color);
    // A panic is a bug in this program; it is reported as an internal error.
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| run(args.command, &terminal)));
    match outcome {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(error)) if is_closed_pipe(&error) => CommandExit::Done.into(),
        Ok(Err(error)) => {
            terminal.progress("");
            let failure = CommandFailure::of(&error);
            match is_json {
                // If the answer cannot be written, the exit code still reports the outcome.
                true => drop(terminal.answer(&format!("{}\n", failure.json()))),
                false => terminal.remark(&failure.text()),
            }
            failure.exit.into()
        }
        Err(_) => CommandExit::Internal.into(),
    }
}

fn run(command: CliCommand, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    match command {
        CliCommand::Demo(args) => demo::run(&args, terminal),
        CliCommand::Plan(PlanCommand::Check(args)) => plan::check::run(&args, terminal),
        CliCommand::Plan(PlanCommand::Preview(args)) => plan::preview::run(&args, terminal),
        CliCommand::Plan(PlanCommand::Graph(args)) => plan::graph::run(&args, terminal),
        CliCommand::Plan(PlanCommand::Diff(args)) => plan::diff::run(&args, terminal),
        CliCommand::Plan(PlanCommand::Save(args)) => plan::save::run(&args, terminal),
        CliCommand::Plan(PlanCommand::List(args)) => plan::list::run(&args, terminal),
        CliCommand::Plan(PlanCommand::Show(args)) => plan::show::run(&args, terminal),
        CliCommand::Plan(PlanCommand::Optimize(args)) => plan::optimize::run(&args, terminal),
        CliCommand::Plan(PlanCommand::Export(args)) => plan::export::run(&args, terminal),
        CliCommand::Plan(PlanCommand::Import(args)) => plan::import::run(&args, terminal),
        CliCommand::Plan(PlanCommand::Templates(args)) => plan::template::list(&args, terminal),
        CliCommand::Plan(PlanCommand::New(args)) => plan::template::new(&args, terminal),
        CliCommand::Plan(PlanCommand::Archive(args)) => plan::change::run(&args, PlanAction::Archive, terminal),
        CliCommand::Plan(PlanCommand::Restore(args)) => plan::change::run(&args, PlanAction::Restore, terminal),
        CliCommand::Plan(PlanCommand::Delete(args)) => plan::change::run(&args, PlanAction::Delete, terminal),
        CliCommand::Plan(PlanCommand::Rename(args)) => {
            plan::change::run(&args.change, PlanAction::Rename { name: args.to }, terminal)
        }
        CliCommand::Policy(command) => policy::run(&command, terminal),
        CliCommand::Config(command) => settings::run(&command, terminal),
        CliCommand::Init(args) => init::run(&args, terminal),
        CliCommand::Doctor(args) => doctor::run(&args, terminal),
        CliCommand::Man(args) => man::run(&args, terminal),
        CliCommand::Journal(command) => journal::run(&command, terminal),
        CliCommand::Db(command) => db::run(&command, terminal),
        CliCommand::Run(args) => run::run(&args, terminal),
        CliCommand::Serve(args) => serve::run(&args, terminal),
        CliCommand::Mcp(args) => mcp::run(&args),
        CliCommand::Stop(args) => serve::stop(&args, terminal),
        CliCommand::Open(args) => open::run(&args, terminal),
        CliCommand::Key(command) => key::run(&command, terminal),
        CliCommand::Exec(command) => exec::run(&command, terminal),
        CliCommand::Tools(command) => tools::run(&command, terminal),
        CliCommand::Completions { shell } => completions::run(shell, terminal),
    }
}

/// Prints help and version to stdout; errors as text, or as JSON with --json.
fn mistyped(error: &clap::Error) -> ExitCode {
    let is_json = std::env::args_os().any(|word| word == "--json");
    let code = u8::try_from(error.exit_code()).unwrap_or(CommandExit::Refused as u8);
    if error.use_stderr() && is_json {
        let refusal = CommandRefusal::new("command.invalid", first_paragraph(&error.to_string()));
        let failure = CommandFailure::of(&refusal.with_hint("see `rutter COMMAND --help`").into());
        drop(Terminal::from_environment(args::ColorMode::Auto).answer(&format!("{}\n", failure.json())));
    } else {
        // The reader may be gone.
        let _ = error.print();
    }
    ExitCode::from(code)
}

/// Clap's message, without usage and tips.
fn first_paragraph(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    text.split("\n\n").next().unwrap_or(text).trim().to_owned()
}

/// The reader of our output has closed it, as `head` does.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
