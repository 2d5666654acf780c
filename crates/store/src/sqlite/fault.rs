//! Conversion of SQLite errors to the port's errors.

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC};
use rutter_core::port::Error;

/// How to react to a failed statement or commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SqliteFaultKind {
    /// The disk is full; writing continues when there is space.
    Full,
    /// A sync failed and written data may be lost: nothing may be written until a restart.
    Sync,
    /// The file could not be read or written this time.
    Io,
    /// The file is damaged.
    Corrupt,
    ReadOnly,
    /// Anything else, such as a wrong statement.
    Other,
}

pub(super) fn kind(error: &rusqlite::Error) -> SqliteFaultKind {
    let rusqlite::Error::SqliteFailure(failure, _) = error else { return SqliteFaultKind::Other };
    match failure.extended_code {
        SQLITE_IOERR_FSYNC | SQLITE_IOERR_DIR_FSYNC => return SqliteFaultKind::Sync,
        _ => {}
    }
    match failure.code {
        ErrorCode::DiskFull => SqliteFaultKind::Full,
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::FileLockingProtocolFailed => {
            SqliteFaultKind::Io
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => SqliteFaultKind::Corrupt,
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => SqliteFaultKind::ReadOnly,
        _ => SqliteFaultKind::Other,
    }
}

pub(super) fn of(error: rusqlite::Error) -> Error {
    let text = error.to_string();
    match kind(&error) {
        SqliteFaultKind::Full => Error::DiskFull(text),
        SqliteFaultKind::Corrupt => Error::Corrupt(text),
        SqliteFaultKind::ReadOnly => Error::ReadOnly(text),
        SqliteFaultKind::Sync => Error::Unknown(text),
        SqliteFaultKind::Io | SqliteFaultKind::Other => Error::Io(text),
    }
}
