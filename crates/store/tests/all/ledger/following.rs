//! The feed shows the ledger: the same entries in the same order as an export of it.

use crate::ledger::fixture::{carry_out, open, save_plan, scratch, tenant};
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::journal::export::ExportLine;
use rutter_core::port::feed::LedgerFeed;
use rutter_core::port::upkeep::{CleanedPart, CleaningRequest, StoreMaintenance};
use rutter_core::time::Timestamp;
use rutter_store::{SqliteArchive, SqliteStore, wait};
use std::path::Path;
use std::thread;

const WRITERS: u64 = 8;
const EXECUTIONS_EACH: u64 = 12;

/// Positions and hashes of the entries in an export.
fn exported(directory: &Path) -> Vec<(u64, Hash)> {
    let mut lines = Vec::new();
    let mut archive = SqliteArchive::open(directory).unwrap();
    let mut each = |line| {
        if let ExportLine::Entry(line) = line {
            lines.push((line.leaf.unwrap() + 1, line.hash));
        }
        Ok(())
    };
    archive.export(&tenant(), None, &mut each).unwrap();
    lines
}

/// What a reader that follows from the beginning sees, until the ledger has this size.
fn followed(store: &SqliteStore, size: u64, limit: u32) -> Vec<(u64, Hash)> {
    let (mut seen, mut place) = (Vec::new(), 0);
    while place < size {
        wait(store.wait_beyond(&tenant(), place)).unwrap();
        let stretch = wait(store.entries_after(&tenant(), place, limit)).unwrap();
        assert!(stretch.until > place, "there was more");
        seen.extend(stretch.items.iter().map(|placed| (placed.position, placed.hash)));
        place = stretch.until;
    }
    seen
}

#[test]
fn the_feed_has_the_order_of_the_ledger_with_many_writers() {
    let directory = scratch();
    let store = open(directory.path());
    let plan = save_plan(&store);
    carry_out(&store, &plan, 0, 2);
    let entries_each = wait(store.size(&tenant())).unwrap() - 1;
    let size = 1 + entries_each * (1 + WRITERS * EXECUTIONS_EACH);
    let seen = thread::scope(|scope| {
        let reader = scope.spawn(|| followed(&store, size, 5));
        for writer in 1..=WRITERS {
            let (store, plan) = (&store, &plan);
            scope.spawn(move || {
                for nth in 0..EXECUTIONS_EACH {
                    carry_out(store, plan, writer * 1_000 + nth, 2);
                }
            });
        }
        reader.join().unwrap()
    });
    assert_eq!(wait(store.size(&tenant())).unwrap(), size);
    assert_eq!(seen.len() as u64, size);
    assert_eq!(seen, exported(directory.path()));

    let cleaning = CleaningRequest {
        tenant: tenant(),
        statuses: Vec::new(),
        untouched_since: Timestamp(1_000_000),
        what: CleanedPart::Executions,
        dry_run: false,
        actor: Actor::person("operator"),
        at: Timestamp(2_000_000),
        reason: "a year has passed".into(),
    };
    wait(store.clean(cleaning)).unwrap();
    carry_out(&store, &plan, 9_999, 1);
    let size = wait(store.size(&tenant())).unwrap();
    let left = exported(directory.path());
    assert!((left.len() as u64) < size / 10, "most of it is gone");
    assert_eq!(followed(&store, size, 3), left);
}
