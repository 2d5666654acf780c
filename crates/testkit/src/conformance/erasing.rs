//! Erasing payloads: their content is gone, the proof of them is not.

use super::fixture::{ConformanceFixture, ConformanceWriter, done, refused};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::actor::Actor;
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::journal::payload::EventPayload;
use rutter_core::port::query::{EntryFilter, Pagination};
use rutter_core::port::upkeep::{ErasedTotals, ErasureRequest};
use rutter_core::time::Timestamp;
use serde_json::json;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    erased_payloads_are_gone_and_the_chain_stands,
    only_the_entries_that_were_named_are_erased,
    erasing_is_counted,
    erasing_twice_finds_nothing,
    erasing_is_recorded_in_the_ledgers_own_journal,
    an_erased_execution_can_continue,
    the_words_of_an_entry_outlive_its_payloads,
    erasing_an_unknown_execution_is_not_found,
    large_payloads_are_erased_too,
];

fn erasure(pen: &ConformanceWriter, entries: Option<&[u64]>) -> ErasureRequest {
    ErasureRequest {
        identity: pen.identity.clone(),
        entries: entries.map(<[u64]>::to_vec),
        actor: Actor::person("operator"),
        at: Timestamp(99),
        reason: "asked to forget".into(),
    }
}

/// Which payloads are still present, the opening's and those of decisions.
fn present(records: &[EventRecord]) -> Vec<bool> {
    let payloads = records.iter().filter_map(|record| match &record.event {
        Event::ExecutionOpened { inputs, .. } => Some(inputs),
        Event::DecisionRecorded { details, .. } => details.as_ref(),
        _ => None,
    });
    payloads.map(|payload| *payload != EventPayload::Erased).collect()
}

fn written(stage: &ConformanceFixture<'_>) -> ConformanceWriter {
    let mut pen = stage.driven("exec_1");
    stage.write(&mut pen, "a");
    stage.write(&mut pen, "b");
    pen
}

fn erased_payloads_are_gone_and_the_chain_stands(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = written(&stage);
    let before = done(store.load(&pen.identity));
    assert_eq!(present(&before.records), [true; 3]);
    done(store.erase(erasure(&pen, None)));
    let loaded = done(store.load(&pen.identity));
    assert_eq!(loaded.head, before.head);
    assert_eq!(present(&loaded.records), [false; 3]);
    let filter = EntryFilter { execution: Some(pen.identity.execution), ..EntryFilter::default() };
    let listed = done(store.entries(&stage.tenant(), filter, Pagination::first(10))).items;
    let records: Vec<EventRecord> = listed.into_iter().map(|entry| entry.record).collect();
    assert_eq!(records, loaded.records);
}

fn only_the_entries_that_were_named_are_erased(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (pen, other) = (written(&stage), stage.driven("exec_2"));
    done(store.erase(erasure(&pen, Some(&[2, 77]))));
    assert_eq!(present(&done(store.load(&pen.identity)).records), [true, false, true]);
    done(store.erase(erasure(&pen, Some(&[]))));
    assert_eq!(present(&done(store.load(&pen.identity)).records), [true, false, true]);
    assert_eq!(present(&done(store.load(&other.identity)).records), [true]);
}

fn erasing_is_counted(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = written(&stage);
    // {"about":"a"} and {"about":"b"}, then {"items":[1,2]}.
    assert_eq!(done(store.erase(erasure(&pen, Some(&[2, 3])))), ErasedTotals { payloads: 2, bytes: 26 });
    assert_eq!(done(store.erase(erasure(&pen, None))), ErasedTotals { payloads: 1, bytes: 15 });
}

fn own_journal(stage: &ConformanceFixture<'_>) -> Vec<EventRecord> {
    let filter = EntryFilter { execution: Some(ExecutionId::new("ledger")), ..EntryFilter::default() };
    let entries = done(stage.store.entries(&stage.tenant(), filter, Pagination::first(100))).items;
    entries.into_iter().map(|entry| entry.record).collect()
}

fn erasing_twice_finds_nothing(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = written(&stage);
    done(store.erase(erasure(&pen, None)));
    let before = own_journal(&stage);
    assert_eq!(done(store.erase(erasure(&pen, None))), ErasedTotals::default());
    assert_eq!(own_journal(&stage), before, "nothing happened, so nothing is recorded");
}

fn erasing_is_recorded_in_the_ledgers_own_journal(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = written(&stage);
    done(store.erase(erasure(&pen, None)));
    let (execution, reason) = (pen.identity.execution, "asked to forget".to_owned());
    let event = Event::PayloadsErased { execution, payloads: 3, reason };
    let record = EventRecord { at: Timestamp(99), actor: Actor::person("operator"), event };
    assert_eq!(own_journal(&stage).pop(), Some(record));
}

fn an_erased_execution_can_continue(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = written(&stage);
    done(store.erase(erasure(&pen, None)));
    stage.write(&mut pen, "c");
    assert_eq!(present(&done(store.load(&pen.identity)).records), [false, false, false, true]);
    assert_eq!(done(store.erase(erasure(&pen, None))).payloads, 1);
}

fn the_words_of_an_entry_outlive_its_payloads(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = written(&stage);
    done(store.erase(erasure(&pen, None)));
    let filter = EntryFilter { text: Some("a".into()), ..EntryFilter::default() };
    assert_eq!(done(store.entries(&stage.tenant(), filter, Pagination::first(10))).items.len(), 1);
}

fn erasing_an_unknown_execution_is_not_found(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = written(&stage);
    let nobody = ErasureRequest { identity: stage.identity("exec_2"), ..erasure(&pen, None) };
    refused(store.erase(nobody), "store.not_found");
    let stranger = ConformanceFixture::of(store, "elsewhere").identity("exec_1");
    refused(store.erase(ErasureRequest { identity: stranger, ..erasure(&pen, None) }), "store.not_found");
    let ledger = ErasureRequest { identity: stage.identity("ledger"), ..erasure(&pen, None) };
    refused(store.erase(ledger), "store.not_found");
    assert_eq!(present(&done(store.load(&pen.identity)).records), [true; 3]);
}

fn large_payloads_are_erased_too(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let expected = pen.head();
    let entry = pen.note_with("large", json!("x".repeat(200_000)));
    done(store.append(pen.append(expected, vec![entry])));
    assert_eq!(done(store.erase(erasure(&pen, Some(&[2])))), ErasedTotals { payloads: 1, bytes: 200_002 });
    assert_eq!(present(&done(store.load(&pen.identity)).records), [true, false]);
}
