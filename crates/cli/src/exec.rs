//! `rutter exec`: executions, looked at and steered.

mod act;
mod list;
mod show;
pub(crate) mod watch;

use crate::Exit;
use crate::args::run::ExecCommand;
use crate::terminal::Terminal;

pub(crate) fn run(command: &ExecCommand, terminal: &Terminal) -> anyhow::Result<Exit> {
    match command {
        ExecCommand::List(args) => list::run(args, terminal),
        ExecCommand::Show(args) => show::run(args, terminal),
        ExecCommand::Watch(args) => watch::run(args, terminal),
        command => act::run(command, terminal),
    }
}
