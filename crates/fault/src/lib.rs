//! Disks that fail and processes that die: how the store is tortured. Tests only.
//!
//! Make a [`Disk`] for a directory, open databases in it through the file system called [`VFS`], and say what
//! shall go wrong:
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! use rusqlite::{Connection, OpenFlags};
//! use rutter_fault::{Disk, Fault, Kind, VFS};
//!
//! let disk = Disk::new(directory.path());
//! let db = Connection::open_with_flags_and_vfs(directory.path().join("db"), OpenFlags::default(), VFS)?;
//! disk.fail(Fault { at: 3, kind: Kind::IoForEver });
//! assert!(db.execute_batch("create table number (value integer)").is_err());
//! disk.heal();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To try every point of a story, play it once, ask [`Disk::operations`], and play it again with a fault at
//! each of them. To cut the power at such a point, make the disk with [`Disk::with_volatile_cache`], let
//! [`Kind::IoForEver`] stop the story there, and call [`Disk::cut_power`] or [`Disk::cut_power_torn`]; then
//! drop what was open, [`Disk::heal`], and open again. Disks of different directories do not know of each
//! other, so tests may go side by side.

pub mod account;
pub mod bed;
pub mod check;
mod disk;
pub mod shapes;
mod vfs;
pub mod workload;

pub use disk::{Action, Disk, Fault, Kind, Operation};
pub use vfs::{VFS, register};
