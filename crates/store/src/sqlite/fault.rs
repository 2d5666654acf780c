//! What went wrong in SQLite, in the words of the port.

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC};
use rutter_core::port::Error;

/// How a failed statement or commit has to be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No room; goes on when there is some.
    Full,
    /// What was written may be gone from memory and disk alike: nothing may be written until a restart.
    Sync,
    /// The file could not be read or written this time.
    Io,
    /// The file is not what SQLite wrote.
    Corrupt,
    ReadOnly,
    /// A statement of ours was wrong.
    Other,
}

pub(super) fn kind(error: &rusqlite::Error) -> Kind {
    let rusqlite::Error::SqliteFailure(failure, _) = error else { return Kind::Other };
    match failure.extended_code {
        SQLITE_IOERR_FSYNC | SQLITE_IOERR_DIR_FSYNC => return Kind::Sync,
        _ => {}
    }
    match failure.code {
        ErrorCode::DiskFull => Kind::Full,
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::FileLockingProtocolFailed => Kind::Io,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Kind::Corrupt,
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Kind::ReadOnly,
        _ => Kind::Other,
    }
}

pub(super) fn of(error: rusqlite::Error) -> Error {
    let text = error.to_string();
    match kind(&error) {
        Kind::Full => Error::DiskFull(text),
        Kind::Corrupt => Error::Corrupt(text),
        Kind::ReadOnly => Error::ReadOnly(text),
        Kind::Sync => Error::Unknown(text),
        Kind::Io | Kind::Other => Error::Io(text),
    }
}
