//! A commit that reported failure may have taken effect: the retry notices, and does nothing twice.

use super::super::connection::DatabaseFile;
use super::super::migration;
use super::*;
use rutter_core::actor::Actor;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::port::register::RegisterChange;
use serde_json::json;

const COUNT: &str = "select count(*) from entry";

/// Attempts a change twice; the first transaction ends with this statement.
fn attempted_twice(changes: RegisterWrite, first_ends: &str) -> (Option<u64>, u64) {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = DatabaseFile { path: directory.path().join("notes.db"), vfs: None }.writer().unwrap();
    migration::migrate(&mut connection, migration::ALL, Timestamp(0)).unwrap();
    let mut session = WriteSession::new(connection);
    let (id, kind) = (changes.changes[0].id.clone(), changes.changes[0].kind);
    let there =
        RegisterWrite { changes: vec![RegisterChange::put(kind, &id, json!("old"))], record: None, ..changes.clone() };
    let (there, texts) = prepare(there).unwrap();
    write(&mut session, &there, &texts, &mut None).unwrap();
    let (changes, texts) = prepare(changes).unwrap();
    let mut before = None;
    for ends in [first_ends, "commit"] {
        session.connection.execute_batch("begin").unwrap();
        write(&mut session, &changes, &texts, &mut before).unwrap();
        session.connection.execute_batch(ends).unwrap();
        session.forget();
    }
    let tenant = session.find_tenant(&changes.tenant).unwrap().unwrap();
    let version = find(&session.connection, tenant, kind, &id).unwrap().map(|note| note.version);
    (version, session.one(COUNT, []).unwrap().unwrap())
}

fn changes(change: RegisterChange, is_recorded: bool) -> RegisterWrite {
    let (setting, id, message) = ("webhook".to_owned(), change.id.clone(), "changed".to_owned());
    let event = Event::SettingChanged { setting, id, change: message };
    let record = EventRecord { at: Timestamp(1), actor: Actor::person("operator"), event };
    RegisterWrite {
        tenant: TenantId::new("acme"),
        at: Timestamp(1),
        changes: vec![change],
        record: is_recorded.then_some(record),
    }
}

#[test]
fn whether_the_first_commit_was_lost_or_not_a_note_changes_once() {
    for ends in ["commit", "rollback"] {
        let put = || RegisterChange::put(RegisterKind::Webhook, "hook_1", json!("new"));
        let remove = || RegisterChange::remove(RegisterKind::Webhook, "hook_1");
        assert_eq!(attempted_twice(changes(put(), false), ends), (Some(2), 0), "{ends}");
        assert_eq!(attempted_twice(changes(put().expecting(1), false), ends), (Some(2), 0), "{ends}");
        assert_eq!(attempted_twice(changes(put(), true), ends), (Some(2), 1), "{ends}");
        assert_eq!(attempted_twice(changes(remove().expecting(1), false), ends), (None, 0), "{ends}");
        assert_eq!(attempted_twice(changes(remove(), true), ends), (None, 1), "{ends}");
    }
}
