//! An open file: SQLite's calls go to the real file behind it, unless the disk fails them.

use crate::disk::device::{DiskAction, DiskFile, OperationVerdict, WriteCache};
use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR, SQLITE_OK, sqlite3_file, sqlite3_int64, sqlite3_io_methods};
use std::ffi::{c_int, c_void};
use std::path::Path;

/// What SQLite holds. The real file follows it in the same allocation.
#[repr(C)]
pub(super) struct FaultyFile {
    base: sqlite3_file,
    opened: *mut OpenedFile,
}

struct OpenedFile {
    /// Each file has its own, because not every real file supports every method.
    methods: sqlite3_io_methods,
    disk_file: Option<DiskFile>,
}

/// The real file behind ours.
///
/// # Safety
/// `file` points to `szOsFile` bytes of our file system; so it is for all functions here.
pub(super) unsafe fn below(file: *mut sqlite3_file) -> *mut sqlite3_file {
    unsafe { file.cast::<FaultyFile>().add(1).cast() }
}

/// Makes our file from memory in which the real file has just been opened.
pub(super) unsafe fn begin(file: *mut sqlite3_file, place: Option<DiskFile>) {
    unsafe {
        let real = &*(*below(file)).pMethods;
        let opened = Box::into_raw(Box::new(OpenedFile { methods: methods(real), disk_file: place }));
        file.cast::<FaultyFile>()
            .write(FaultyFile { base: sqlite3_file { pMethods: &raw const (*opened).methods }, opened });
    }
}

/// Reads the content of the real file; as much as can be read.
pub(super) unsafe fn content(file: *mut sqlite3_file) -> Vec<u8> {
    unsafe {
        let mut size: sqlite3_int64 = 0;
        if file_size(file, &raw mut size) != SQLITE_OK {
            return Vec::new();
        }
        let mut content = vec![0; size as usize];
        match real(file).xRead {
            Some(read) if size > 0 => read(below(file), content.as_mut_ptr().cast(), size as c_int, 0),
            _ => SQLITE_OK,
        };
        content
    }
}

fn methods(real: &sqlite3_io_methods) -> sqlite3_io_methods {
    // SQLite uses the version and missing methods to find out what a file supports: both must be the real ones.
    sqlite3_io_methods {
        iVersion: real.iVersion,
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        xFileSize: Some(file_size),
        xLock: Some(lock),
        xUnlock: Some(unlock),
        xCheckReservedLock: Some(check_reserved_lock),
        xFileControl: Some(file_control),
        xSectorSize: Some(sector_size),
        xDeviceCharacteristics: Some(device_characteristics),
        xShmMap: real.xShmMap.and(Some(shm_map)),
        xShmLock: real.xShmLock.and(Some(shm_lock)),
        xShmBarrier: real.xShmBarrier.and(Some(shm_barrier)),
        xShmUnmap: real.xShmUnmap.and(Some(shm_unmap)),
        xFetch: real.xFetch.and(Some(fetch)),
        xUnfetch: real.xUnfetch.and(Some(unfetch)),
    }
}

unsafe fn real<'a>(file: *mut sqlite3_file) -> &'a sqlite3_io_methods {
    unsafe { &*(*below(file)).pMethods }
}

unsafe fn disk_file<'a>(file: *mut sqlite3_file) -> Option<&'a DiskFile> {
    unsafe { (*(*file.cast::<FaultyFile>()).opened).disk_file.as_ref() }
}

/// Calls the real method of the same name.
macro_rules! real {
    ($method:ident($file:ident $(, $argument:expr)*)) => {
        match real($file).$method {
            Some(method) => method(below($file) $(, $argument)*),
            None => SQLITE_IOERR,
        }
    };
}

/// A method that cannot be made to fail.
macro_rules! pass {
    ($name:ident, $method:ident($($argument:ident: $type:ty),*)) => {
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) -> c_int {
            unsafe { real!($method(file $(, $argument)*)) }
        }
    };
}

pass!(file_size, xFileSize(size: *mut sqlite3_int64));
pass!(lock, xLock(level: c_int));
pass!(unlock, xUnlock(level: c_int));
pass!(check_reserved_lock, xCheckReservedLock(is_reserved: *mut c_int));
pass!(file_control, xFileControl(code: c_int, argument: *mut c_void));
pass!(sector_size, xSectorSize());
pass!(device_characteristics, xDeviceCharacteristics());
pass!(shm_lock, xShmLock(offset: c_int, count: c_int, flags: c_int));
pass!(shm_unmap, xShmUnmap(delete: c_int));
pass!(fetch, xFetch(offset: sqlite3_int64, length: c_int, page: *mut *mut c_void));
pass!(unfetch, xUnfetch(offset: sqlite3_int64, page: *mut c_void));

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    unsafe {
        if let Some(barrier) = real(file).xShmBarrier {
            barrier(below(file));
        }
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    unsafe {
        let code = real!(xClose(file));
        drop(Box::from_raw((*file.cast::<FaultyFile>()).opened));
        (*file).pMethods = std::ptr::null();
        code
    }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, bytes: *mut c_void, length: c_int, offset: sqlite3_int64) -> c_int {
    unsafe { run_operation(file, DiskAction::Read, || real!(xRead(file, bytes, length, offset)), |_, _| ()) }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    unsafe {
        let Some(place) = disk_file(file) else { return real!(xWrite(file, bytes, length, offset)) };
        let mut turn = place.begin(DiskAction::Write);
        let (length, answer) = match turn.verdict {
            OperationVerdict::Fail(code) => return code,
            OperationVerdict::HalfThenFull => (length / 2, SQLITE_FULL),
            OperationVerdict::Pass => (length, SQLITE_OK),
        };
        let code = real!(xWrite(file, bytes, length, offset));
        if code != SQLITE_OK {
            return code;
        }
        let bytes = std::slice::from_raw_parts(bytes.cast(), length as usize);
        turn.update_cache(|cache, path| cache.wrote(path, offset as usize, bytes));
        answer
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: sqlite3_int64) -> c_int {
    let news = |cache: &mut WriteCache, path: &Path| cache.truncated(path, length as usize);
    unsafe { run_operation(file, DiskAction::Truncate, || real!(xTruncate(file, length)), news) }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    unsafe { run_operation(file, DiskAction::Sync, || real!(xSync(file, flags)), WriteCache::synced) }
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    memory: *mut *mut c_void,
) -> c_int {
    unsafe {
        *memory = std::ptr::null_mut();
        let map = || real!(xShmMap(file, region, size, extend, memory));
        let needed = (region as u64 + 1) * size as u64;
        let grows = extend != 0 && disk_file(file).is_some_and(|place| place.shared_memory_bytes() < needed);
        run_operation(file, DiskAction::MapSharedMemory { grows }, map, |_, _| ())
    }
}

/// Performs an operation if the disk allows it, and updates the cache.
unsafe fn run_operation(
    file: *mut sqlite3_file,
    action: DiskAction,
    act: impl FnOnce() -> c_int,
    news: impl FnOnce(&mut WriteCache, &Path),
) -> c_int {
    let Some(place) = (unsafe { disk_file(file) }) else { return act() };
    let mut turn = place.begin(action);
    if let OperationVerdict::Fail(code) = turn.verdict {
        return code;
    }
    let code = act();
    if code == SQLITE_OK {
        turn.update_cache(news);
    }
    code
}
