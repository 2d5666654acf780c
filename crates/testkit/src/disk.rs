//! Failing disks and dying processes, to test the store.
//!
//! Make a [`FaultyDisk`] for a directory, open databases in it through the file system called [`VFS`], and plan
//! faults:
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! use rusqlite::{Connection, OpenFlags};
//! use rutter_testkit::disk::{DiskFault, DiskFaultKind, FaultyDisk, VFS};
//!
//! let disk = FaultyDisk::new(directory.path());
//! let db = Connection::open_with_flags_and_vfs(directory.path().join("db"), OpenFlags::default(), VFS)?;
//! disk.fail(DiskFault { at: 3, kind: DiskFaultKind::IoForEver });
//! assert!(db.execute_batch("create table number (value integer)").is_err());
//! disk.heal();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To test every point of a scenario, run it once, read [`FaultyDisk::operations`], and run it again with a fault at
//! each of them. To cut the power at such a point, make the disk with [`FaultyDisk::with_volatile_cache`], let
//! [`DiskFaultKind::IoForEver`] stop the scenario there, and call [`FaultyDisk::cut_power`] or
//! [`FaultyDisk::cut_power_torn`]; then drop what was open, [`FaultyDisk::heal`], and open again. Disks of different
//! directories are independent, so tests may run in parallel.

pub mod account;
pub mod cases;
pub mod check;
mod device;
pub mod shapes;
#[allow(unsafe_code, reason = "a file system for SQLite is written against its C interface")]
mod vfs;
pub mod workload;

pub use device::{DiskAction, DiskFault, DiskFaultKind, DiskOperation, FaultyDisk};
pub use vfs::{VFS, register};
