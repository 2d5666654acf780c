//! `rutter journal`: prints, verifies, exports and erases journals.

mod entry;
mod erase;
mod export;
mod proof;
mod show;
mod tail;
mod verify;

use crate::args::journal::JournalCommand;
use crate::exit::CommandExit;
use crate::terminal::Terminal;

pub(crate) fn run(command: &JournalCommand, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    match command {
        JournalCommand::Verify(args) => verify::run(args, terminal),
        JournalCommand::Export(args) => export::run(args, terminal),
        JournalCommand::Checkpoint(args) => proof::checkpoint(args, terminal),
        JournalCommand::Receipt(args) => proof::receipt(args, terminal),
        JournalCommand::Key(args) => proof::key(args, terminal),
        JournalCommand::Show(args) => show::run(args, terminal),
        JournalCommand::Tail(args) => tail::run(args, terminal),
        JournalCommand::Erase(args) => erase::run(args, terminal),
    }
}
