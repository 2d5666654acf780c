//! Exports, receipts and checks of a running store are those of its file.

use crate::ledger::fixture::{behind_the_back, carry_out, database, identity, open, save_plan, scratch, tenant};
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::export::ExportLine;
use rutter_core::journal::verify::Assurance;
use rutter_core::port::Error;
use rutter_core::port::proof::LedgerProof;
use rutter_core::port::query::Pagination;
use rutter_store::{SqliteArchive, SqliteStore, wait};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The lines of an export of the running store, at most so many.
fn exported(
    store: &SqliteStore,
    executions: Option<Vec<ExecutionId>>,
    lines_max: usize,
) -> Result<Vec<ExportLine>, Error> {
    let lines = Arc::<Mutex<Vec<ExportLine>>>::default();
    let taken = Arc::clone(&lines);
    let each = move |line| {
        let mut lines = taken.lock().unwrap();
        lines.push(line);
        lines.len() < lines_max
    };
    wait(store.export(&tenant(), executions, Box::new(each)))?;
    let lines = lines.lock().unwrap().clone();
    Ok(lines)
}

fn archived(directory: &Path, executions: Option<&[ExecutionId]>) -> Vec<ExportLine> {
    let mut lines = Vec::new();
    let mut each = |line| {
        lines.push(line);
        Ok(())
    };
    SqliteArchive::open(directory).unwrap().export(&tenant(), executions, &mut each).unwrap();
    lines
}

#[test]
fn an_export_of_a_running_store_is_that_of_its_file() {
    let directory = scratch();
    database(directory.path(), 6);
    let store = open(directory.path());
    let all = archived(directory.path(), None);
    assert_eq!(exported(&store, None, usize::MAX).unwrap(), all);
    assert_eq!(exported(&store, None, 3).unwrap(), all[..3], "the export stops on request");
    let one = vec![identity(2).execution];
    assert_eq!(exported(&store, Some(one.clone()), usize::MAX).unwrap(), archived(directory.path(), Some(&one)));
    let unknown = exported(&store, Some(vec![ExecutionId::new("exec_none")]), 9).unwrap_err();
    assert_eq!(unknown.code(), "store.not_found");
}

#[test]
fn a_receipt_is_the_same_from_the_store_and_from_its_file() {
    let directory = scratch();
    database(directory.path(), 1);
    let store = open(directory.path());
    let archive = SqliteArchive::open(directory.path()).unwrap();
    for seq in [None, Some(1), Some(2)] {
        let receipt = wait(store.receipt(&identity(0), seq)).unwrap();
        assert_eq!(receipt, archive.receipt(&identity(0), seq).unwrap());
    }
    assert_eq!(wait(store.receipt(&identity(0), Some(99))).unwrap_err().code(), "store.not_found");
    assert_eq!(wait(store.receipt(&identity(7), None)).unwrap_err().code(), "store.not_found");
}

#[test]
fn signed_heads_are_listed_newest_first() {
    let directory = scratch();
    let store = open(directory.path());
    assert_eq!(wait(store.public_key()).unwrap(), None);
    assert!(wait(store.checkpoints(&tenant(), Pagination::first(5))).unwrap().items.is_empty());
    let plan = save_plan(&store);
    let mut notes = Vec::new();
    for number in 0..5 {
        carry_out(&store, &plan, number, 2);
        notes.insert(0, wait(store.sign(&tenant())).unwrap().unwrap());
    }
    for limit in [1, 2, 5, 9] {
        let (mut heads, mut after) = (Vec::new(), None);
        loop {
            let listing = wait(store.checkpoints(&tenant(), Pagination { limit, after: after.take() })).unwrap();
            heads.extend(listing.items);
            match listing.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(heads.iter().map(|head| &head.note).collect::<Vec<_>>(), notes.iter().collect::<Vec<_>>());
        assert!(heads.is_sorted_by(|newer, older| newer.size > older.size));
    }
    let key = SqliteArchive::open(directory.path()).unwrap().public_key().unwrap().unwrap();
    assert_eq!(wait(store.public_key()).unwrap(), Some(key.to_string()));
}

#[test]
fn a_running_store_verifies_itself_and_finds_tampering() {
    let directory = scratch();
    let path = database(directory.path(), 6);
    let store = open(directory.path());
    let checked = wait(store.verify(&tenant())).unwrap();
    assert!(checked.is_clean(), "{checked:?}");
    assert_eq!(checked.verdict.assurance, Assurance::Signed);
    let nobody = wait(store.verify(&TenantId::new("nobody"))).unwrap_err();
    assert_eq!(nobody.code(), "store.not_found");

    behind_the_back(&path).execute("update execution set seq = seq - 1 where id = 'exec_3'", []).unwrap();
    let checked = wait(store.verify(&tenant())).unwrap();
    assert!(checked.verdict.is_clean() && checked.rows.len() == 1, "{checked:?}");
    behind_the_back(&path).execute("update entry set hash = zeroblob(32) where place % 7 = 3", []).unwrap();
    let checked = wait(store.verify(&tenant())).unwrap();
    assert!(!checked.verdict.is_clean(), "{checked:?}");
}

#[test]
fn a_store_reports_its_health() {
    let directory = scratch();
    let store = open(directory.path());
    let idle = wait(store.health()).unwrap();
    assert_eq!((idle.trouble, idle.queue, idle.schema), (None, 0, 7));
    assert!(idle.free_bytes > 0 && idle.append_micros.iter().all(|(_, count)| *count == 0));
    let plan = save_plan(&store);
    carry_out(&store, &plan, 0, 2);
    let busy = wait(store.health()).unwrap();
    assert!(busy.append_micros.is_sorted(), "{busy:?}");
    // The plan, the opening, the start and two answers.
    assert_eq!(busy.append_micros.last(), Some(&(u64::MAX, 5)));
    assert!(busy.append_micros_sum > 0 && busy.database_bytes > 0);
}

#[test]
fn a_store_that_cannot_write_says_why() {
    let directory = scratch();
    let path = database(directory.path(), 3);
    behind_the_back(&path).execute("update entry set hash = zeroblob(32) where place % 7 = 3", []).unwrap();
    let store = open(directory.path());
    let trouble = wait(store.health()).unwrap().trouble.unwrap();
    assert!(trouble.contains("verified and exported"), "{trouble}");
}
