//! Register items: the last write is found, and concurrent changes of one item conflict.

use super::fixture::{ConformanceFixture, done, refused};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::actor::Actor;
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::limits::{CHANGES_MAX, ID_CHARS_MAX, NOTE_BYTES_MAX};
use rutter_core::port::query::{EntryFilter, ListCursor, Pagination};
use rutter_core::port::register::{RegisterChange, RegisterItem, RegisterKind, RegisterWrite};
use rutter_core::port::{Error, StoreFuture};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::thread;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    a_note_is_found_as_it_was_written,
    an_unwritten_item_is_not_found,
    each_change_is_one_version_more,
    a_version_that_was_not_expected_is_a_conflict,
    several_notes_change_together_or_not_at_all,
    a_removed_note_is_gone_and_may_come_again,
    removing_what_is_not_there_does_no_harm,
    a_record_is_written_to_the_ledgers_own_journal,
    without_a_record_the_ledger_stays_as_it_is,
    notes_are_listed_by_id_and_page_by_page,
    a_cursor_belongs_to_one_kind,
    every_kind_has_notes_of_its_own,
    another_tenants_notes_are_not_found,
    notes_are_counted_by_tenant_and_kind,
    the_tenants_with_notes_of_a_kind_are_named,
    one_note_is_not_changed_twice_at_once,
    ids_are_visible_and_not_too_long,
    note_bytes_max,
    changes_max,
    of_many_that_expect_one_version_one_wins,
];

fn write<'a>(stage: &ConformanceFixture<'a>, at: i64, changes: Vec<RegisterChange>) -> StoreFuture<'a, ()> {
    stage.store.write(RegisterWrite { tenant: stage.tenant(), at: Timestamp(at), changes, record: None })
}

fn put(id: &str, value: Value) -> RegisterChange {
    RegisterChange::put(RegisterKind::Webhook, id, value)
}

fn find(stage: &ConformanceFixture<'_>, id: &str) -> Option<RegisterItem> {
    done(stage.store.find(&stage.tenant(), RegisterKind::Webhook, id))
}

fn version(stage: &ConformanceFixture<'_>, id: &str) -> u64 {
    find(stage, id).map_or(0, |note| note.version)
}

fn changed(setting: &str) -> EventRecord {
    let (setting, id, change) = (setting.to_owned(), "hook_1".to_owned(), "created".to_owned());
    let event = Event::SettingChanged { setting, id, change };
    EventRecord { at: Timestamp(5), actor: Actor::person("operator"), event }
}

fn a_note_is_found_as_it_was_written(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let value = json!({ "url": "https://example.org/ü", "n": [1, 2.5, null, true], "deep": { "a": {} } });
    done(write(&stage, 7, vec![put("hook_1", value.clone())]));
    let note = RegisterItem { id: "hook_1".into(), version: 1, changed_at: Timestamp(7), value: Arc::new(value) };
    assert_eq!(find(&stage, "hook_1"), Some(note));
}

fn an_unwritten_item_is_not_found(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    assert_eq!(find(&stage, "hook_1"), None);
    done(write(&stage, 1, vec![put("hook_1", json!(1))]));
    assert_eq!(find(&stage, "hook_2"), None);
    assert_eq!(find(&stage, "hook_"), None);
}

fn each_change_is_one_version_more(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for nth in 1..=3 {
        done(write(&stage, nth, vec![put("hook_1", json!(nth)), put(&format!("hook_1{nth}"), json!(0))]));
        let note = find(&stage, "hook_1").expect("it was written");
        assert_eq!((note.version, note.changed_at), (nth as u64, Timestamp(nth)));
        assert_eq!(*note.value, json!(nth));
    }
    assert_eq!(version(&stage, "hook_12"), 1);
}

fn a_version_that_was_not_expected_is_a_conflict(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let expecting = |version| vec![put("hook_1", json!(version)).expecting(version)];
    let error = refused(write(&stage, 1, expecting(1)), "store.conflict");
    assert!(matches!(error, Error::Conflict { expected: 1, found: 0, .. }), "{error:?}");
    done(write(&stage, 1, expecting(0)));
    for wrong in [0, 2] {
        let error = refused(write(&stage, 2, expecting(wrong)), "store.conflict");
        assert!(matches!(error, Error::Conflict { expected, found: 1, .. } if expected == wrong));
    }
    done(write(&stage, 2, expecting(1)));
    let remove = |version| vec![RegisterChange::remove(RegisterKind::Webhook, "hook_1").expecting(version)];
    refused(write(&stage, 3, remove(1)), "store.conflict");
    assert_eq!(version(&stage, "hook_1"), 2);
    done(write(&stage, 3, remove(2)));
    assert_eq!(version(&stage, "hook_1"), 0);
}

fn several_notes_change_together_or_not_at_all(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(write(&stage, 1, vec![put("a", json!(1)), put("b", json!(1))]));
    let size = done(store.size(&stage.tenant()));
    let changes = vec![
        put("a", json!(2)),
        RegisterChange::remove(RegisterKind::Webhook, "b"),
        RegisterChange::put(RegisterKind::Key, "c", json!(2)),
        put("d", json!(2)).expecting(9),
    ];
    let (tenant, record) = (stage.tenant(), Some(changed("webhook")));
    let refusal = store.write(RegisterWrite { tenant, at: Timestamp(2), changes, record });
    refused(refusal, "store.conflict");
    assert_eq!((version(&stage, "a"), version(&stage, "b")), (1, 1));
    assert_eq!(done(store.find(&stage.tenant(), RegisterKind::Key, "c")), None);
    assert_eq!(done(store.size(&stage.tenant())), size, "what did not happen is not recorded");
}

fn a_removed_note_is_gone_and_may_come_again(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(write(&stage, 1, vec![put("hook_1", json!(1))]));
    done(write(&stage, 2, vec![put("hook_1", json!(2))]));
    done(write(&stage, 3, vec![RegisterChange::remove(RegisterKind::Webhook, "hook_1")]));
    assert_eq!(find(&stage, "hook_1"), None);
    assert!(done(store.list(&stage.tenant(), RegisterKind::Webhook, Pagination::first(10))).items.is_empty());
    done(write(&stage, 4, vec![put("hook_1", json!(3)).expecting(0)]));
    assert_eq!(version(&stage, "hook_1"), 1);
}

fn removing_what_is_not_there_does_no_harm(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(write(&stage, 1, vec![RegisterChange::remove(RegisterKind::Webhook, "hook_1")]));
    done(write(&stage, 1, vec![RegisterChange::remove(RegisterKind::Webhook, "hook_1").expecting(0)]));
    done(write(&stage, 1, Vec::new()));
    assert_eq!(find(&stage, "hook_1"), None);
}

fn a_record_is_written_to_the_ledgers_own_journal(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (tenant, record) = (stage.tenant(), changed("webhook"));
    let changes = vec![put("hook_1", json!(1))];
    done(store.write(RegisterWrite { tenant, at: Timestamp(5), changes, record: Some(record.clone()) }));
    let filter = EntryFilter { execution: Some(ExecutionId::new("ledger")), ..EntryFilter::default() };
    let entries = done(store.entries(&stage.tenant(), filter, Pagination::first(10))).items;
    assert_eq!(entries.iter().map(|entry| &entry.record).collect::<Vec<_>>(), [&record]);
    let filter = EntryFilter { text: Some("hook_1 created".into()), ..EntryFilter::default() };
    assert_eq!(done(store.entries(&stage.tenant(), filter, Pagination::first(10))).items.len(), 1);
}

fn without_a_record_the_ledger_stays_as_it_is(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(write(&stage, 1, vec![put("hook_1", json!(1))]));
    assert_eq!(done(store.size(&stage.tenant())), 0);
}

fn notes_are_listed_by_id_and_page_by_page(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let ids = ["a", "a.b", "aa", "b", "ß", "日"];
    for id in ids.iter().rev() {
        done(write(&stage, 1, vec![put(id, json!(id))]));
    }
    for limit in 1..=7 {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = Pagination { limit, after: after.take() };
            let listing = done(store.list(&stage.tenant(), RegisterKind::Webhook, page));
            assert!(!listing.items.is_empty() && listing.items.len() <= limit as usize);
            found.extend(listing.items.into_iter().map(|note| note.id));
            match listing.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(found, ids, "{limit} at a time");
    }
    refused(store.list(&stage.tenant(), RegisterKind::Webhook, Pagination::first(0)), "store.limit");
}

fn a_cursor_belongs_to_one_kind(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(write(&stage, 1, vec![put("a", json!(1)), put("b", json!(1))]));
    let next = done(store.list(&stage.tenant(), RegisterKind::Webhook, Pagination::first(1))).next;
    let page = Pagination { limit: 1, after: next };
    refused(store.list(&stage.tenant(), RegisterKind::Key, page), "store.invalid");
    let nonsense = Pagination { limit: 1, after: Some(ListCursor("nonsense".into())) };
    refused(store.list(&stage.tenant(), RegisterKind::Webhook, nonsense), "store.invalid");
}

fn every_kind_has_notes_of_its_own(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let all = RegisterKind::ALL.into_iter().map(|kind| RegisterChange::put(kind, "same", json!(kind.as_str())));
    done(write(&stage, 1, all.collect()));
    for kind in RegisterKind::ALL {
        let listing = done(store.list(&stage.tenant(), kind, Pagination::first(10)));
        assert_eq!(listing.items.len(), 1);
        assert_eq!(*listing.items[0].value, json!(kind.as_str()));
    }
}

fn another_tenants_notes_are_not_found(store: &dyn ConformingStore) {
    let (stage, other) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "other"));
    done(write(&stage, 1, vec![put("hook_1", json!(1))]));
    done(write(&other, 1, vec![put("hook_2", json!(1))]));
    assert_eq!(find(&other, "hook_1"), None);
    let listing = done(store.list(&other.tenant(), RegisterKind::Webhook, Pagination::first(10)));
    assert_eq!(listing.items.len(), 1);
    done(write(&other, 2, vec![RegisterChange::remove(RegisterKind::Webhook, "hook_1")]));
    assert_eq!(version(&stage, "hook_1"), 1);
}

fn notes_are_counted_by_tenant_and_kind(store: &dyn ConformingStore) {
    let (stage, other) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "other"));
    let count = |stage: &ConformanceFixture<'_>, kind| done(store.count(&stage.tenant(), kind));
    assert_eq!(count(&stage, RegisterKind::Webhook), 0, "of a tenant that does not exist");
    done(write(
        &stage,
        1,
        vec![put("a", json!(1)), put("b", json!(1)), RegisterChange::put(RegisterKind::Key, "a", json!(1))],
    ));
    done(write(&other, 1, vec![put("a", json!(1))]));
    assert_eq!((count(&stage, RegisterKind::Webhook), count(&stage, RegisterKind::Key)), (2, 1));
    assert_eq!((count(&stage, RegisterKind::Timer), count(&other, RegisterKind::Webhook)), (0, 1));
    done(write(&stage, 2, vec![put("a", json!(2)), RegisterChange::remove(RegisterKind::Webhook, "b")]));
    assert_eq!(count(&stage, RegisterKind::Webhook), 1);
}

fn the_tenants_with_notes_of_a_kind_are_named(store: &dyn ConformingStore) {
    let (stage, other) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "other"));
    assert!(done(store.tenants(RegisterKind::Timer)).is_empty());
    done(write(&stage, 1, vec![RegisterChange::put(RegisterKind::Timer, "a", json!(1)), put("a", json!(1))]));
    done(write(&other, 1, vec![RegisterChange::put(RegisterKind::Timer, "a", json!(1))]));
    let mut both = vec![stage.tenant(), other.tenant()];
    both.sort();
    assert_eq!(done(store.tenants(RegisterKind::Timer)), both);
    assert_eq!(done(store.tenants(RegisterKind::Webhook)), [stage.tenant()]);
    done(write(&stage, 2, vec![RegisterChange::remove(RegisterKind::Timer, "a")]));
    assert_eq!(done(store.tenants(RegisterKind::Timer)), [other.tenant()]);
}

fn one_note_is_not_changed_twice_at_once(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let twice = vec![put("a", json!(1)), RegisterChange::remove(RegisterKind::Webhook, "a")];
    refused(write(&stage, 1, twice), "store.invalid");
    done(write(&stage, 1, vec![put("a", json!(1)), RegisterChange::put(RegisterKind::Rule, "a", json!(1))]));
}

fn ids_are_visible_and_not_too_long(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let longest = "ü".repeat(ID_CHARS_MAX);
    done(write(&stage, 1, vec![put(&longest, json!(1))]));
    assert_eq!(version(&stage, &longest), 1);
    let too_long = "x".repeat(ID_CHARS_MAX + 1);
    refused(write(&stage, 1, vec![put(&too_long, json!(1))]), "store.limit");
    for id in ["", " ", "a b", "a\n", "\u{7}"] {
        refused(write(&stage, 1, vec![put(id, json!(1))]), "store.invalid");
    }
}

fn note_bytes_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let text = |bytes: usize| json!("x".repeat(bytes - 2));
    done(write(&stage, 1, vec![put("a", text(NOTE_BYTES_MAX))]));
    let found = find(&stage, "a").expect("it was written");
    assert!(*found.value == text(NOTE_BYTES_MAX));
    refused(write(&stage, 1, vec![put("a", text(NOTE_BYTES_MAX + 1))]), "store.limit");
    assert_eq!(version(&stage, "a"), 1);
}

fn changes_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let changes = |count: usize| (0..count).map(|at| put(&format!("n{at:05}"), json!(at))).collect();
    refused(write(&stage, 1, changes(CHANGES_MAX + 1)), "store.limit");
    done(write(&stage, 1, changes(CHANGES_MAX)));
    let listing = done(store.list(&stage.tenant(), RegisterKind::Webhook, Pagination::first(1_000)));
    assert_eq!((listing.items.len(), listing.next), (CHANGES_MAX, None));
}

fn of_many_that_expect_one_version_one_wins(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(write(&stage, 1, vec![put("a", json!("old"))]));
    let answers: Vec<Result<(), Error>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|at| scope.spawn(move || wait(write(&stage, 2, vec![put("a", json!(at)).expecting(1)]))))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("writing does not panic")).collect()
    });
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    let lost = answers.iter().filter_map(|answer| answer.as_ref().err());
    assert!(lost.into_iter().all(|error| error.code() == "store.conflict"));
    assert_eq!(version(&stage, "a"), 2);
}
