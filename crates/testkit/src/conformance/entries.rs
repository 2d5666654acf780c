//! Finding entries, of one execution or of all.

use super::fixture::{ConformanceFixture, done, refused};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::actor::Actor;
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::Event;
use rutter_core::journal::payload::EventPayload;
use rutter_core::port::query::{EntryFilter, EntrySummary, ExecutionFilter, Pagination, PlanFilter, TimeRange};
use rutter_core::time::Timestamp;
use serde_json::json;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    entries_of_one_execution_come_oldest_first,
    entries_of_all_come_newest_first,
    entries_of_the_same_time_come_in_the_order_of_writing,
    an_entry_shows_its_record_and_its_hash,
    entries_are_found_by_kind,
    entries_are_found_by_actor,
    entries_are_found_by_time,
    entries_are_found_by_words,
    a_search_without_a_word_is_invalid,
    entries_of_another_tenant_are_not_found,
    entries_of_an_unknown_execution_are_none,
];

fn find(stage: &ConformanceFixture<'_>, filter: EntryFilter) -> Vec<EntrySummary> {
    let listing = done(stage.store.entries(&stage.tenant(), filter, Pagination::first(100)));
    assert_eq!(listing.next, None);
    listing.items
}

fn labels(stage: &ConformanceFixture<'_>, filter: EntryFilter) -> Vec<String> {
    find(stage, filter).iter().map(|entry| format!("{} {}", entry.execution, entry.seq)).collect()
}

fn of(execution: &str) -> EntryFilter {
    EntryFilter { execution: Some(ExecutionId::new(execution)), ..EntryFilter::default() }
}

fn entries_of_one_execution_come_oldest_first(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.opened("exec_2");
    for (words, at) in [("a", 9), ("b", 3)] {
        pen.now = Timestamp(at);
        stage.write(&mut pen, words);
    }
    assert_eq!(labels(&stage, of("exec_1")), ["exec_1 1", "exec_1 2", "exec_1 3"], "whatever the clocks say");
}

fn entries_of_all_come_newest_first(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (mut first, mut second) = (stage.driven("exec_1"), stage.driven("exec_2"));
    first.now = Timestamp(20);
    stage.write(&mut first, "at twenty");
    second.now = Timestamp(10);
    stage.write(&mut second, "written later, at ten");
    let expected = ["exec_1 2", "exec_2 2", "exec_2 1", "exec_1 1", "ledger 1"];
    assert_eq!(labels(&stage, EntryFilter::default()), expected);
}

fn entries_of_the_same_time_come_in_the_order_of_writing(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (mut first, mut second) = (stage.driven("exec_1"), stage.driven("exec_2"));
    stage.write(&mut second, "a");
    let expected = first.head();
    let entries = vec![first.note("b"), first.note("c")];
    done(store.append(first.append(expected, entries)));
    let expected = ["exec_1 3", "exec_1 2", "exec_2 2", "exec_2 1", "exec_1 1", "ledger 1"];
    assert_eq!(labels(&stage, EntryFilter::default()), expected);
}

fn an_entry_shows_its_record_and_its_hash(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    pen.now = Timestamp(8);
    stage.write(&mut pen, "look");
    let entry = find(&stage, of("exec_1")).pop().expect("two were written");
    assert_eq!((entry.execution, entry.seq, entry.hash), (ExecutionId::new("exec_1"), 2, pen.head().hash));
    let record = entry.record;
    assert_eq!((record.at, record.actor), (Timestamp(8), Actor::agent("pilot")));
    let details = Some(EventPayload::new(json!({ "about": "look" })));
    let (decision, reason) = ("look".into(), String::new());
    assert_eq!(record.event, Event::DecisionRecorded { step: None, decision, reason, details });
}

fn entries_are_found_by_kind(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.write(&mut pen, "a");
    let kinds = |kinds: &[&str]| {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        labels(&stage, EntryFilter { kinds, ..EntryFilter::default() })
    };
    assert_eq!(kinds(&["decision_recorded"]), ["exec_1 2"]);
    assert_eq!(kinds(&["plan_saved", "execution_opened"]), ["exec_1 1", "ledger 1"]);
    assert!(kinds(&["paused"]).is_empty());
    let unknown = EntryFilter { kinds: vec!["paused".into(), "decision".into()], ..EntryFilter::default() };
    refused(store.entries(&stage.tenant(), unknown, Pagination::first(10)), "store.invalid");
}

/// The party counts too: an agent named operator is not the operator.
fn entries_are_found_by_actor(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    for actor in [Actor::person("operator"), Actor::agent("operator"), Actor::rutter()] {
        let expected = pen.head();
        let entry = pen.seal_as(actor, Event::Paused { reason: "wait".into() });
        done(store.append(pen.append(expected, vec![entry])));
    }
    let by = |actor| labels(&stage, EntryFilter { actor: Some(actor), ..EntryFilter::default() });
    assert_eq!(by(Actor::person("operator")), ["exec_1 2"]);
    assert_eq!(by(Actor::agent("operator")), ["exec_1 3"]);
    assert_eq!(by(Actor::rutter()), ["exec_1 4"]);
    assert!(by(Actor::person("nobody")).is_empty());
}

fn entries_are_found_by_time(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    for at in [10, 20] {
        pen.now = Timestamp(at);
        stage.write(&mut pen, "tick");
    }
    let between = |from: i64, until: i64| {
        let at = TimeRange { from: Some(Timestamp(from)), until: Some(Timestamp(until)) };
        labels(&stage, EntryFilter { at, ..of("exec_1") })
    };
    assert_eq!(between(10, 20), ["exec_1 2"]);
    assert_eq!(between(10, 21), ["exec_1 2", "exec_1 3"]);
    assert!(between(11, 20).is_empty());
}

fn entries_are_found_by_words(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (mut first, mut second) = (stage.driven("exec_1"), stage.driven("exec_2"));
    stage.write(&mut first, "The customer's card was refused (code 51)");
    stage.write(&mut second, "the card arrived");
    let says = |text: &str| labels(&stage, EntryFilter { text: Some(text.into()), ..EntryFilter::default() });
    assert_eq!(says("card"), ["exec_2 2", "exec_1 2"]);
    assert_eq!(says("CARD 51"), ["exec_1 2"]);
    assert_eq!(says("refused-card"), ["exec_1 2"]);
    assert_eq!(says("simple"), ["ledger 1"], "the plan's name, where it was saved");
    for text in ["car", "card* ref*", "card refused arrived", "about"] {
        assert!(says(text).is_empty(), "{text}");
    }
    for text in ["\"card", "card OR arrived\"", "card NOT", "(card", "card:", "-card", "'; drop table"] {
        done(store.entries(
            &stage.tenant(),
            EntryFilter { text: Some(text.into()), ..of("exec_1") },
            Pagination::first(1),
        ));
    }
    assert_eq!(labels(&stage, EntryFilter { text: Some("card".into()), ..of("exec_1") }), ["exec_1 2"]);
}

fn a_search_without_a_word_is_invalid(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (tenant, page) = (stage.tenant(), || Pagination::first(10));
    for text in ["", " ", "?!", "\"\"", "*"] {
        let text = Some(text.to_owned());
        let filter = EntryFilter { text: text.clone(), ..EntryFilter::default() };
        refused(store.entries(&tenant, filter, page()), "store.invalid");
        let filter = ExecutionFilter { text: text.clone(), ..ExecutionFilter::default() };
        refused(store.executions(&tenant, filter, page()), "store.invalid");
        refused(store.plans(&tenant, PlanFilter { text, ..PlanFilter::default() }, page()), "store.invalid");
    }
}

fn entries_of_another_tenant_are_not_found(store: &dyn ConformingStore) {
    let (mine, theirs) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "elsewhere"));
    let mut pen = mine.driven("exec_1");
    mine.write(&mut pen, "secret");
    assert!(labels(&theirs, EntryFilter::default()).is_empty());
    assert!(labels(&theirs, of("exec_1")).is_empty());
    theirs.opened("exec_2");
    assert!(labels(&theirs, EntryFilter { text: Some("secret".into()), ..EntryFilter::default() }).is_empty());
    assert_eq!(labels(&theirs, EntryFilter::default()), ["exec_2 1", "ledger 1"]);
}

fn entries_of_an_unknown_execution_are_none(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    assert!(labels(&stage, of("exec_2")).is_empty());
}
