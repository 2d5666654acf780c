//! The roster: who lives that we started. One small file per child, there before the child does anything and removed when
//! it is gone, so that whoever comes after a crash ends what the crash left running.

use super::process::{self, Process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long survivors that were killed may take to disappear.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Held by one process at a time.
#[derive(Debug)]
pub struct Roster {
    folder: PathBuf,
    /// Locked for as long as it is open.
    _lock: File,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    pid: u32,
    started: u64,
    /// Pids and start times mean something until the system starts anew.
    boot: String,
    /// What it leads, if it leads a group.
    group: Option<u32>,
    session: u32,
    about: String,
    mark: Option<String>,
}

impl Roster {
    /// Takes over a directory: ends every survivor of whoever had it before, and says how many there were.
    pub fn open(folder: &Path) -> io::Result<(Roster, usize)> {
        fs::create_dir_all(folder)?;
        let lock = File::options().create(true).append(true).open(folder.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!("{} belongs to another process that is still there", folder.display()),
            ),
            fs::TryLockError::Error(error) => error,
        })?;
        let roster = Roster { folder: folder.to_owned(), _lock: lock };
        let survivors = roster.end_survivors()?;
        Ok((roster, survivors))
    }

    /// Writes a child down, for good, before it is given anything to do.
    pub fn born(&self, pid: u32) -> io::Result<()> {
        self.enter(pid, "", None)
    }

    /// Strikes a child off that has ended.
    pub fn gone(&self, pid: u32) {
        if let Err(error) = fs::remove_file(self.file(pid)) {
            // The next to open the roster finds that there is no such process.
            tracing::debug!(pid, %error, "a child could not be struck off the roster");
        }
    }

    pub(super) fn enter(&self, pid: u32, about: &str, mark: Option<&str>) -> io::Result<()> {
        let process = Process::read(pid)?;
        let entry = Entry {
            pid,
            started: process.started,
            boot: process::boot(),
            group: (process.group == pid).then_some(pid),
            session: process.session,
            about: about.to_owned(),
            mark: mark.map(str::to_owned),
        };
        let new = self.folder.join(format!("{pid}.new"));
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(&entry)?)?;
        file.sync_all()?;
        fs::rename(&new, self.file(pid))?;
        File::open(&self.folder)?.sync_all()
    }

    fn file(&self, pid: u32) -> PathBuf {
        self.folder.join(format!("{pid}.json"))
    }

    fn end_survivors(&self) -> io::Result<usize> {
        let mut files = Vec::new();
        let mut entries = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("json") => match serde_json::from_slice::<Entry>(&fs::read(&path)?) {
                    Ok(entry) => entries.push(entry),
                    Err(error) => tracing::warn!(path = %path.display(), %error, "cannot be read as a child"),
                },
                Some("new") => {}
                _ => continue,
            }
            files.push(path);
        }
        let boot = process::boot();
        entries.retain(|entry| entry.boot == boot);
        let ended = end_all(&entries)?;
        for path in files {
            fs::remove_file(path)?;
        }
        Ok(ended)
    }
}

/// Kills what is left of these children until nothing is.
fn end_all(entries: &[Entry]) -> io::Result<usize> {
    let mut ended = BTreeSet::new();
    let until = Instant::now() + GONE_WITHIN;
    loop {
        let all: Vec<Process> = process::all().filter(|process| !process.is_dead()).collect();
        let left: Vec<&Process> =
            all.iter().filter(|process| entries.iter().any(|entry| entry.covers(process, &all))).collect();
        if left.is_empty() {
            return Ok(ended.len());
        }
        if Instant::now() > until {
            let pids: Vec<u32> = left.iter().map(|process| process.pid).collect();
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("processes {pids:?} of an earlier start do not end; end them by hand"),
            ));
        }
        for process in left {
            process.kill();
            ended.insert((process.pid, process.started));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Entry {
    /// Whether a process is this child or came from it.
    fn covers(&self, process: &Process, all: &[Process]) -> bool {
        if process.pid == self.pid {
            return process.started == self.started;
        }
        // A stranger that has the number now can only have got it when the old group was empty.
        let is_strangers = || all.iter().any(|other| other.pid == self.pid && other.started != self.started);
        let in_group = self.group == Some(process.group)
            && process.session == self.session
            && process.started >= self.started
            && !is_strangers();
        in_group || self.mark.as_ref().is_some_and(|mark| process.has_in_environment(mark))
    }
}
