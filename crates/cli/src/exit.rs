//! The exit codes of the program.

use std::process::ExitCode;

/// The exit code of a command. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CommandExit {
    Done = 0,
    /// An execution did not complete, plans differ, or stored data is damaged.
    Differs = 1,
    Refused = 2,
    /// An execution waits for a person, or was left running.
    Waiting = 3,
    Internal = 4,
}

impl From<CommandExit> for ExitCode {
    fn from(exit: CommandExit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
