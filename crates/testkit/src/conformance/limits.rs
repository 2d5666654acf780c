//! Every limit of a store: just below, at, and just above it.

use super::fixture::{ConformanceFixture, done, refused, request};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::journal::event::Event;
use rutter_core::journal::payload::EventPayload;
use rutter_core::limits::{
    APPEND_ENTRIES_MAX, COMMAND_BYTES_MAX, COMMANDS_MAX, ENTRY_BYTES_MAX, PAGE_MAX, PAYLOAD_BYTES_MAX,
    PAYLOAD_INLINE_MAX, REQUEST_KEY_BYTES_MAX,
};
use rutter_core::port::journal::{AppendOutcome, EnqueueOutcome, ExecutionOpening, NewCommand, OpenOutcome};
use rutter_core::port::query::{EntryFilter, ExecutionFilter, Pagination, PlanFilter};
use rutter_core::port::{Error, StoreFuture};
use serde_json::json;
use std::fmt::Debug;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    payload_bytes_max,
    payload_bytes_max_when_opening,
    entry_bytes_max,
    payload_inline_max_makes_no_difference,
    command_bytes_max,
    commands_max,
    request_key_bytes_max,
    page_max,
    append_entries_max,
];

/// The error names the limit, its maximum and the actual value.
fn exceeds<T: Debug>(answer: StoreFuture<'_, T>, limit: &'static str, max: usize, found: usize) {
    let error = refused(answer, "store.limit");
    assert_eq!(error, Error::Limit { limit, max: max as u64, found: found as u64 });
}

/// A text that is this long as JSON.
fn text(bytes: usize) -> serde_json::Value {
    json!("x".repeat(bytes - 2))
}

fn payload_bytes_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    for bytes in [PAYLOAD_BYTES_MAX - 1, PAYLOAD_BYTES_MAX] {
        let expected = pen.head();
        let entry = pen.note_with("large", text(bytes));
        assert_eq!(entry.payloads[0].bytes.len(), bytes);
        assert_eq!(done(store.append(pen.append(expected, vec![entry]))), AppendOutcome::New);
        let Some(record) = done(store.load(&pen.identity)).records.pop() else { panic!("the journal is empty") };
        let Event::DecisionRecorded { details, .. } = record.event else { panic!("{record:?}") };
        assert!(details == Some(EventPayload::new(text(bytes))), "{bytes} bytes were not read back unchanged");
    }
    let expected = pen.head();
    let entry = pen.note_with("too large", text(PAYLOAD_BYTES_MAX + 1));
    let answer = store.append(pen.append(expected, vec![entry]));
    exceeds(answer, "payload_bytes_max", PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1);
}

fn payload_bytes_max_when_opening(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    let mut opening = pen.opening();
    opening.entries.push(pen.note_with("too large", text(PAYLOAD_BYTES_MAX + 1)));
    exceeds(store.open(opening), "payload_bytes_max", PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1);
    assert!(done(store.execution(&pen.identity)).is_none());
}

/// The text of an entry is in its bytes; what a store accepts it must also read back.
fn entry_bytes_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let reason = |bytes: usize| Event::Paused { reason: "x".repeat(bytes) };
    let empty = pen.clone().seal(reason(0)).entry.bytes.len();
    for bytes in [ENTRY_BYTES_MAX - 1, ENTRY_BYTES_MAX] {
        let expected = pen.head();
        let entry = pen.seal(reason(bytes - empty));
        assert_eq!(entry.entry.bytes.len(), bytes);
        assert_eq!(done(store.append(pen.append(expected, vec![entry]))), AppendOutcome::New);
        assert_eq!(done(store.load(&pen.identity)).head, pen.head());
    }
    let expected = pen.head();
    let entry = pen.seal(reason(ENTRY_BYTES_MAX + 1 - empty));
    let answer = store.append(pen.append(expected, vec![entry]));
    exceeds(answer, "entry_bytes_max", ENTRY_BYTES_MAX, ENTRY_BYTES_MAX + 1);
}

fn payload_inline_max_makes_no_difference(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let sizes = [PAYLOAD_INLINE_MAX - 1, PAYLOAD_INLINE_MAX, PAYLOAD_INLINE_MAX + 1, 2 * PAYLOAD_INLINE_MAX];
    for bytes in sizes {
        let expected = pen.head();
        let entry = pen.note_with("a payload", text(bytes));
        done(store.append(pen.append(expected, vec![entry])));
    }
    let records = done(store.load(&pen.identity)).records;
    for (record, bytes) in records[1..].iter().zip(sizes) {
        let Event::DecisionRecorded { details, .. } = &record.event else { panic!("{record:?}") };
        assert!(*details == Some(EventPayload::new(text(bytes))), "{bytes} bytes were not read back unchanged");
    }
}

fn command_bytes_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    let command = |bytes: usize| NewCommand { bytes: vec![7; bytes], ..stage.new_command("exec_1", 1) };
    for bytes in [COMMAND_BYTES_MAX - 1, COMMAND_BYTES_MAX] {
        assert!(matches!(done(store.enqueue(command(bytes))), EnqueueOutcome::New { .. }));
    }
    let too_long = COMMAND_BYTES_MAX + 1;
    exceeds(store.enqueue(command(too_long)), "command_bytes_max", COMMAND_BYTES_MAX, too_long);
    assert_eq!(done(store.load(&stage.identity("exec_1"))).commands.len(), 2);
}

/// Of pending commands; a consumed one frees capacity, and every execution has its own.
fn commands_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.driven("exec_1");
    stage.opened("exec_2");
    let known = || NewCommand { request: request("key", "a"), ..stage.new_command("exec_1", 1) };
    let EnqueueOutcome::New { command: first } = done(store.enqueue(known())) else { panic!("the command is new") };
    for _ in 1..COMMANDS_MAX {
        stage.enqueue("exec_1", 1);
    }
    exceeds(store.enqueue(stage.new_command("exec_1", 1)), "commands_max", COMMANDS_MAX, COMMANDS_MAX + 1);
    assert_eq!(done(store.enqueue(known())), EnqueueOutcome::Already);
    stage.enqueue("exec_2", 1);
    stage.settle(&pen, &[first]);
    stage.enqueue("exec_1", 1);
}

fn request_key_bytes_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let key = |bytes: usize| request(&"k".repeat(bytes), "a");
    let open = |bytes: usize| ExecutionOpening { request: key(bytes), ..stage.pen(&format!("exec_{bytes}")).opening() };
    for bytes in [REQUEST_KEY_BYTES_MAX - 1, REQUEST_KEY_BYTES_MAX] {
        assert_eq!(done(store.open(open(bytes))), OpenOutcome::New { lease: None });
    }
    let too_long = REQUEST_KEY_BYTES_MAX + 1;
    exceeds(store.open(open(too_long)), "request_key_bytes_max", REQUEST_KEY_BYTES_MAX, too_long);
    stage.opened("exec_1");
    let command = NewCommand { request: key(too_long), ..stage.new_command("exec_1", 1) };
    exceeds(store.enqueue(command), "request_key_bytes_max", REQUEST_KEY_BYTES_MAX, too_long);
}

fn page_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    let tenant = stage.tenant();
    for limit in [1, PAGE_MAX - 1, PAGE_MAX] {
        let page = || Pagination::first(limit);
        assert_eq!(done(store.executions(&tenant, ExecutionFilter::default(), page())).items.len(), 1);
        assert!(!done(store.entries(&tenant, EntryFilter::default(), page())).items.is_empty());
        assert_eq!(done(store.plans(&tenant, PlanFilter::default(), page())).items.len(), 1);
    }
    for limit in [0, PAGE_MAX + 1] {
        let (max, found, page) = (PAGE_MAX as usize, limit as usize, || Pagination::first(limit));
        exceeds(store.executions(&tenant, ExecutionFilter::default(), page()), "page_max", max, found);
        exceeds(store.entries(&tenant, EntryFilter::default(), page()), "page_max", max, found);
        exceeds(store.plans(&tenant, PlanFilter::default(), page()), "page_max", max, found);
    }
}

fn append_entries_max(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let expected = pen.head();
    let resumed = || Event::Resumed { reason: String::new() };
    let entries: Vec<_> = (0..APPEND_ENTRIES_MAX).map(|_| pen.seal(resumed())).collect();
    let head = pen.head();
    let mut too_many = entries.clone();
    too_many.push(pen.seal(resumed()));
    let answer = store.append(pen.append(expected, too_many));
    exceeds(answer, "append_entries_max", APPEND_ENTRIES_MAX, APPEND_ENTRIES_MAX + 1);
    assert_eq!(done(store.append(pen.append(expected, entries))), AppendOutcome::New);
    assert_eq!(done(store.execution(&pen.identity)).expect("it is there").entries, head.seq);
}
