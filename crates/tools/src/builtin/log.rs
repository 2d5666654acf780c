//! What a group of built-ins keeps: a file of JSON lines, one per thing that happened.
//!
//! A line is on the disk before anybody hears of it, and it is there whole or not at all: a last line without its newline
//! was never told to anybody and is cut off. Every now and then the file is written anew with what still counts, beside
//! the old one, and takes its place in one step.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Log<T> {
    path: PathBuf,
    /// Locked: a second process that opened it would write over the first one's lines.
    file: File,
    length: u64,
    lines: usize,
    /// Something may stand behind the last known line that could not be taken back.
    broken: bool,
    line: PhantomData<fn(T) -> T>,
}

/// Why a line is not there.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// The file is as it was.
    Nothing(io::Error),
    /// After a restart it may be there.
    Unknown(io::Error),
}

impl<T: Serialize + DeserializeOwned> Log<T> {
    pub fn open(path: &Path) -> io::Result<(Log<T>, Vec<T>)> {
        let is_new = !path.exists();
        let mut file = open_locked(path)?;
        if is_new {
            sync_folder(path)?;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
            file.sync_data()?;
        }
        file.seek(SeekFrom::End(0))?;
        let texts = bytes[..whole].split(|byte| *byte == b'\n').filter(|text| !text.is_empty());
        let read = |(number, text): (usize, &[u8])| {
            serde_json::from_slice(text).map_err(|error| {
                let place = format!("line {} of {}", number + 1, path.display());
                io::Error::new(io::ErrorKind::InvalidData, format!("{place} cannot be read ({error})"))
            })
        };
        let lines: Vec<T> = texts.enumerate().map(read).collect::<io::Result<_>>()?;
        let log = Log {
            path: path.to_owned(),
            file,
            length: whole as u64,
            lines: lines.len(),
            broken: false,
            line: PhantomData,
        };
        Ok((log, lines))
    }

    /// How many lines the file has, those that no longer count among them.
    pub fn lines(&self) -> usize {
        self.lines
    }

    pub fn bytes(&self) -> u64 {
        self.length
    }

    /// Writes a line for good.
    pub fn append(&mut self, line: &T) -> Result<(), Unwritten> {
        if self.broken {
            let message = format!("{} could not be repaired after a failed write", self.path.display());
            return Err(Unwritten::Nothing(io::Error::other(message)));
        }
        let mut bytes = serde_json::to_vec(line).map_err(|error| Unwritten::Nothing(error.into()))?;
        bytes.push(b'\n');
        match self.file.write_all(&bytes).and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                self.lines += 1;
                Ok(())
            }
            Err(error) => Err(self.take_back(error)),
        }
    }

    /// Puts these lines in the place of all others.
    pub fn rewrite<'a>(&mut self, lines: impl Iterator<Item = &'a T>) -> io::Result<()>
    where
        T: 'a,
    {
        let new = self.path.with_extension("new");
        let _ = fs::remove_file(&new);
        let mut file = open_locked(&new)?;
        let (mut bytes, mut count) = (Vec::new(), 0);
        for line in lines {
            serde_json::to_writer(&mut bytes, line)?;
            bytes.push(b'\n');
            count += 1;
        }
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        (self.file, self.length, self.lines, self.broken) = (file, bytes.len() as u64, count, false);
        sync_folder(&self.path)
    }

    /// Sets the file aside under another name and goes on with an empty one.
    pub fn rotate(&mut self, aside: &Path) -> io::Result<()> {
        fs::rename(&self.path, aside)?;
        self.file = open_locked(&self.path)?;
        (self.length, self.lines, self.broken) = (0, 0, false);
        sync_folder(&self.path)
    }

    fn take_back(&mut self, error: io::Error) -> Unwritten {
        let cut = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::End(0)));
        match cut.and_then(|_| self.file.sync_data()) {
            Ok(()) => Unwritten::Nothing(error),
            Err(_) => {
                self.broken = true;
                Unwritten::Unknown(error)
            }
        }
    }
}

fn open_locked(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).read(true).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) => {
            let message = format!("{} is open in another process", path.display());
            Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
        }
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]
    use super::*;

    #[test]
    fn what_was_written_is_there_and_a_torn_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let (mut log, lines) = Log::<u64>::open(&path).unwrap();
        assert!(lines.is_empty());
        (1..=3).for_each(|number| log.append(&number).unwrap());
        drop(log);
        let whole = fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let (mut log, lines) = Log::<u64>::open(&path).unwrap();
            let kept = whole[..cut].iter().filter(|byte| **byte == b'\n').count() as u64;
            assert_eq!(lines, (1..=kept).collect::<Vec<_>>(), "cut at {cut}");
            log.append(&9).unwrap();
            drop(log);
            assert_eq!(Log::<u64>::open(&path).unwrap().1.last(), Some(&9));
        }
    }

    #[test]
    fn a_damaged_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        fs::write(&path, "1\nx\n3\n").unwrap();
        let error = Log::<u64>::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 2 of"), "{error}");
    }

    #[test]
    fn a_file_has_one_owner_also_after_it_was_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let (mut log, _) = Log::<u64>::open(&path).unwrap();
        assert!(Log::<u64>::open(&path).is_err());
        (1..=9).for_each(|number| log.append(&number).unwrap());
        log.rewrite([7, 8].iter()).unwrap();
        assert!(Log::<u64>::open(&path).is_err());
        log.append(&10).unwrap();
        log.rotate(&folder.path().join("aside")).unwrap();
        log.append(&11).unwrap();
        drop(log);
        assert_eq!(Log::<u64>::open(&path).unwrap().1, [11]);
        assert_eq!(Log::<u64>::open(&folder.path().join("aside")).unwrap().1, [7, 8, 10]);
    }
}
