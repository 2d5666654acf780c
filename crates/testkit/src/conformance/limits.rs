//! Every limit of a store: just below, at, and just above it.

use super::stage::{Stage, done, refused, request};
use super::{Case, Store, cases};
use rutter_core::journal::event::Event;
use rutter_core::journal::payload::Payload;
use rutter_core::limits::{
    APPEND_ENTRIES_MAX, ENTRY_BYTES_MAX, LETTER_BYTES_MAX, LETTERS_MAX, PAGE_MAX, PAYLOAD_BYTES_MAX,
    PAYLOAD_INLINE_MAX, REQUEST_KEY_BYTES_MAX,
};
use rutter_core::port::journal::{Appended, NewLetter, Opened, Opening, Posted};
use rutter_core::port::query::{EntryFilter, ExecutionFilter, Page, PlanFilter};
use rutter_core::port::{Answer, Error};
use serde_json::json;
use std::fmt::Debug;

pub(super) const CASES: &[(&str, Case)] = cases![
    payload_bytes_max,
    payload_bytes_max_when_opening,
    entry_bytes_max,
    payload_inline_max_makes_no_difference,
    letter_bytes_max,
    letters_max,
    request_key_bytes_max,
    page_max,
    append_entries_max,
];

/// The answer names the limit, how much it allows and how much there was.
fn exceeds<T: Debug>(answer: Answer<'_, T>, limit: &'static str, max: usize, found: usize) {
    let error = refused(answer, "store.limit");
    assert_eq!(error, Error::Limit { limit, max: max as u64, found: found as u64 });
}

/// A text that is this long as JSON.
fn text(bytes: usize) -> serde_json::Value {
    json!("x".repeat(bytes - 2))
}

fn payload_bytes_max(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.driven("exec_1");
    for bytes in [PAYLOAD_BYTES_MAX - 1, PAYLOAD_BYTES_MAX] {
        let expected = pen.head();
        let entry = pen.note_with("large", text(bytes));
        assert_eq!(entry.payloads[0].bytes.len(), bytes);
        assert_eq!(done(store.append(pen.append(expected, vec![entry]))), Appended::New);
        let Some(record) = done(store.load(&pen.identity)).records.pop() else { panic!("it is empty") };
        let Event::DecisionRecorded { details, .. } = record.event else { panic!("{record:?}") };
        assert!(details == Some(Payload::new(text(bytes))), "{bytes} bytes did not come back as they were");
    }
    let expected = pen.head();
    let entry = pen.note_with("too large", text(PAYLOAD_BYTES_MAX + 1));
    let answer = store.append(pen.append(expected, vec![entry]));
    exceeds(answer, "payload_bytes_max", PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1);
}

fn payload_bytes_max_when_opening(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.pen("exec_1");
    let mut opening = pen.opening();
    opening.entries.push(pen.note_with("too large", text(PAYLOAD_BYTES_MAX + 1)));
    exceeds(store.open(opening), "payload_bytes_max", PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1);
    assert!(done(store.execution(&pen.identity)).is_none());
}

/// The words of an entry are in its bytes; what a store accepts it must also read back.
fn entry_bytes_max(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.driven("exec_1");
    let reason = |bytes: usize| Event::Paused { reason: "x".repeat(bytes) };
    let empty = pen.clone().seal(reason(0)).entry.bytes.len();
    for bytes in [ENTRY_BYTES_MAX - 1, ENTRY_BYTES_MAX] {
        let expected = pen.head();
        let entry = pen.seal(reason(bytes - empty));
        assert_eq!(entry.entry.bytes.len(), bytes);
        assert_eq!(done(store.append(pen.append(expected, vec![entry]))), Appended::New);
        assert_eq!(done(store.load(&pen.identity)).head, pen.head());
    }
    let expected = pen.head();
    let entry = pen.seal(reason(ENTRY_BYTES_MAX + 1 - empty));
    let answer = store.append(pen.append(expected, vec![entry]));
    exceeds(answer, "entry_bytes_max", ENTRY_BYTES_MAX, ENTRY_BYTES_MAX + 1);
}

fn payload_inline_max_makes_no_difference(store: &dyn Store) {
    let stage = Stage::new(store);
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
        assert!(*details == Some(Payload::new(text(bytes))), "{bytes} bytes did not come back as they were");
    }
}

fn letter_bytes_max(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.opened("exec_1");
    let letter = |bytes: usize| NewLetter { bytes: vec![7; bytes], ..stage.letter("exec_1", 1) };
    for bytes in [LETTER_BYTES_MAX - 1, LETTER_BYTES_MAX] {
        assert!(matches!(done(store.post(letter(bytes))), Posted::New { .. }));
    }
    let too_long = LETTER_BYTES_MAX + 1;
    exceeds(store.post(letter(too_long)), "letter_bytes_max", LETTER_BYTES_MAX, too_long);
    assert_eq!(done(store.load(&stage.identity("exec_1"))).letters.len(), 2);
}

/// Of those that wait; an answered one makes room, and other executions have their own.
fn letters_max(store: &dyn Store) {
    let stage = Stage::new(store);
    let pen = stage.driven("exec_1");
    stage.opened("exec_2");
    let known = || NewLetter { request: request("key", "a"), ..stage.letter("exec_1", 1) };
    let Posted::New { letter: first } = done(store.post(known())) else { panic!("it is new") };
    for _ in 1..LETTERS_MAX {
        stage.post("exec_1", 1);
    }
    exceeds(store.post(stage.letter("exec_1", 1)), "letters_max", LETTERS_MAX, LETTERS_MAX + 1);
    assert_eq!(done(store.post(known())), Posted::Already);
    stage.post("exec_2", 1);
    stage.settle(&pen, &[first]);
    stage.post("exec_1", 1);
}

fn request_key_bytes_max(store: &dyn Store) {
    let stage = Stage::new(store);
    let key = |bytes: usize| request(&"k".repeat(bytes), "a");
    let open =
        |bytes: usize| Opening { request: key(bytes), ..stage.pen(&format!("exec_{bytes}")).opening() };
    for bytes in [REQUEST_KEY_BYTES_MAX - 1, REQUEST_KEY_BYTES_MAX] {
        assert_eq!(done(store.open(open(bytes))), Opened::New { lease: None });
    }
    let too_long = REQUEST_KEY_BYTES_MAX + 1;
    exceeds(store.open(open(too_long)), "request_key_bytes_max", REQUEST_KEY_BYTES_MAX, too_long);
    stage.opened("exec_1");
    let letter = NewLetter { request: key(too_long), ..stage.letter("exec_1", 1) };
    exceeds(store.post(letter), "request_key_bytes_max", REQUEST_KEY_BYTES_MAX, too_long);
}

fn page_max(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.opened("exec_1");
    let tenant = stage.tenant();
    for limit in [1, PAGE_MAX - 1, PAGE_MAX] {
        let page = || Page::first(limit);
        assert_eq!(done(store.executions(&tenant, ExecutionFilter::default(), page())).items.len(), 1);
        assert!(!done(store.entries(&tenant, EntryFilter::default(), page())).items.is_empty());
        assert_eq!(done(store.plans(&tenant, PlanFilter::default(), page())).items.len(), 1);
    }
    for limit in [0, PAGE_MAX + 1] {
        let (max, found, page) = (PAGE_MAX as usize, limit as usize, || Page::first(limit));
        exceeds(store.executions(&tenant, ExecutionFilter::default(), page()), "page_max", max, found);
        exceeds(store.entries(&tenant, EntryFilter::default(), page()), "page_max", max, found);
        exceeds(store.plans(&tenant, PlanFilter::default(), page()), "page_max", max, found);
    }
}

fn append_entries_max(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.driven("exec_1");
    let expected = pen.head();
    let resumed = || Event::Resumed { reason: String::new() };
    let entries: Vec<_> = (0..APPEND_ENTRIES_MAX).map(|_| pen.seal(resumed())).collect();
    let head = pen.head();
    let mut too_many = entries.clone();
    too_many.push(pen.seal(resumed()));
    let answer = store.append(pen.append(expected, too_many));
    exceeds(answer, "append_entries_max", APPEND_ENTRIES_MAX, APPEND_ENTRIES_MAX + 1);
    assert_eq!(done(store.append(pen.append(expected, entries))), Appended::New);
    assert_eq!(done(store.execution(&pen.identity)).expect("it is there").entries, head.seq);
}
