//! Journals, plans and ledgers on disk, behind the ports of the core.
//!
//! [`sqlite`] is the embedded store: one file, one process, one thread that writes.

pub mod compress;
pub mod sqlite;
mod wait;

pub use sqlite::archive::SqliteArchive;
pub use sqlite::{SqliteOptions, SqliteStore};
pub use wait::wait;
