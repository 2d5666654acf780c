//! One test's disk: what was asked of it, what shall fail, and what would survive a power cut.

mod cache;

use crate::vfs;
use cache::Loss;
use rusqlite::ffi;
use std::ffi::c_int;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub(crate) use cache::Cache;

/// A disk under one directory. Files elsewhere never fail. Its files are to be changed through SQLite only.
#[derive(Debug)]
pub struct Disk {
    shared: Arc<Shared>,
}

/// What goes wrong, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The n-th operation from now; 1 is the next. A kind that does not fit that operation waits for one it
    /// fits.
    pub at: u64,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One operation fails and does nothing.
    IoOnce,
    /// Every operation fails and does nothing, until the disk is healed.
    IoForEver,
    /// One operation that needs room finds none.
    FullOnce,
    /// One write stores half of its bytes; from then on nothing that needs room succeeds, until the disk is
    /// healed.
    FullShortWrite,
    /// One sync fails. As on Linux, what it should have made durable is then forgotten by the cache: it can
    /// still be read, and a later sync that succeeds does not save it.
    SyncError,
}

impl Kind {
    pub const ALL: [Kind; 5] =
        [Kind::IoOnce, Kind::IoForEver, Kind::FullOnce, Kind::FullShortWrite, Kind::SyncError];

    /// Whether it can begin with such an operation.
    pub fn fits(self, action: Action) -> bool {
        match self {
            Kind::IoOnce | Kind::IoForEver => true,
            Kind::FullOnce => needs_room(action),
            Kind::FullShortWrite => action == Action::Write,
            Kind::SyncError => action == Action::Sync,
        }
    }
}

/// Something that was asked of the disk and can fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub action: Action,
    pub file: Arc<Path>,
    /// Whether a fault was put here. An error of the real disk below does not count.
    pub failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Opens a file for writing; only a new one needs room.
    Open {
        new: bool,
    },
    /// Reads bytes; memory-mapped pages are not counted and do not fail.
    Read,
    Write,
    Truncate,
    Sync,
    Delete,
    /// Only memory beyond the end of its file needs room.
    MapSharedMemory {
        grows: bool,
    },
}

impl Disk {
    /// Takes over the files under a directory that exists.
    pub fn new(directory: &Path) -> Disk {
        Disk::with_cache(directory, None)
    }

    /// Takes over the files under a directory, and remembers what was not synced, so that the power can be
    /// cut.
    pub fn with_volatile_cache(directory: &Path) -> Disk {
        Disk::with_cache(directory, Some(Cache::default()))
    }

    fn with_cache(directory: &Path, cache: Option<Cache>) -> Disk {
        vfs::register();
        // SQLite asks for files by their real names; a directory that is not there yet has no other name.
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
        let state = State {
            boot: 0,
            powered: true,
            history: Vec::new(),
            failures: 0,
            faults: Vec::new(),
            dies_at: None,
            cache,
        };
        let shared = Arc::new(Shared { directory, state: Mutex::new(state) });
        let mut disks = lock(&DISKS);
        disks.retain(|disk| disk.strong_count() > 0);
        disks.push(Arc::downgrade(&shared));
        Disk { shared }
    }

    /// How many operations that can fail were asked for so far.
    pub fn operations(&self) -> u64 {
        self.shared.state().history.len() as u64
    }

    /// Everything that was asked for so far, in order.
    pub fn history(&self) -> Vec<Operation> {
        self.shared.state().history.clone()
    }

    /// How many of them were made to fail.
    pub fn failures(&self) -> u64 {
        self.shared.state().failures
    }

    /// Kills this very process instead of letting it do the n-th operation from now. Nothing is tidied up.
    pub fn die(&self, at: u64) {
        let mut state = self.shared.state();
        state.dies_at = Some(state.history.len() as u64 + at);
    }

    /// Plans a fault, beside those already planned.
    pub fn fail(&self, fault: Fault) {
        let mut state = self.shared.state();
        let from = state.history.len() as u64 + fault.at;
        state.faults.push(Planned { from, kind: fault.kind, is_full: false });
    }

    /// Forgets all faults, and switches the power on again.
    pub fn heal(&self) {
        let mut state = self.shared.state();
        state.faults.clear();
        state.powered = true;
    }

    /// Kills whoever uses the disk: all that was written is there, synced or not, and nothing open is ever
    /// closed.
    pub fn kill(&self) -> io::Result<()> {
        self.lose(Loss::Nothing)
    }

    /// Takes the power away: every file becomes what it was when it was last synced.
    ///
    /// What is open stays dead for ever; after `heal`, files can be opened anew. A file that was made and
    /// never synced is gone. A deletion counts as durable at once, which is kinder than a real disk.
    pub fn cut_power(&self) -> io::Result<()> {
        self.lose(Loss::All)
    }

    /// Takes the power away in the middle of writing: of the 512-byte sectors not yet synced, some were
    /// written.
    pub fn cut_power_torn(&self, seed: u64) -> io::Result<()> {
        self.lose(Loss::Some { seed })
    }

    fn lose(&self, loss: Loss) -> io::Result<()> {
        let mut state = self.shared.state();
        let Some(cache) = &mut state.cache else {
            return Err(io::Error::other("expected a disk with a volatile cache"));
        };
        cache.lose(loss)?;
        state.boot += 1;
        state.powered = false;
        Ok(())
    }
}

static DISKS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// A file name as one of the disks knows it. What was opened before a power cut has an older boot than
/// the disk.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    disk: Arc<Shared>,
    file: Arc<Path>,
    boot: u64,
}

/// What becomes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Fail(c_int),
    /// Write half of the bytes, then say that the disk is full.
    HalfThenFull,
}

/// The disk while an operation is under way: nothing else happens to it meanwhile.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    state: MutexGuard<'a, State>,
    file: &'a Path,
    pub(crate) verdict: Verdict,
}

impl Place {
    /// Finds the disk of a file: the one with the nearest directory above it, and of two such the younger.
    pub(crate) fn of(file: &Path) -> Option<Place> {
        let disks: Vec<Arc<Shared>> = lock(&DISKS).iter().filter_map(Weak::upgrade).collect();
        let disk = disks
            .into_iter()
            .filter(|disk| file.starts_with(&disk.directory))
            .max_by_key(|disk| disk.directory.components().count())?;
        let boot = disk.state().boot;
        Some(Place { disk, file: file.into(), boot })
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// How long the file is that SQLite's connections to this one share as memory.
    pub(crate) fn shared_memory_bytes(&self) -> u64 {
        std::fs::metadata(cache::beside(&self.file, "-shm")).map_or(0, |found| found.len())
    }

    pub(crate) fn begin(&self, action: Action) -> Turn<'_> {
        let mut state = self.disk.state();
        let verdict = if state.is_dead(self.boot) {
            Verdict::Fail(code_of_io_error(action))
        } else {
            state.judge(action, &self.file)
        };
        Turn { state, file: &self.file, verdict }
    }
}

impl Turn<'_> {
    /// Tells the cache what the real disk has done, if there is a cache.
    pub(crate) fn tell(&mut self, news: impl FnOnce(&mut Cache, &Path)) {
        if let Some(cache) = &mut self.state.cache {
            news(cache, self.file);
        }
    }
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    state: Mutex<State>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

#[derive(Debug)]
struct State {
    /// Grows with every power cut and every kill.
    boot: u64,
    powered: bool,
    history: Vec<Operation>,
    failures: u64,
    faults: Vec<Planned>,
    dies_at: Option<u64>,
    cache: Option<Cache>,
}

#[derive(Debug)]
struct Planned {
    /// The number of the first operation that it may hit.
    from: u64,
    kind: Kind,
    /// Whether the short write has happened.
    is_full: bool,
}

impl State {
    fn is_dead(&self, boot: u64) -> bool {
        !self.powered || boot != self.boot
    }

    fn judge(&mut self, action: Action, file: &Arc<Path>) -> Verdict {
        let number = self.history.len() as u64 + 1;
        if self.dies_at == Some(number) {
            die();
        }
        let hit = self.faults.iter().position(|fault| fault.from <= number && fits(fault, action));
        self.history.push(Operation { action, file: file.clone(), failed: hit.is_some() });
        let Some(hit) = hit else { return Verdict::Pass };
        self.failures += 1;
        if action == Action::Sync
            && let Some(cache) = &mut self.cache
        {
            cache.sync_failed(file);
        }
        match self.faults[hit].kind {
            Kind::IoForEver => Verdict::Fail(code_of_io_error(action)),
            Kind::FullShortWrite if self.faults[hit].is_full => Verdict::Fail(code_of_full_disk(action)),
            Kind::FullShortWrite => {
                self.faults[hit].is_full = true;
                Verdict::HalfThenFull
            }
            Kind::FullOnce => {
                self.faults.remove(hit);
                Verdict::Fail(code_of_full_disk(action))
            }
            Kind::IoOnce | Kind::SyncError => {
                self.faults.remove(hit);
                Verdict::Fail(code_of_io_error(action))
            }
        }
    }
}

/// Ends the process as `kill -9` does.
fn die() {
    let killed = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    panic!("a process can kill itself, and {killed:?}");
}

fn fits(fault: &Planned, action: Action) -> bool {
    if fault.is_full { needs_room(action) } else { fault.kind.fits(action) }
}

fn needs_room(action: Action) -> bool {
    matches!(action, Action::Open { new: true } | Action::Write | Action::MapSharedMemory { grows: true })
}

// The codes are those that SQLite's own file system gives in these cases.
fn code_of_io_error(action: Action) -> c_int {
    match action {
        Action::Open { .. } => ffi::SQLITE_CANTOPEN,
        Action::Read => ffi::SQLITE_IOERR_READ,
        Action::Write => ffi::SQLITE_IOERR_WRITE,
        Action::Truncate => ffi::SQLITE_IOERR_TRUNCATE,
        Action::Sync => ffi::SQLITE_IOERR_FSYNC,
        Action::Delete => ffi::SQLITE_IOERR_DELETE,
        Action::MapSharedMemory { .. } => ffi::SQLITE_IOERR_SHMMAP,
    }
}

fn code_of_full_disk(action: Action) -> c_int {
    match action {
        Action::Write => ffi::SQLITE_FULL,
        Action::MapSharedMemory { .. } => ffi::SQLITE_IOERR_SHMSIZE,
        other => code_of_io_error(other),
    }
}

// A test that panicked with the lock must not hide what it had to say behind a second panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
