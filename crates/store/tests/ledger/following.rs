//! The feed shows the ledger: the same entries in the same order as an export of it.

use crate::fixture::{carry_out, open, save_plan, scratch, tenant};
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::journal::export::Line;
use rutter_core::port::feed::Feed;
use rutter_core::port::upkeep::{CleanedPart, Cleaning, Upkeep};
use rutter_core::time::Timestamp;
use rutter_store::{Archive, Store, wait};
use std::path::Path;
use std::thread;

const WRITERS: u64 = 8;
const EXECUTIONS_EACH: u64 = 12;

/// Places and hashes of what an export has of the ledger.
fn exported(directory: &Path) -> Vec<(u64, Hash)> {
    let mut lines = Vec::new();
    let mut archive = Archive::open(directory).unwrap();
    let mut each = |line| {
        if let Line::Entry(line) = line {
            lines.push((line.leaf.unwrap() + 1, line.hash));
        }
        Ok(())
    };
    archive.export(&tenant(), None, &mut each).unwrap();
    lines
}

/// What a reader sees that is there from the beginning, until the ledger has this size.
fn followed(store: &Store, size: u64, limit: u32) -> Vec<(u64, Hash)> {
    let (mut seen, mut place) = (Vec::new(), 0);
    while place < size {
        wait(store.beyond(&tenant(), place)).unwrap();
        let stretch = wait(store.after(&tenant(), place, limit)).unwrap();
        assert!(stretch.until > place, "there was more");
        seen.extend(stretch.items.iter().map(|placed| (placed.place, placed.hash)));
        place = stretch.until;
    }
    seen
}

#[test]
fn the_feed_has_the_order_of_the_ledger_whoever_writes() {
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

    let cleaning = Cleaning {
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
