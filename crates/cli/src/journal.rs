//! `rutter journal`: what happened, whether that is still what was written, and taking it elsewhere.

mod entry;
mod erase;
mod export;
mod keep;
mod show;
mod tail;
mod verify;
mod words;

pub(crate) use words::{happened, word};

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
        JournalCommand::Show(args) => show::run(args, terminal),
        JournalCommand::Tail(args) => tail::run(args, terminal),
        JournalCommand::Erase(args) => erase::run(args, terminal),
    }
}
