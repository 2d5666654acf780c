//! The registry of running children. One small file per child is written before the child runs and removed when it is
//! gone, so that the next start after a crash kills what was left running.

use super::process::{self, ProcessStatus};
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
pub struct ChildRegistry {
    folder: PathBuf,
    /// Locked for as long as it is open.
    _lock: File,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChildRecord {
    pid: u32,
    started: u64,
    /// Pids and start times are valid only within one boot.
    boot: String,
    /// Its process group, if it leads one.
    group: Option<u32>,
    session: u32,
    about: String,
    mark: Option<String>,
}

impl ChildRegistry {
    /// Takes over a directory: kills every child that survived its earlier process, and returns how many there were.
    pub fn open(folder: &Path) -> io::Result<(ChildRegistry, usize)> {
        fs::create_dir_all(folder)?;
        let lock = File::options().create(true).append(true).open(folder.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!("{} is in use by another process", folder.display()),
            ),
            fs::TryLockError::Error(error) => error,
        })?;
        let roster = ChildRegistry { folder: folder.to_owned(), _lock: lock };
        let survivors = roster.end_survivors()?;
        Ok((roster, survivors))
    }

    /// Registers a child durably, before it gets anything to do.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        self.enter(pid, "", None)
    }

    /// Removes a child that has ended.
    pub fn remove(&self, pid: u32) {
        if let Err(error) = fs::remove_file(self.file(pid)) {
            // The next start finds that there is no such process.
            tracing::debug!(pid, %error, "a child could not be removed from the registry");
        }
    }

    pub(super) fn enter(&self, pid: u32, about: &str, mark: Option<&str>) -> io::Result<()> {
        let process = ProcessStatus::read(pid)?;
        let entry = ChildRecord {
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
                Some("json") => match serde_json::from_slice::<ChildRecord>(&fs::read(&path)?) {
                    Ok(entry) => entries.push(entry),
                    Err(error) => tracing::warn!(path = %path.display(), %error, "not a child record"),
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

/// Kills the processes of these children until none is left.
fn end_all(entries: &[ChildRecord]) -> io::Result<usize> {
    let mut ended = BTreeSet::new();
    let until = Instant::now() + GONE_WITHIN;
    loop {
        let all: Vec<ProcessStatus> = process::all().filter(|process| !process.is_dead()).collect();
        let left: Vec<&ProcessStatus> =
            all.iter().filter(|process| entries.iter().any(|entry| entry.covers(process, &all))).collect();
        if left.is_empty() {
            return Ok(ended.len());
        }
        if Instant::now() > until {
            let pids: Vec<u32> = left.iter().map(|process| process.pid).collect();
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("processes {pids:?} of an earlier run do not end; kill them by hand"),
            ));
        }
        for process in left {
            process.kill();
            ended.insert((process.pid, process.started));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl ChildRecord {
    /// Whether a process is this child or a descendant of it.
    fn covers(&self, process: &ProcessStatus, all: &[ProcessStatus]) -> bool {
        if process.pid == self.pid {
            return process.started == self.started;
        }
        // Another process can only have got this pid when the old group was empty.
        let is_strangers = || all.iter().any(|other| other.pid == self.pid && other.started != self.started);
        let in_group = self.group == Some(process.group)
            && process.session == self.session
            && process.started >= self.started
            && !is_strangers();
        in_group || self.mark.as_ref().is_some_and(|mark| process.has_in_environment(mark))
    }
}
