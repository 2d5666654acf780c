//! The real store in a temporary directory.

use rutter_core::time::Timestamp;
use rutter_store::{SqliteOptions, SqliteStore};
use std::sync::Arc;

/// Opens an empty database, and closes it after the work.
pub fn on_sqlite<T>(work: impl FnOnce(&SqliteStore) -> T) -> T {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let options = SqliteOptions {
        free_bytes_min: 0,
        reserve_bytes: 0,
        ..SqliteOptions::new(directory.path(), Arc::new(|| Timestamp(0)))
    };
    let store = SqliteStore::open(options).unwrap_or_else(|error| panic!("a new database does not open: {error}"));
    work(&store)
}
