//! Free disk space, and what the store does when it runs out.
//!
//! New work is refused while little is left. A reserve file is freed when the disk is full, so that the outcomes of
//! calls already made can still be written.

use super::writer::WriteJob;
use rutter_core::port::Error;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Below this, new work is refused.
pub const FREE_BYTES_MIN: u64 = 128 << 20;
/// Reserved for outcomes that must still be recorded.
pub const RESERVE_BYTES: u64 = 32 << 20;

const RESERVE: &str = "reserve";

#[derive(Debug)]
pub(super) struct DiskSpace {
    directory: PathBuf,
    free_min: u64,
    reserve: u64,
    /// The disk was full, and not enough space is free again yet.
    full: bool,
    /// Batches since the last check, which costs a system call.
    since_look: u32,
}

const LOOK_EVERY: u32 = 64;

impl DiskSpace {
    pub fn new(directory: &Path, free_min: u64, reserve: u64) -> DiskSpace {
        let mut space =
            DiskSpace { directory: directory.to_owned(), free_min, reserve, full: false, since_look: LOOK_EVERY };
        space.full = space.is_low() || space.keep_reserve().is_err();
        space
    }

    /// Refuses the jobs that must wait for free space, and returns the others.
    pub fn admit(&mut self, batch: Vec<Box<dyn WriteJob>>) -> Vec<Box<dyn WriteJob>> {
        self.look();
        if !self.full {
            return batch;
        }
        let (refused, admitted): (Vec<_>, Vec<_>) = batch.into_iter().partition(|write| self.refuses(&**write));
        refused.into_iter().for_each(|write| write.answer(Some(self.error())));
        admitted
    }

    pub fn refuses(&self, write: &dyn WriteJob) -> bool {
        self.full && !write.is_outcome()
    }

    /// The disk is full: frees the reserve.
    pub fn ran_out(&mut self) {
        self.full = true;
        // If it cannot be removed, there is nothing more to free.
        let _ = fs::remove_file(self.directory.join(RESERVE));
    }

    fn look(&mut self) {
        self.since_look += 1;
        if !self.full && self.since_look < LOOK_EVERY {
            return;
        }
        self.since_look = 0;
        self.full = self.is_low() || (self.full && self.keep_reserve().is_err());
    }

    fn is_low(&self) -> bool {
        // If the free space is unknown, a write reports a full disk.
        let needed = self.free_min + if self.full { self.reserve } else { 0 };
        needed > 0 && free(&self.directory).is_ok_and(|free| free < needed)
    }

    fn keep_reserve(&self) -> io::Result<()> {
        let path = self.directory.join(RESERVE);
        if self.reserve == 0 || fs::metadata(&path).is_ok_and(|found| found.len() == self.reserve) {
            return Ok(());
        }
        let stored = fill(&path, self.reserve);
        if stored.is_err() {
            let _ = fs::remove_file(&path);
        }
        stored
    }

    fn error(&self) -> Error {
        let wanted = (self.free_min + self.reserve) >> 20;
        Error::DiskFull(format!("new work waits until {wanted} MiB are free"))
    }
}

/// Returns how many bytes can still be written where `directory` is.
pub fn free(directory: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Writes real bytes: a sparse file would reserve nothing.
fn fill(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    let block = vec![0xa5; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let length = left.min(block.len() as u64) as usize;
        file.write_all(&block[..length])?;
        left -= length as u64;
    }
    file.sync_all()
}
