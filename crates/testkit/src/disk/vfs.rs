//! The file system that SQLite sees: the real one, through the disk of the file's directory.

mod file;

use crate::disk::device::{DiskAction, DiskFile, OperationVerdict, WriteCache};
use file::FaultyFile;
use rusqlite::ffi::{
    SQLITE_IOERR, SQLITE_OK, SQLITE_OPEN_CREATE, SQLITE_OPEN_READWRITE, sqlite3_file, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register,
};
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

/// The name to open databases with.
pub const VFS: &str = "failing-disk";
const NAME: &CStr = c"failing-disk";

/// Registers the file system with SQLite, once per process. [`FaultyDisk`](super::FaultyDisk) does this by itself.
pub fn register() -> &'static str {
    real();
    VFS
}

/// The file system underneath. SQLite never unregisters its own.
struct SystemVfs(*mut sqlite3_vfs);

// SAFETY: SQLite itself calls a file system from every thread and expects it to support that.
unsafe impl Send for SystemVfs {}
unsafe impl Sync for SystemVfs {}

fn real() -> *mut sqlite3_vfs {
    static REAL: OnceLock<SystemVfs> = OnceLock::new();
    let real = REAL.get_or_init(|| {
        // SAFETY: the default file system is static; ours is leaked, so that it is too.
        unsafe {
            let real = sqlite3_vfs_find(ptr::null());
            assert!(!real.is_null(), "SQLite has no default file system");
            // What we do not replace ("unix" needs only its own data for it) is the real implementation.
            let own = Box::leak(Box::new(sqlite3_vfs {
                pNext: ptr::null_mut(),
                zName: NAME.as_ptr(),
                szOsFile: size_of::<FaultyFile>() as c_int + (*real).szOsFile,
                xOpen: Some(open),
                xDelete: Some(delete),
                ..*real
            }));
            assert_eq!(sqlite3_vfs_register(own, 0), SQLITE_OK, "SQLite refused the file system");
            SystemVfs(real)
        }
    });
    real.0
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes a name that is null or lives as long as the file, and `szOsFile` bytes for the file.
    unsafe {
        // SQLite closes what has methods, even if opening it failed.
        (*file).pMethods = ptr::null();
        let writes = flags & (SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) != 0;
        let Some(place) = file_of(name) else { return open_real(name, file, flags, flags_out, None) };
        if !writes {
            return open_real(name, file, flags, flags_out, Some(place));
        }
        let is_new = !place.file().exists();
        let turn_place = place.clone();
        let mut turn = turn_place.begin(DiskAction::Open { new: is_new });
        if let OperationVerdict::Fail(code) = turn.verdict {
            return code;
        }
        let code = open_real(name, file, flags, flags_out, Some(place));
        if code == SQLITE_OK {
            turn.update_cache(|cache, path| cache.opened(path, is_new, || file::content(file)));
        }
        code
    }
}

unsafe fn open_real(
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
    place: Option<DiskFile>,
) -> c_int {
    // SAFETY: as for `open`; the real file lies behind ours in the same memory.
    unsafe {
        let below = file::below(file);
        (*below).pMethods = ptr::null();
        let Some(open) = (*real()).xOpen else { return SQLITE_IOERR };
        let code = open(real(), name, below, flags, flags_out);
        if code == SQLITE_OK {
            file::begin(file, place);
        } else if let Some(methods) = (*below).pMethods.as_ref()
            && let Some(close) = methods.xClose
        {
            close(below);
        }
        code
    }
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    // SAFETY: SQLite passes a name that ends with a zero.
    unsafe {
        let Some(delete) = (*real()).xDelete else { return SQLITE_IOERR };
        let Some(place) = file_of(name) else { return delete(real(), name, sync_directory) };
        let mut turn = place.begin(DiskAction::Delete);
        if let OperationVerdict::Fail(code) = turn.verdict {
            return code;
        }
        let code = delete(real(), name, sync_directory);
        if code == SQLITE_OK {
            turn.update_cache(WriteCache::deleted);
        }
        code
    }
}

/// Files without a name are SQLite's own temporary files and belong to no disk.
unsafe fn file_of(name: *const c_char) -> Option<DiskFile> {
    if name.is_null() {
        return None;
    }
    // SAFETY: not null, and SQLite ends it with a zero.
    let name = unsafe { CStr::from_ptr(name) };
    DiskFile::of(Path::new(OsStr::from_bytes(name.to_bytes())))
}
