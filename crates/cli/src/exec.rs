//! `rutter exec`: lists, shows and controls executions.

mod action;
mod list;
mod show;
pub(crate) mod watch;

use crate::args::run::ExecCommand;
use crate::exit::CommandExit;
use crate::terminal::Terminal;

pub(crate) fn run(command: &ExecCommand, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    match command {
        ExecCommand::List(args) => list::run(args, terminal),
        ExecCommand::Show(args) => show::run(args, terminal),
        ExecCommand::Watch(args) => watch::run(args, terminal),
        command => action::run(command, terminal),
    }
}
