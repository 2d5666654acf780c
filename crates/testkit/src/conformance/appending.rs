//! Appending: atomically, and only at the end.

use super::fixture::{ConformanceFixture, ConformanceWriter, done, refused};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::hash::Hash;
use rutter_core::journal::chain::{ChainHead, HashChain};
use rutter_core::journal::event::Deviation;
use rutter_core::journal::payload::SealedPayload;
use rutter_core::port::Error;
use rutter_core::port::journal::{AppendOutcome, AppendRequest, SealedEntry};
use rutter_core::time::Timestamp;
use std::sync::Arc;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    an_append_leaves_its_row,
    the_same_entries_again_are_answered_as_known,
    entries_are_known_after_more_were_appended,
    a_known_append_changes_nothing,
    a_fenced_worker_is_refused_even_if_its_entries_are_known,
    an_append_at_an_old_head_is_a_conflict,
    a_head_with_another_hash_is_a_conflict,
    entries_partly_known_are_a_conflict,
    an_append_without_entries_takes_the_row,
    an_append_without_entries_at_an_old_head_is_a_conflict,
    entries_with_a_gap_are_invalid,
    entries_out_of_order_are_invalid,
    an_entry_that_does_not_follow_is_invalid,
    an_entry_with_altered_bytes_is_invalid,
    an_entry_of_another_execution_is_invalid,
    an_invalid_entry_keeps_the_good_ones_before_it_out,
    a_refused_append_changes_nothing,
    journals_do_not_run_into_each_other,
];

fn summary_row(
    store: &dyn ConformingStore,
    pen: &ConformanceWriter,
) -> rutter_core::execution::row::ExecutionProjection {
    done(store.execution(&pen.identity)).expect("it is there").row
}

fn an_append_leaves_its_row(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    pen.now = Timestamp(12);
    pen.row.status = ExecutionStatus::Waiting;
    pen.row.questions = 2;
    pen.row.settled = 1;
    pen.row.cause = Some("a person must approve a".to_owned());
    pen.row.started_at = Some(Timestamp(3));
    stage.write(&mut pen, "a question");
    assert_eq!(summary_row(store, &pen), pen.row);
    assert_eq!(pen.row.last_at, Timestamp(12));
    // The status stays, the cause does not.
    for cause in [Some("a failed".to_owned()), None] {
        pen.row.cause = cause;
        stage.write(&mut pen, "another question");
        assert_eq!(summary_row(store, &pen), pen.row);
    }
    // Nothing but the deviations changes.
    pen.row.deviations = Some([(Deviation::Forbidden, 2), (Deviation::SecondEffect, 1)].into());
    stage.write(&mut pen, "a deviation");
    assert_eq!(summary_row(store, &pen), pen.row);
    assert_eq!(done(store.execution(&pen.identity)).expect("it is there").entries, 5);
}

fn the_same_entries_again_are_answered_as_known(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let expected = pen.head();
    let entries = vec![pen.note("a"), pen.note("b")];
    let append = pen.append(expected, entries);
    assert_eq!(done(store.append(append.clone())), AppendOutcome::New);
    assert_eq!(done(store.append(append)), AppendOutcome::Already);
    assert_eq!(done(store.load(&pen.identity)).records.len(), 3);
}

fn entries_are_known_after_more_were_appended(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let expected = pen.head();
    let entry = pen.note("a");
    let append = pen.append(expected, vec![entry]);
    done(store.append(append.clone()));
    stage.write(&mut pen, "b");
    assert_eq!(done(store.append(append)), AppendOutcome::Already);
    assert_eq!(done(store.load(&pen.identity)).head, pen.head());
}

fn a_known_append_changes_nothing(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let expected = pen.head();
    let entry = pen.note("a");
    let append = pen.append(expected, vec![entry]);
    done(store.append(append.clone()));
    pen.row.status = ExecutionStatus::Paused;
    stage.write(&mut pen, "b");
    let command = stage.enqueue("exec_1", 5);
    assert_eq!(done(store.append(AppendRequest { decided_commands: vec![command], ..append })), AppendOutcome::Already);
    let found = done(store.execution(&pen.identity)).expect("it is there");
    assert_eq!((found.row.status, found.pending_commands), (ExecutionStatus::Paused, 1));
}

fn a_fenced_worker_is_refused_even_if_its_entries_are_known(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    pen.row.due_at = Some(Timestamp(0));
    let expected = pen.head();
    let entry = pen.note("a");
    let append = pen.append(expected, vec![entry]);
    done(store.append(append.clone()));
    assert_eq!(stage.claim("worker_2", 1, 1), ["exec_1"]);
    refused(store.append(append), "store.fenced");
}

fn an_append_at_an_old_head_is_a_conflict(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let (expected, mut other) = (pen.head(), pen.clone());
    stage.write(&mut pen, "a");
    let entry = other.note("instead of a");
    let error = refused(store.append(other.append(expected, vec![entry])), "store.conflict");
    assert!(matches!(error, Error::Conflict { expected: 1, found: 2, .. }), "{error:?}");
    assert_eq!(done(store.load(&pen.identity)).head, pen.head());
}

fn a_head_with_another_hash_is_a_conflict(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let wrong = ChainHead { hash: Hash::of(&[b"wrong"]), ..pen.head() };
    pen.chain = HashChain::resume(pen.identity.tenant.clone(), pen.identity.execution.clone(), wrong);
    let entry = pen.note("a");
    refused(store.append(pen.append(wrong, vec![entry])), "store.conflict");
}

fn entries_partly_known_are_a_conflict(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let expected = pen.head();
    let (a, b) = (pen.note("a"), pen.note("b"));
    done(store.append(pen.append(expected, vec![a.clone()])));
    refused(store.append(pen.append(expected, vec![a, b])), "store.conflict");
    assert_eq!(done(store.load(&pen.identity)).records.len(), 2);
}

/// A command may be answered without any entry.
fn an_append_without_entries_takes_the_row(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    pen.row.due_at = Some(Timestamp(77));
    stage.settle(&pen, &[]);
    stage.settle(&pen, &[]);
    assert_eq!(summary_row(store, &pen).due_at, Some(Timestamp(77)));
}

fn an_append_without_entries_at_an_old_head_is_a_conflict(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let old = pen.append(pen.head(), Vec::new());
    stage.write(&mut pen, "a");
    refused(store.append(old), "store.conflict");
}

/// Appends invalid entries and checks that none of them was stored.
fn is_invalid(store: &dyn ConformingStore, pen: &ConformanceWriter, expected: ChainHead, entries: Vec<SealedEntry>) {
    refused(store.append(pen.append(expected, entries)), "store.invalid");
    assert_eq!(done(store.load(&pen.identity)).head, expected);
}

fn entries_with_a_gap_are_invalid(store: &dyn ConformingStore) {
    let mut pen = ConformanceFixture::new(store).driven("exec_1");
    let expected = pen.head();
    let [a, b, c] = ["a", "b", "c"].map(|words| pen.note(words));
    is_invalid(store, &pen, expected, vec![b]);
    is_invalid(store, &pen, expected, vec![a, c]);
}

fn entries_out_of_order_are_invalid(store: &dyn ConformingStore) {
    let mut pen = ConformanceFixture::new(store).driven("exec_1");
    let expected = pen.head();
    let [a, b] = ["a", "b"].map(|words| pen.note(words));
    is_invalid(store, &pen, expected, vec![b, a.clone()]);
    is_invalid(store, &pen, expected, vec![a.clone(), a]);
}

fn an_entry_that_does_not_follow_is_invalid(store: &dyn ConformingStore) {
    let mut pen = ConformanceFixture::new(store).driven("exec_1");
    let expected = pen.head();
    let [a, b] = ["a", "b"].map(|words| pen.note(words));
    let mut detached = b.clone();
    detached.entry.prev = expected.hash;
    is_invalid(store, &pen, expected, vec![a.clone(), detached]);
    let mut renumbered = b;
    renumbered.entry.seq = 2;
    is_invalid(store, &pen, expected, vec![renumbered]);
}

fn an_entry_with_altered_bytes_is_invalid(store: &dyn ConformingStore) {
    let mut pen = ConformanceFixture::new(store).driven("exec_1");
    let expected = pen.head();
    let mut altered = pen.note("a");
    let bytes = String::from_utf8(altered.entry.bytes.to_vec()).expect("entries are text");
    altered.entry.bytes = bytes.replace("\"a\"", "\"b\"").into_bytes().into();
    is_invalid(store, &pen, expected, vec![altered]);
}

fn an_entry_of_another_execution_is_invalid(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (pen, mut other) = (stage.driven("exec_1"), stage.driven("exec_2"));
    let entry = other.note("for the other");
    is_invalid(store, &pen, pen.head(), vec![entry]);
}

fn an_invalid_entry_keeps_the_good_ones_before_it_out(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let expected = pen.head();
    let mut entries: Vec<SealedEntry> = ["a", "b", "c"].map(|words| pen.note(words)).into();
    entries[2].entry.hash = Hash::of(&[b"wrong"]);
    is_invalid(store, &pen, expected, entries);
    assert_eq!(done(store.totals(&stage.tenant())).entries, 2, "the plan and the opening");
}

fn a_refused_append_changes_nothing(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let command = stage.enqueue("exec_1", 5);
    let before = done(store.execution(&pen.identity));
    let expected = pen.head();
    let mut entry = pen.note("a");
    let payload = entry.payloads[0].clone();
    entry.payloads[0] = SealedPayload { bytes: Arc::from(vec![b' '; (16 << 20) + 1]), ..payload };
    pen.row.status = ExecutionStatus::Failed;
    let append = AppendRequest { decided_commands: vec![command], ..pen.append(expected, vec![entry]) };
    refused(store.append(append), "store.limit");
    assert_eq!(done(store.execution(&pen.identity)), before);
    assert_eq!(done(store.totals(&stage.tenant())).executions.get("failed"), None);
}

fn journals_do_not_run_into_each_other(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pens = [stage.driven("exec_1"), stage.driven("exec_2")];
    for round in 0..3 {
        for pen in &mut pens {
            let words = format!("{} {round}", pen.identity.execution);
            stage.write(pen, &words);
        }
    }
    for pen in &pens {
        let loaded = done(store.load(&pen.identity));
        assert_eq!((loaded.head, loaded.records.len()), (pen.head(), 4));
        let mine = pen.identity.execution.as_str();
        let words = loaded.records.iter().filter_map(|record| record.event.words());
        assert!(words.into_iter().all(|words| words.starts_with(mine)));
    }
}
