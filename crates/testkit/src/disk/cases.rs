//! Runs the store tests: directories in memory, many cases in parallel.

use crate::disk::vfs::VFS;
use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use rutter_store::{SqliteOptions, SqliteStore};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// In memory if possible: thousands of syncs would be slow on a real disk.
pub fn directory() -> TempDir {
    let memory = tempfile::Builder::new().prefix("rutter-").tempdir_in("/dev/shm");
    memory.or_else(|_| tempfile::tempdir()).expect("a test needs a directory")
}

/// How long to wait for a lock.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Opens a store through the failing file system.
///
/// While a thread starts a process, that process has every open file of its parent for a moment, so a store that was
/// just closed still seems to be in use.
pub fn open(directory: &Path) -> Result<SqliteStore, Error> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match open_once(directory) {
            Err(Error::Locked { .. }) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            answer => return answer,
        }
    }
}

/// One reader, so that operations happen in the same order each time.
fn open_once(directory: &Path) -> Result<SqliteStore, Error> {
    crate::disk::vfs::register();
    let mut options = SqliteOptions::new(directory, Arc::new(|| Timestamp(1_000)));
    (options.free_bytes_min, options.reserve_bytes) = (0, 0);
    (options.vfs, options.readers) = (Some(VFS), 1);
    SqliteStore::open(options)
}

/// Runs every case, as many at a time as there are processors, and returns their results. Panics with the names of
/// those that failed.
///
/// With `RUTTER_CASE` set, only the case of that name runs; with `RUTTER_EVERY=1` [`some`] leaves out none.
pub fn play_all<T: Sync, R: Send>(
    cases: &[T],
    name: impl Fn(&T) -> String + Sync,
    play: impl Fn(&T) -> Result<R, String> + Sync,
) -> Vec<R> {
    let only = std::env::var("RUTTER_CASE").ok();
    let next = AtomicUsize::new(0);
    let (played, failed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = name(case);
            if only.as_ref().is_some_and(|only| *only != name) {
                continue;
            }
            match play(case) {
                Ok(given) => played.lock().expect("only panics poison").push(given),
                Err(why) => failed.lock().expect("only panics poison").push(format!("{name}: {why}")),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().expect("no thread panicked");
    let text = failed.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failed.is_empty(), "{} of {} cases failed:\n{text}", failed.len(), cases.len());
    played.into_inner().expect("no thread panicked")
}

/// Every `stride`-th of them, or all with `RUTTER_EVERY=1` or `RUTTER_CASE`.
pub fn some<T>(all: impl IntoIterator<Item = T>, stride: usize) -> Vec<T> {
    let is_set = |name| std::env::var_os(name).is_some();
    let stride = if is_set("RUTTER_EVERY") || is_set("RUTTER_CASE") { 1 } else { stride };
    all.into_iter().step_by(stride).collect()
}
