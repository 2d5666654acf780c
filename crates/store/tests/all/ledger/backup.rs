//! Backups of a store in use, and the ledger of a restored one.

use crate::ledger::fixture::{
    carry_out, database, identity, open, options, save_plan, scratch, tenant, trusted, verify,
};
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::journal::verify::TrustAnchors;
use rutter_core::port::journal::Journal;
use rutter_core::port::proof::LedgerProof;
use rutter_store::sqlite::backup::{backup, restore};
use rutter_store::{SqliteArchive, wait};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_backup_taken_under_load_verifies() {
    let directory = scratch();
    let store = open(directory.path());
    let plan = save_plan(&store);
    for number in 0..50 {
        carry_out(&store, &plan, number, 2);
    }
    let done = AtomicBool::new(false);
    let copies = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut number = 1_000;
            while !done.load(Ordering::Relaxed) {
                carry_out(&store, &plan, number, 2);
                number += 1;
            }
            number - 1_000
        });
        let copies: Vec<_> = (0..5)
            .map(|copy| {
                let to = directory.path().join(format!("copy-{copy}.db"));
                (backup(directory.path(), &to, &mut |_, _| {}).unwrap(), to)
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        assert!(writing.join().unwrap() > 0);
        copies
    });
    let mut last = 0;
    for (copied, path) in copies {
        assert!(copied.entries >= last && copied.executions >= 50, "{copied:?}");
        last = copied.entries;
        let checked = verify(&path, TrustAnchors::default(), true).unwrap();
        assert!(checked.is_clean(), "{checked:?}");
    }
    let again = backup(directory.path(), &directory.path().join("copy-0.db"), &mut |_, _| {});
    assert_eq!(again.unwrap_err().code(), "store.invalid");
}

#[test]
fn a_restored_ledger_has_a_new_origin_and_pauses_open_executions() {
    let directory = scratch();
    let store = open(directory.path());
    let plan = save_plan(&store);
    carry_out(&store, &plan, 1, 2);
    carry_out(&store, &plan, 2, 1);
    carry_out(&store, &plan, 3, 0);
    wait(store.sign(&tenant())).unwrap();
    let copy = directory.path().join("copy.db");
    backup(directory.path(), &copy, &mut |_, _| {}).unwrap();
    carry_out(&store, &plan, 4, 2);
    drop(store);
    let before = SqliteArchive::open(directory.path()).unwrap().stats().unwrap().tenants[0].clone();

    let person = Actor::person("operator");
    let here = || options(directory.path());
    let refused = restore(&copy, here(), false, &person, "disk lost").unwrap_err();
    assert_eq!(refused.code(), "store.invalid");
    let restored = restore(&copy, here(), true, &person, "disk lost").unwrap();
    assert_eq!(restored.held, [identity(2), identity(3)]);
    assert!(restored.replaced.unwrap().exists());

    let store = open(directory.path());
    assert_eq!(store.trouble(), None);
    for number in [2, 3] {
        let loaded = wait(store.load(&identity(number))).unwrap();
        let execution = Execution::replay(identity(number), &loaded.records).unwrap();
        assert_eq!(execution.status(), ExecutionStatus::Paused);
    }
    assert_eq!(wait(store.load(&identity(4))).unwrap_err().code(), "store.not_found");
    drop(store);
    let after = SqliteArchive::open(directory.path()).unwrap().stats().unwrap().tenants[0].clone();
    assert_ne!(before.origin, after.origin);
    let path = directory.path().join("rutter.db");
    let checked = verify(&path, trusted(directory.path()), true).unwrap();
    assert!(checked.is_clean(), "{checked:?}");
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let directory = scratch();
    let path = database(directory.path(), 3);
    let copy = directory.path().join("copy.db");
    backup(directory.path(), &copy, &mut |_, _| {}).unwrap();
    let connection = crate::ledger::fixture::behind_the_back(&copy);
    connection
        .execute("update payload set salt = zeroblob(16) where number = (select max(number) from payload)", [])
        .unwrap();
    drop(connection);
    let fresh = scratch();
    let refused = restore(&copy, options(fresh.path()), false, &Actor::person("operator"), "try").unwrap_err();
    assert_eq!(refused.code(), "store.corrupt");
    assert!(!fresh.path().join("rutter.db").exists());
    assert!(verify(&path, TrustAnchors::default(), true).unwrap().is_clean());
}

#[test]
fn an_interrupted_restore_does_not_become_an_empty_database() {
    let directory = scratch();
    std::fs::write(directory.path().join("rutter.unfinished"), b"half").unwrap();
    let refused = rutter_store::SqliteStore::open(options(directory.path())).unwrap_err();
    assert!(refused.to_string().contains("interrupted"), "{refused}");
}
