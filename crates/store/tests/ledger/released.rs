//! Databases of earlier releases, each kept as it was left behind, are brought up to date and go on.

use crate::fixture::{carry_out, open, save_plan, scratch, tenant};
use rutter_core::journal::verify::Trust;
use rutter_core::port::feed::Feed;
use rutter_core::port::journal::Journal;
use rutter_core::port::outbox::{Moved, NewDelivery, Outbox};
use rutter_core::port::query::{ExecutionFilter, Page, Query};
use rutter_core::port::register::{Change, Changes, Kind, Register};
use rutter_core::time::Timestamp;
use rutter_store::sqlite::migration::{Migrated, pending};
use rutter_store::{Archive, wait};
use serde_json::json;

/// Six executions of the plan of these tests, the last of them half done, and two signed heads.
const FIRST: &[u8] = include_bytes!("released/1.db.zst");
const EXECUTIONS: usize = 6;

#[test]
fn a_database_of_the_first_schema_goes_on() {
    let directory = scratch();
    let path = directory.path().join("rutter.db");
    std::fs::write(&path, zstd::decode_all(FIRST).unwrap()).unwrap();
    assert_eq!(pending(directory.path()).unwrap(), Migrated { from: 1, to: 2 });
    let refused = Archive::open(directory.path()).unwrap_err().to_string();
    assert!(refused.contains("rutter db migrate"), "{refused}");

    let store = open(directory.path());
    assert_eq!(store.trouble(), None);
    assert_eq!(pending(directory.path()).unwrap(), Migrated { from: 2, to: 2 });
    let listing = wait(store.executions(&tenant(), ExecutionFilter::default(), Page::first(100))).unwrap();
    assert_eq!(listing.items.len(), EXECUTIONS);
    let mut entries = 0;
    for execution in &listing.items {
        let identity = rutter_core::execution::Identity { tenant: tenant(), execution: execution.id.clone() };
        entries += wait(store.load(&identity)).unwrap().records.len() as u64;
    }
    let size = wait(store.size(&tenant())).unwrap();
    assert_eq!(size, entries + 1, "and the plan that was saved");
    assert_eq!(wait(store.after(&tenant(), 0, 1_000)).unwrap().items.len() as u64, size);

    let moved = Some(Moved { reader: "courier".into(), from: 0, to: size });
    let delivery = NewDelivery {
        destination: "hook_1".into(),
        event: "e1".into(),
        kind: "execution.ended".into(),
        body: b"{}".to_vec(),
        due_at: Timestamp(1),
    };
    wait(store.put(&tenant(), moved, vec![delivery])).unwrap();
    let changes = vec![Change::put(Kind::Webhook, "hook_1", json!({}))];
    wait(store.write(Changes { tenant: tenant(), at: Timestamp(1), changes, record: None })).unwrap();
    let plan = save_plan(&store);
    carry_out(&store, &plan, 100, 2);
    drop(store);

    let mut archive = Archive::open(directory.path()).unwrap();
    let checked = archive.verify(&tenant(), Trust::default(), true, &mut |_| {}).unwrap();
    assert!(checked.is_clean(), "{checked:?}");
    let store = open(directory.path());
    assert_eq!(wait(store.mark(&tenant(), "courier")).unwrap(), size);
    assert!(wait(store.find(&tenant(), Kind::Webhook, "hook_1")).unwrap().is_some());
}
