//! Databases of earlier releases are migrated and keep working.

use crate::ledger::fixture::{carry_out, open, save_plan, scratch, tenant};
use rutter_core::journal::verify::TrustAnchors;
use rutter_core::port::feed::LedgerFeed;
use rutter_core::port::journal::Journal;
use rutter_core::port::outbox::{DeliveryOutbox, NewDelivery, ReaderAdvance};
use rutter_core::port::query::{ExecutionFilter, Pagination, PlanFilter, StoreQuery};
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::time::Timestamp;
use rutter_store::sqlite::migration::{MigrationResult, pending};
use rutter_store::{SqliteArchive, wait};
use serde_json::json;

/// Six executions of the plan of these tests, the last of them half done, and two checkpoints.
const FIRST: &[u8] = include_bytes!("released/1.db.zst");
const EXECUTIONS: usize = 6;

#[test]
fn a_database_of_the_first_schema_keeps_working() {
    let directory = scratch();
    let path = directory.path().join("rutter.db");
    std::fs::write(&path, zstd::decode_all(FIRST).unwrap()).unwrap();
    assert_eq!(pending(directory.path()).unwrap(), MigrationResult { from: 1, to: 7 });
    let refused = SqliteArchive::open(directory.path()).unwrap_err().to_string();
    assert!(refused.contains("rutter db migrate"), "{refused}");

    let store = open(directory.path());
    assert_eq!(store.trouble(), None);
    assert_eq!(pending(directory.path()).unwrap(), MigrationResult { from: 7, to: 7 });
    let listing = wait(store.executions(&tenant(), ExecutionFilter::default(), Pagination::first(100))).unwrap();
    assert_eq!(listing.items.len(), EXECUTIONS);
    let saved = wait(store.plan(&tenant(), &listing.items[0].plan, None)).unwrap().unwrap();
    let tool = saved.plan.steps[0].call.tool.to_string();
    let by_tool = PlanFilter { text: Some(tool), ..PlanFilter::default() };
    let found = wait(store.plans(&tenant(), by_tool, Pagination::first(10))).unwrap().items;
    assert_eq!(found, [saved.summary], "names of tools are indexed when the database is migrated");
    let mut entries = 0;
    for execution in &listing.items {
        let identity = rutter_core::execution::ExecutionIdentity { tenant: tenant(), execution: execution.id.clone() };
        entries += wait(store.load(&identity)).unwrap().records.len() as u64;
    }
    let size = wait(store.size(&tenant())).unwrap();
    assert_eq!(size, entries + 1, "and the plan that was saved");
    assert_eq!(wait(store.entries_after(&tenant(), 0, 1_000)).unwrap().items.len() as u64, size);

    let moved = Some(ReaderAdvance { reader: "webhooks".into(), from: 0, to: size });
    let delivery = NewDelivery {
        destination: "hook_1".into(),
        event: "e1".into(),
        kind: "execution.ended".into(),
        body: b"{}".to_vec(),
        due_at: Timestamp(1),
    };
    wait(store.put(&tenant(), moved, vec![delivery])).unwrap();
    let changes = vec![RegisterChange::put(RegisterKind::Webhook, "hook_1", json!({}))];
    wait(store.write(RegisterWrite { tenant: tenant(), at: Timestamp(1), changes, record: None })).unwrap();
    let plan = save_plan(&store);
    carry_out(&store, &plan, 100, 2);
    drop(store);

    let mut archive = SqliteArchive::open(directory.path()).unwrap();
    let checked = archive.verify(&tenant(), TrustAnchors::default(), true, &mut |_| {}).unwrap();
    assert!(checked.is_clean(), "{checked:?}");
    let store = open(directory.path());
    assert_eq!(wait(store.reader_position(&tenant(), "webhooks")).unwrap(), size);
    assert!(wait(store.find(&tenant(), RegisterKind::Webhook, "hook_1")).unwrap().is_some());
}
