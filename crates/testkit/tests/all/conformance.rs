//! Every store passes the one suite.

use rutter_testkit::conformance::{CASES, failures};
use rutter_testkit::memory::MemoryStore;
use rutter_testkit::on_disk::on_sqlite;
use std::collections::BTreeSet;

#[test]
fn the_store_in_memory_does_what_a_store_must() {
    assert_eq!(failures(&|case| case(&MemoryStore::default())), Vec::<String>::new());
}

#[test]
fn there_are_many_cases_and_no_two_share_a_name() {
    let names: Vec<&str> = CASES.iter().copied().flatten().map(|(name, _)| *name).collect();
    assert!(names.len() >= 150, "{}", names.len());
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn sqlite_does_what_a_store_must() {
    assert_eq!(failures(&|case| on_sqlite(|store| case(store))), Vec::<String>::new());
}
