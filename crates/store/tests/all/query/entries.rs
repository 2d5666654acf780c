//! Finding entries.

use crate::query::fixture::{QueryFixture, acme, of, plan};
use rutter_core::actor::Actor;
use rutter_core::id::TenantId;
use rutter_core::journal::event::Event;
use rutter_core::journal::payload::EventPayload;
use rutter_core::port::journal::Journal;
use rutter_core::port::query::{EntryFilter, Pagination, StoreQuery, TimeRange};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use serde_json::json;

fn any() -> EntryFilter {
    EntryFilter::default()
}

fn says(text: &str) -> EntryFilter {
    EntryFilter { text: Some(text.into()), ..any() }
}

#[test]
fn entries_of_one_execution_are_the_records_that_load_gives() {
    let fixture = QueryFixture::new();
    let mut pen = fixture.open("exec_1", 9);
    fixture.open("exec_2", 9);
    pen.at = 3;
    pen.note("later, by an earlier clock", json!({"x": 1}));
    let loaded = wait(fixture.store.load(&pen.identity)).unwrap();
    let listed = fixture.entries(of("exec_1"));
    assert_eq!(listed.iter().map(|entry| entry.record.clone()).collect::<Vec<_>>(), loaded.records);
    assert_eq!((listed[1].seq, listed[1].hash), (2, pen.chain.head().hash));
    let Event::ExecutionOpened { plan, inputs, .. } = &listed[0].record.event else { panic!("{listed:?}") };
    assert!(plan.plan.is_some(), "the plan is supplied");
    assert_eq!(*inputs, EventPayload::new(json!({"for": "exec_1"})));
}

#[test]
fn entries_of_all_come_newest_first_and_the_ledgers_own_are_among_them() {
    let fixture = QueryFixture::new();
    let mut first = fixture.open("exec_1", 10);
    fixture.open("exec_2", 10);
    first.at = 5;
    first.note("by an earlier clock", json!(1));
    assert_eq!(fixture.labels(any()), ["exec_2 1", "exec_1 1", "exec_1 2", "ledger 1"]);
    assert_eq!(fixture.labels(of("ledger")), ["ledger 1"]);
}

#[test]
fn entries_are_found_by_kind_actor_and_time() {
    let fixture = QueryFixture::new();
    let mut pen = fixture.open("exec_1", 10);
    for (at, actor) in [(20, Actor::person("operator")), (30, Actor::agent("operator")), (40, Actor::rutter())] {
        pen.at = at;
        pen.write(actor, Event::Paused { reason: "wait".into() });
    }
    pen.at = 50;
    pen.note("go on", json!(1));
    let kinds = |kinds: &[&str]| EntryFilter { kinds: kinds.iter().map(|kind| (*kind).into()).collect(), ..any() };
    assert_eq!(fixture.labels(kinds(&["paused"])), ["exec_1 4", "exec_1 3", "exec_1 2"]);
    assert_eq!(
        fixture.labels(kinds(&["plan_saved", "decision_recorded", "execution_opened", "plan_saved"])),
        ["exec_1 5", "exec_1 1", "ledger 1"]
    );
    assert!(fixture.labels(kinds(&["attempt_started"])).is_empty(), "a frequent one");
    assert!(fixture.labels(kinds(&["killed"])).is_empty(), "never written");
    assert_eq!(fixture.labels(kinds(&["paused", "attempt_started", "killed"])).len(), 3);

    let by = |actor: Actor| EntryFilter { actor: Some(actor), ..any() };
    assert_eq!(fixture.labels(by(Actor::person("operator"))), ["exec_1 2"]);
    assert_eq!(fixture.labels(by(Actor::agent("operator"))), ["exec_1 3"]);
    assert_eq!(fixture.labels(by(Actor::rutter())), ["exec_1 4"]);
    assert!(fixture.labels(by(Actor::person("nobody"))).is_empty());

    let at = TimeRange { from: Some(Timestamp(20)), until: Some(Timestamp(40)) };
    assert_eq!(fixture.labels(EntryFilter { at, ..any() }), ["exec_1 3", "exec_1 2"]);
    assert_eq!(fixture.labels(EntryFilter { at, ..of("exec_1") }), ["exec_1 2", "exec_1 3"]);
    let all = EntryFilter {
        kinds: vec!["paused".into()],
        actor: Some(Actor::person("operator")),
        at,
        text: Some("wait".into()),
        ..of("exec_1")
    };
    assert_eq!(fixture.labels(all.clone()), ["exec_1 2"]);
    assert_eq!(fixture.labels(EntryFilter { execution: None, ..all }), ["exec_1 2"]);
}

#[test]
fn a_type_that_no_event_has_is_refused() {
    let fixture = QueryFixture::new();
    let filter = EntryFilter { kinds: vec!["decision".into()], ..any() };
    let refused = wait(fixture.store.entries(&acme(), filter, Pagination::first(1))).unwrap_err();
    assert_eq!(refused.code(), "store.invalid");
}

#[test]
fn every_search_text_is_read_as_words() {
    let fixture = QueryFixture::new();
    let mut pen = fixture.open("exec_1", 10);
    pen.note("The customer's card was refused (code 51)", json!({"about": "hidden"}));
    pen.note("Größe über alles, naïve \"quoted\" NOT near", json!(1));
    let mut other = fixture.open("exec_2", 10);
    other.note("the card arrived", json!(1));
    let found = |text: &str| fixture.labels(says(text));
    assert_eq!(found("card"), ["exec_2 2", "exec_1 2"]);
    assert_eq!(found("CARD 51"), ["exec_1 2"]);
    assert_eq!(found("refused-card"), ["exec_1 2"]);
    assert_eq!(found("card*"), ["exec_2 2", "exec_1 2"], "a star is not a word");
    assert_eq!(found("\"quoted"), ["exec_1 3"]);
    assert_eq!(found("NOT"), ["exec_1 3"]);
    assert_eq!(found("größe ÜBER"), ["exec_1 3"]);
    assert_eq!(found("words:card"), [""; 0]);
    for text in ["car", "car*", "card OR arrived", "card NOT arrived", "NEAR(card arrived)", "hidden", "-card the x"] {
        assert!(found(text).is_empty(), "{text}");
    }
    assert_eq!(fixture.labels(EntryFilter { text: Some("card".into()), ..of("exec_1") }), ["exec_1 2"]);
    assert_eq!(found(&"card ".repeat(200)).len(), 2);
    for text in ["", " \n", "?!"] {
        let refused = wait(fixture.store.entries(&acme(), says(text), Pagination::first(1))).unwrap_err();
        assert_eq!(refused.code(), "store.invalid", "{text:?}");
    }
}

#[test]
fn another_tenant_finds_none_of_it() {
    let fixture = QueryFixture::new();
    let mut pen = fixture.open("exec_1", 10);
    pen.write(Actor::person("operator"), Event::Paused { reason: "secret".into() });
    let theirs = plan("theirs", json!({}));
    fixture.save("other", "plan_1", &theirs, 1);
    fixture.open_of("other", "plan_1", &theirs, "exec_2", 1);
    let other = TenantId::new("other");
    for filter in [
        of("exec_1"),
        says("secret"),
        EntryFilter { kinds: vec!["paused".into()], ..any() },
        EntryFilter { actor: Some(Actor::person("operator")), ..any() },
        EntryFilter { at: TimeRange { from: Some(Timestamp(5)), until: None }, ..any() },
    ] {
        assert!(!fixture.entries(filter.clone()).is_empty(), "{filter:?}");
        let found = wait(fixture.store.entries(&other, filter.clone(), Pagination::first(10))).unwrap();
        assert!(found.items.is_empty(), "{filter:?}");
    }
    let found = wait(fixture.store.entries(&other, any(), Pagination::first(10))).unwrap();
    assert_eq!(found.items.len(), 2);
}

#[test]
fn a_page_of_large_payloads_is_shorter_and_loses_nothing() {
    let fixture = QueryFixture::new();
    let mut pen = fixture.open("exec_1", 10);
    for at in 0..2 {
        pen.note("large", json!("x".repeat(9 << 20).replacen('x', &at.to_string(), 1)));
    }
    let mut page = Pagination::first(100);
    let mut sizes = Vec::new();
    let mut seen = Vec::new();
    loop {
        let listing = wait(fixture.store.entries(&acme(), of("exec_1"), page.clone())).unwrap();
        sizes.push(listing.items.len());
        seen.extend(listing.items.iter().map(|entry| entry.seq));
        page.after = listing.next;
        if page.after.is_none() {
            break;
        }
    }
    assert_eq!((sizes, seen), (vec![2, 1], vec![1, 2, 3]));
}
