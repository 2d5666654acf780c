//! `rutter journal`: what happened, whether that is still what was written, and taking it elsewhere.

mod export;
mod keep;
mod verify;

use crate::Exit;
use crate::args::journal::JournalCommand;
use crate::terminal::Terminal;

pub(crate) fn run(command: &JournalCommand, terminal: &Terminal) -> anyhow::Result<Exit> {
    match command {
        JournalCommand::Verify(args) => verify::run(args, terminal),
        JournalCommand::Export(args) => export::run(args, terminal),
        JournalCommand::Checkpoint(args) => keep::checkpoint(args, terminal),
        JournalCommand::Receipt(args) => keep::receipt(args, terminal),
        JournalCommand::Key(args) => keep::key(args, terminal),
        JournalCommand::Show(_) => not_yet(),
        JournalCommand::Tail(_) => not_yet(),
        JournalCommand::Erase(_) => not_yet(),
    }
}

fn not_yet() -> anyhow::Result<Exit> {
    anyhow::bail!("not yet")
}
