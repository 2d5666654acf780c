//! The disk of one test: its operations, its planned faults, and what would survive a power cut.

mod cache;

use crate::disk::vfs;
use cache::CacheLoss;
use rusqlite::ffi;
use std::ffi::c_int;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub(crate) use cache::WriteCache;

/// A disk under one directory. Files elsewhere never fail. Its files must be changed through SQLite only.
#[derive(Debug)]
pub struct FaultyDisk {
    shared: Arc<SharedDisk>,
}

/// A fault, and when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskFault {
    /// The n-th operation from now; 1 is the next. A kind that does not fit that operation waits for one that it fits.
    pub at: u64,
    pub kind: DiskFaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFaultKind {
    /// One operation fails without effect.
    IoOnce,
    /// Every operation fails without effect, until the disk is healed.
    IoForEver,
    /// One operation that needs space finds the disk full.
    FullOnce,
    /// One write stores half of its bytes; after that every operation that needs space fails, until the disk is healed.
    FullShortWrite,
    /// One sync fails. As on Linux, the cache then forgets the data that it should have made durable: it can still be
    /// read, and a later successful sync does not save it.
    SyncError,
}

impl DiskFaultKind {
    pub const ALL: [DiskFaultKind; 5] = [
        DiskFaultKind::IoOnce,
        DiskFaultKind::IoForEver,
        DiskFaultKind::FullOnce,
        DiskFaultKind::FullShortWrite,
        DiskFaultKind::SyncError,
    ];

    /// Whether it can happen at such an operation.
    pub fn fits(self, action: DiskAction) -> bool {
        match self {
            DiskFaultKind::IoOnce | DiskFaultKind::IoForEver => true,
            DiskFaultKind::FullOnce => needs_room(action),
            DiskFaultKind::FullShortWrite => action == DiskAction::Write,
            DiskFaultKind::SyncError => action == DiskAction::Sync,
        }
    }
}

/// A disk operation that can fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskOperation {
    pub action: DiskAction,
    pub file: Arc<Path>,
    /// Whether a planned fault hit it. An error of the real disk below does not count.
    pub failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskAction {
    /// Opens a file for writing; only a new one needs space.
    Open {
        new: bool,
    },
    /// Reads bytes; memory-mapped pages are not counted and do not fail.
    Read,
    Write,
    Truncate,
    Sync,
    Delete,
    /// Only memory beyond the end of its file needs space.
    MapSharedMemory {
        grows: bool,
    },
}

impl FaultyDisk {
    /// Takes over the files under an existing directory.
    pub fn new(directory: &Path) -> FaultyDisk {
        FaultyDisk::with_cache(directory, None)
    }

    /// Takes over the files under a directory, and tracks unsynced data, so that the power can be cut.
    pub fn with_volatile_cache(directory: &Path) -> FaultyDisk {
        FaultyDisk::with_cache(directory, Some(WriteCache::default()))
    }

    fn with_cache(directory: &Path, cache: Option<WriteCache>) -> FaultyDisk {
        vfs::register();
        // SQLite opens files by their real names; a directory that does not exist yet has no other name.
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
        let state = DiskState {
            boot: 0,
            powered: true,
            history: Vec::new(),
            failures: 0,
            faults: Vec::new(),
            dies_at: None,
            cache,
        };
        let shared = Arc::new(SharedDisk { directory, state: Mutex::new(state) });
        let mut disks = lock(&DISKS);
        disks.retain(|disk| disk.strong_count() > 0);
        disks.push(Arc::downgrade(&shared));
        FaultyDisk { shared }
    }

    /// The number of operations so far that can fail.
    pub fn operations(&self) -> u64 {
        self.shared.state().history.len() as u64
    }

    /// All operations so far, in order.
    pub fn history(&self) -> Vec<DiskOperation> {
        self.shared.state().history.clone()
    }

    /// How many of them failed by a planned fault.
    pub fn failures(&self) -> u64 {
        self.shared.state().failures
    }

    /// Kills this very process at the n-th operation from now. Nothing is cleaned up.
    pub fn die(&self, at: u64) {
        let mut state = self.shared.state();
        state.dies_at = Some(state.history.len() as u64 + at);
    }

    /// Plans a fault, in addition to those already planned.
    pub fn fail(&self, fault: DiskFault) {
        let mut state = self.shared.state();
        let from = state.history.len() as u64 + fault.at;
        state.faults.push(PlannedFault { from, kind: fault.kind, is_full: false });
    }

    /// Clears all faults, and switches the power on again.
    pub fn heal(&self) {
        let mut state = self.shared.state();
        state.faults.clear();
        state.powered = true;
    }

    /// Kills the users of the disk: everything written is present, synced or not, and open files are never closed.
    pub fn kill(&self) -> io::Result<()> {
        self.lose(CacheLoss::Nothing)
    }

    /// Cuts the power: every file gets the content of its last sync.
    ///
    /// Open files stay dead for ever; after `heal`, files can be opened again. A file that was created and never synced
    /// is gone. A deletion counts as durable at once, which is kinder than a real disk.
    pub fn cut_power(&self) -> io::Result<()> {
        self.lose(CacheLoss::All)
    }

    /// Cuts the power in the middle of writing: of the 512-byte sectors not yet synced, some were written.
    pub fn cut_power_torn(&self, seed: u64) -> io::Result<()> {
        self.lose(CacheLoss::Some { seed })
    }

    fn lose(&self, loss: CacheLoss) -> io::Result<()> {
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

static DISKS: Mutex<Vec<Weak<SharedDisk>>> = Mutex::new(Vec::new());

/// A file on one of the disks. A file opened before a power cut has an older boot than the disk.
#[derive(Debug, Clone)]
pub(crate) struct DiskFile {
    disk: Arc<SharedDisk>,
    file: Arc<Path>,
    boot: u64,
}

/// What happens to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationVerdict {
    Pass,
    Fail(c_int),
    /// Write half of the bytes, then report that the disk is full.
    HalfThenFull,
}

/// The disk during an operation: nothing else happens to it meanwhile.
#[derive(Debug)]
pub(crate) struct OperationTurn<'a> {
    state: MutexGuard<'a, DiskState>,
    file: &'a Path,
    pub(crate) verdict: OperationVerdict,
}

impl DiskFile {
    /// Finds the disk of a file: the one with the nearest directory above it, and of two the newer one.
    pub(crate) fn of(file: &Path) -> Option<DiskFile> {
        let disks: Vec<Arc<SharedDisk>> = lock(&DISKS).iter().filter_map(Weak::upgrade).collect();
        let disk = disks
            .into_iter()
            .filter(|disk| file.starts_with(&disk.directory))
            .max_by_key(|disk| disk.directory.components().count())?;
        let boot = disk.state().boot;
        Some(DiskFile { disk, file: file.into(), boot })
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The length of the file that SQLite's connections share as memory.
    pub(crate) fn shared_memory_bytes(&self) -> u64 {
        std::fs::metadata(cache::beside(&self.file, "-shm")).map_or(0, |found| found.len())
    }

    pub(crate) fn begin(&self, action: DiskAction) -> OperationTurn<'_> {
        let mut state = self.disk.state();
        let verdict = if state.is_dead(self.boot) {
            OperationVerdict::Fail(code_of_io_error(action))
        } else {
            state.verdict_for(action, &self.file)
        };
        OperationTurn { state, file: &self.file, verdict }
    }
}

impl OperationTurn<'_> {
    /// Updates the cache after the real disk's operation, if there is a cache.
    pub(crate) fn update_cache(&mut self, news: impl FnOnce(&mut WriteCache, &Path)) {
        if let Some(cache) = &mut self.state.cache {
            news(cache, self.file);
        }
    }
}

#[derive(Debug)]
struct SharedDisk {
    directory: PathBuf,
    state: Mutex<DiskState>,
}

impl SharedDisk {
    fn state(&self) -> MutexGuard<'_, DiskState> {
        lock(&self.state)
    }
}

#[derive(Debug)]
struct DiskState {
    /// Grows with every power cut and every kill.
    boot: u64,
    powered: bool,
    history: Vec<DiskOperation>,
    failures: u64,
    faults: Vec<PlannedFault>,
    dies_at: Option<u64>,
    cache: Option<WriteCache>,
}

#[derive(Debug)]
struct PlannedFault {
    /// The number of the first operation that it may hit.
    from: u64,
    kind: DiskFaultKind,
    /// Whether the short write has happened.
    is_full: bool,
}

impl DiskState {
    fn is_dead(&self, boot: u64) -> bool {
        !self.powered || boot != self.boot
    }

    fn verdict_for(&mut self, action: DiskAction, file: &Arc<Path>) -> OperationVerdict {
        let number = self.history.len() as u64 + 1;
        if self.dies_at == Some(number) {
            die();
        }
        let hit = self.faults.iter().position(|fault| fault.from <= number && fits(fault, action));
        self.history.push(DiskOperation { action, file: file.clone(), failed: hit.is_some() });
        let Some(hit) = hit else { return OperationVerdict::Pass };
        self.failures += 1;
        if action == DiskAction::Sync
            && let Some(cache) = &mut self.cache
        {
            cache.sync_failed(file);
        }
        match self.faults[hit].kind {
            DiskFaultKind::IoForEver => OperationVerdict::Fail(code_of_io_error(action)),
            DiskFaultKind::FullShortWrite if self.faults[hit].is_full => {
                OperationVerdict::Fail(code_of_full_disk(action))
            }
            DiskFaultKind::FullShortWrite => {
                self.faults[hit].is_full = true;
                OperationVerdict::HalfThenFull
            }
            DiskFaultKind::FullOnce => {
                self.faults.remove(hit);
                OperationVerdict::Fail(code_of_full_disk(action))
            }
            DiskFaultKind::IoOnce | DiskFaultKind::SyncError => {
                self.faults.remove(hit);
                OperationVerdict::Fail(code_of_io_error(action))
            }
        }
    }
}

/// Ends the process as `kill -9` does.
fn die() {
    let killed = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    panic!("the process could not kill itself: {killed:?}");
}

fn fits(fault: &PlannedFault, action: DiskAction) -> bool {
    if fault.is_full { needs_room(action) } else { fault.kind.fits(action) }
}

fn needs_room(action: DiskAction) -> bool {
    matches!(action, DiskAction::Open { new: true } | DiskAction::Write | DiskAction::MapSharedMemory { grows: true })
}

// SQLite's own file system returns the same codes.
fn code_of_io_error(action: DiskAction) -> c_int {
    match action {
        DiskAction::Open { .. } => ffi::SQLITE_CANTOPEN,
        DiskAction::Read => ffi::SQLITE_IOERR_READ,
        DiskAction::Write => ffi::SQLITE_IOERR_WRITE,
        DiskAction::Truncate => ffi::SQLITE_IOERR_TRUNCATE,
        DiskAction::Sync => ffi::SQLITE_IOERR_FSYNC,
        DiskAction::Delete => ffi::SQLITE_IOERR_DELETE,
        DiskAction::MapSharedMemory { .. } => ffi::SQLITE_IOERR_SHMMAP,
    }
}

fn code_of_full_disk(action: DiskAction) -> c_int {
    match action {
        DiskAction::Write => ffi::SQLITE_FULL,
        DiskAction::MapSharedMemory { .. } => ffi::SQLITE_IOERR_SHMSIZE,
        other => code_of_io_error(other),
    }
}

// A test that panicked while it held the lock must not hide its message behind a second panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
