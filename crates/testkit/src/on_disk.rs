//! The real store in a directory that is gone afterwards.

use rutter_core::time::Timestamp;
use rutter_store::{Options, Store};
use std::sync::Arc;

/// Opens an empty database and closes it after the work is done.
pub fn on_sqlite<T>(work: impl FnOnce(&Store) -> T) -> T {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let options = Options {
        free_bytes_min: 0,
        reserve_bytes: 0,
        ..Options::new(directory.path(), Arc::new(|| Timestamp(0)))
    };
    let store = Store::open(options).unwrap_or_else(|error| panic!("a new database does not open: {error}"));
    work(&store)
}
