//! Where the store is tortured: directories in memory, many cases side by side.

use crate::vfs::VFS;
use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use rutter_store::{Options, Store};
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// In memory where there is a place for it: thousands of syncs would keep a real disk busy.
pub fn directory() -> TempDir {
    let memory = tempfile::Builder::new().prefix("rutter-").tempdir_in("/dev/shm");
    memory.or_else(|_| tempfile::tempdir()).expect("a test needs a directory")
}

/// Opens a store through the failing file system. One reader, so that operations come in the same order each time.
pub fn open(directory: &Path) -> Result<Store, Error> {
    crate::vfs::register();
    let mut options = Options::new(directory, Arc::new(|| Timestamp(1_000)));
    (options.free_bytes_min, options.reserve_bytes) = (0, 0);
    (options.vfs, options.readers) = (Some(VFS), 1);
    Store::open(options)
}

/// Plays every case, as many at a time as there are processors, and returns what each gave. Panics with the names
/// of those that failed.
///
/// With `RUTTER_CASE` set, only the case of that name is played; with `RUTTER_EVERY=1` none is left out by [`some`].
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
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().expect("no thread panicked");
    let shown = failed.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failed.is_empty(), "{} of {} cases failed:\n{shown}", failed.len(), cases.len());
    played.into_inner().expect("no thread panicked")
}

/// Every `stride`-th of them, or all with `RUTTER_EVERY=1`, or where one is named.
pub fn some<T>(all: impl IntoIterator<Item = T>, stride: usize) -> Vec<T> {
    let is_set = |name| std::env::var_os(name).is_some();
    let stride = if is_set("RUTTER_EVERY") || is_set("RUTTER_CASE") { 1 } else { stride };
    all.into_iter().step_by(stride).collect()
}
