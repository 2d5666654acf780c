//! The owner lock: one process per database. A second one learns the owner's process id.

use rutter_core::port::Error;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

/// Held as long as the store is open; the system releases it when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct OwnerLock {
    _file: File,
}

impl OwnerLock {
    pub fn take(path: &Path) -> Result<OwnerLock, Error> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                Error::ReadOnly(format!("{}: {error}", path.display()))
            }
            _ => Error::Io(format!("{}: {error}", path.display())),
        };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // The owner writes its process id just after taking the lock; until then the id is unknown.
                let _ = file.read_to_string(&mut pid);
                let pid = if pid.trim().is_empty() { "unknown".to_owned() } else { pid.trim().to_owned() };
                return Err(Error::Locked { path: path.display().to_string(), pid });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
        // Only the lock matters; a missing process id makes the message less helpful.
        let _ = written;
        Ok(OwnerLock { _file: file })
    }
}
