//! When checkpoints are signed, and what is detected when the database is opened.

use crate::ledger::fixture::{
    carry_out, database, identity, open, options, save_plan, scratch, tenant, trusted, verify,
};
use rutter_core::journal::checkpoint::Checkpoint;
use rutter_core::journal::export::ExportLine;
use rutter_core::journal::note::SignedNote;
use rutter_core::journal::verify::{Assurance, TrustAnchors, verify_export};
use rutter_core::port::Error;
use rutter_core::port::journal::Journal;
use rutter_core::port::proof::LedgerProof;
use rutter_store::{SqliteArchive, SqliteStore, wait};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn size_of(note: &str) -> u64 {
    Checkpoint::parse(SignedNote::parse(note).unwrap().unverified_text()).unwrap().size
}

#[test]
fn the_key_is_created_at_first_use_and_only_its_owner_can_read_it() {
    let directory = scratch();
    let store = open(directory.path());
    assert!(!directory.path().join("ledger.key").exists());
    save_plan(&store);
    let note = wait(store.sign(&tenant())).unwrap().unwrap();
    assert_eq!(size_of(&note), 1);
    let mode = fs::metadata(directory.path().join("ledger.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let public = fs::read_to_string(directory.path().join("ledger.pub")).unwrap();
    let key = SqliteArchive::open(directory.path()).unwrap().public_key().unwrap().unwrap();
    assert_eq!(public.trim(), key.to_string());
    assert_eq!(wait(store.sign(&tenant())).unwrap(), None, "nothing is new");
}

#[test]
fn a_thousand_entries_are_signed_without_being_asked_and_the_rest_at_the_end() {
    let directory = scratch();
    let path = database(directory.path(), 9);
    let store = open(directory.path());
    let plan = save_plan(&store);
    for number in 100..300 {
        carry_out(&store, &plan, number, 2);
    }
    drop(store);
    let archive = SqliteArchive::open_file(&path).unwrap();
    let stats = archive.stats().unwrap();
    let [tenant_stats] = &stats.tenants[..] else { panic!("{stats:?}") };
    assert!(tenant_stats.entries > 1_000);
    assert_eq!(tenant_stats.covered, tenant_stats.entries);
    let checked = verify(&path, trusted(directory.path()), true).unwrap();
    assert!(checked.is_clean(), "{checked:?}");
    assert_eq!(checked.verdict.assurance, Assurance::Signed);
    assert!(checked.verdict.checkpoints >= 3, "{checked:?}");
    assert_eq!(checked.verdict.unprotected(), 0);
}

#[test]
fn an_export_verifies_like_its_database() {
    let directory = scratch();
    let path = database(directory.path(), 25);
    let mut archive = SqliteArchive::open_file(&path).unwrap();
    let executions = [identity(3).execution, identity(24).execution];
    for chosen in [None, Some(&executions[..])] {
        let mut lines: Vec<String> = Vec::new();
        archive
            .export(&tenant(), chosen, &mut |line: ExportLine| {
                let mut text = String::new();
                line.write(&mut text).unwrap();
                lines.push(text.trim_end_matches('\n').to_owned());
                Ok(())
            })
            .unwrap();
        let verdict = verify_export(&lines, trusted(directory.path()));
        assert!(verdict.is_clean(), "{verdict}");
        assert_eq!(verdict.assurance, Assurance::Signed);
        assert_eq!(verdict.executions, if chosen.is_some() { 2 } else { 26 });
        let receipt = archive.receipt(&identity(3), None).unwrap();
        let with_receipt = TrustAnchors { receipts: vec![receipt], ..trusted(directory.path()) };
        assert_eq!(verify_export(&lines, with_receipt).assurance, Assurance::Compared);
    }
}

#[test]
fn a_database_that_was_rolled_back_opens_for_reading_only() {
    let directory = scratch();
    let path = database(directory.path(), 10);
    let older = fs::read(&path).unwrap();
    let store = open(directory.path());
    let plan = save_plan(&store);
    carry_out(&store, &plan, 50, 2);
    drop(store);
    fs::write(&path, older).unwrap();
    let store = open(directory.path());
    let trouble = store.trouble().unwrap();
    assert!(trouble.to_string().contains("rolled back"), "{trouble}");
    assert_eq!(wait(store.renew(&rutter_core::id::WorkerId::new("w"), rutter_core::time::Timestamp(1))), Err(trouble));
    assert_eq!(wait(store.load(&identity(3))).unwrap().records.len(), 7);
    assert!(verify(&path, trusted(directory.path()), true).unwrap().is_clean(), "it agrees with itself");
}

#[test]
fn changed_entries_are_noticed_when_the_store_is_opened() {
    let directory = scratch();
    let path = database(directory.path(), 3);
    let connection = crate::ledger::fixture::behind_the_back(&path);
    connection.execute("update entry set hash = zeroblob(32) where seq = 5", []).unwrap();
    drop(connection);
    let store = open(directory.path());
    assert!(matches!(store.trouble(), Some(Error::ReadOnly(_))), "{:?}", store.trouble());
}

#[test]
fn two_tenants_have_ledgers_of_their_own() {
    let directory = scratch();
    let path = database(directory.path(), 2);
    let other = rutter_core::id::TenantId::new("other");
    let mut archive = SqliteArchive::open_file(&path).unwrap();
    assert_eq!(archive.tenants().unwrap(), [tenant()]);
    let none = archive.verify(&other, TrustAnchors::default(), false, &mut |_| {}).unwrap_err();
    assert_eq!(none.code(), "store.not_found");
    drop(SqliteStore::open(options(directory.path())).unwrap());
}
