//! Ledgers with long gaps, and large entries.

use super::super::connection::DatabaseFile;
use super::super::migration;
use super::*;
use rutter_core::actor::Actor;
use rutter_core::id::ExecutionId;
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::time::Timestamp;

const GONE: &str = "
    with recursive n (i) as (select 0 union all select i + 1 from n where i < 49999)
    insert into entry (place, hash) select 1 << 40 | i, zeroblob(32) from n";
const ENTRY: &str = "
    insert or replace into entry (place, execution, seq, tenant, at, kind, actor, hash, bytes)
    values (1 << 40 | ?1, 1, ?1, 1, 0, 3, 1, zeroblob(32), ?2)";

fn database(directory: &std::path::Path) -> Connection {
    let mut connection = DatabaseFile { path: directory.join("feed.db"), vfs: None }.writer().unwrap();
    migration::migrate(&mut connection, migration::ALL, Timestamp(0)).unwrap();
    connection.execute("insert into tenant (name, origin, head) values ('acme', 'a', x'')", []).unwrap();
    connection
}

fn write(connection: &Connection, leaf: u64, reason: &str) {
    let mut chain = HashChain::new(acme(), ExecutionId::new("exec_1"));
    let event = Event::Paused { reason: reason.to_owned() };
    let record = EventRecord { at: Timestamp(0), actor: Actor::rutter(), event };
    let (entry, _) = chain.seal(&record, &mut || PayloadSalt([0; 16])).unwrap();
    connection.execute(ENTRY, params![leaf, compress::pack_entry(&entry.bytes)]).unwrap();
}

fn acme() -> TenantId {
    TenantId::new("acme")
}

#[test]
fn long_gaps_are_skipped_in_large_steps() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = database(directory.path());
    connection.execute(GONE, []).unwrap();
    write(&connection, 45_000, "lunch");
    let mut look = |place| {
        let FeedBatch { items, until } = after(&mut connection, &acme(), place, 10).unwrap();
        (items.iter().map(|placed| placed.position).collect::<Vec<_>>(), until)
    };
    assert_eq!(look(0), (vec![], 20_000));
    assert_eq!(look(20_000), (vec![], 40_000));
    assert_eq!(look(40_000), (vec![45_001], 50_000));
    assert_eq!(look(50_000), (vec![], 50_000));
}

#[test]
fn a_batch_of_large_entries_is_short() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = database(directory.path());
    let reason = "x".repeat(ENTRY_BYTES_MAX - 1_000);
    for leaf in 0..6 {
        write(&connection, leaf, &reason);
    }
    let first = after(&mut connection, &acme(), 0, 100).unwrap();
    assert_eq!((first.items.len(), first.until), (5, 5));
    let second = after(&mut connection, &acme(), 5, 100).unwrap();
    assert_eq!((second.items.len(), second.until), (1, 6));
}
