//! Following a ledger: every reader gets every entry once, in the same order, whenever it starts.

use super::fixture::{ConformanceFixture, done, refused};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::actor::Actor;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::port::feed::{FeedBatch, FeedEntry};
use rutter_core::port::upkeep::{CleanedPart, CleaningRequest, ErasureRequest};
use rutter_core::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    entries_come_in_the_order_in_which_they_were_written,
    nothing_comes_of_an_unwritten_ledger,
    at_the_end_there_is_nothing_and_the_position_stays,
    reading_on_from_any_position_returns_each_entry_once,
    another_tenants_entries_are_not_listed,
    erased_payloads_leave_their_entries,
    cleaned_up_entries_are_skipped,
    a_stretch_has_a_limit,
    waiting_for_existing_entries_returns_at_once,
    a_waiting_reader_is_notified_of_the_next_entry,
    a_reader_waiting_for_a_tenant_is_notified_when_it_appears,
    a_waiting_reader_is_not_notified_of_another_tenants_entries,
    a_reader_of_many_writers_sees_each_entry_once_and_in_order,
];

/// Reads to the end in pages of this size.
fn follow(stage: &ConformanceFixture<'_>, mut place: u64, limit: u32) -> Vec<FeedEntry> {
    let mut all = Vec::new();
    loop {
        let FeedBatch { items, until } = done(stage.store.entries_after(&stage.tenant(), place, limit));
        assert!(items.len() <= limit as usize && until >= place);
        assert!(items.iter().all(|placed| place < placed.position && placed.position <= until));
        all.extend(items);
        if until == place {
            return all;
        }
        place = until;
    }
}

fn notified(placed: &[FeedEntry]) -> Vec<(u64, String, u64, &'static str)> {
    let answer = placed.iter().map(|FeedEntry { position: place, stored, .. }| {
        (*place, stored.execution.to_string(), stored.seq, stored.event.kind())
    });
    answer.collect()
}

fn entries_come_in_the_order_in_which_they_were_written(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (mut one, mut two) = (stage.driven("exec_1"), stage.driven("exec_2"));
    stage.write(&mut one, "first");
    stage.write(&mut two, "second");
    stage.write(&mut one, "third");
    let placed = follow(&stage, 0, 100);
    let expected = [
        (1, "ledger", 1, "plan_saved"),
        (2, "exec_1", 1, "execution_opened"),
        (3, "exec_2", 1, "execution_opened"),
        (4, "exec_1", 2, "decision_recorded"),
        (5, "exec_2", 2, "decision_recorded"),
        (6, "exec_1", 3, "decision_recorded"),
    ];
    let expected = expected.map(|(place, execution, seq, kind)| (place, execution.to_owned(), seq, kind));
    assert_eq!(notified(&placed), expected);
    assert!(placed.iter().all(|placed| placed.stored.tenant == stage.tenant()));
    assert_eq!((placed[5].hash, placed[4].hash), (one.head().hash, two.head().hash));
    assert_eq!(done(store.size(&stage.tenant())), 6);
}

fn nothing_comes_of_an_unwritten_ledger(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    assert_eq!(done(store.size(&stage.tenant())), 0);
    assert_eq!(done(store.entries_after(&stage.tenant(), 0, 10)), FeedBatch::default());
}

fn at_the_end_there_is_nothing_and_the_position_stays(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    for place in [2, 3, u64::MAX] {
        let stretch = done(store.entries_after(&stage.tenant(), place, 10));
        assert_eq!(stretch, FeedBatch { items: Vec::new(), until: place });
    }
}

fn reading_on_from_any_position_returns_each_entry_once(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for at in 0..4 {
        let status = if at % 2 == 0 { ExecutionStatus::Completed } else { ExecutionStatus::Running };
        stage.ended(&format!("exec_{at}"), status, 50);
    }
    done(store.clean(cleaning(&stage)));
    let size = done(store.size(&stage.tenant()));
    let all = follow(&stage, 0, 1_000);
    assert_eq!(all.len() as u64, size - 4, "two executions of two entries are gone");
    for place in 0..=size {
        for limit in 1..=4 {
            let rest = all.iter().filter(|placed| placed.position > place).cloned().collect::<Vec<_>>();
            assert_eq!(follow(&stage, place, limit), rest, "after {place}, {limit} at a time");
        }
    }
}

fn another_tenants_entries_are_not_listed(store: &dyn ConformingStore) {
    let (stage, other) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "other"));
    stage.opened("exec_1");
    other.opened("exec_1");
    stage.opened("exec_2");
    assert_eq!(done(store.size(&stage.tenant())), 3);
    let placed = follow(&other, 0, 10);
    assert_eq!(placed.iter().map(|placed| placed.position).collect::<Vec<_>>(), [1, 2]);
    assert!(placed.iter().all(|placed| placed.stored.tenant == other.tenant()));
}

fn erased_payloads_leave_their_entries(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.ended("exec_1", ExecutionStatus::Completed, 50);
    let before = follow(&stage, 0, 10);
    done(store.erase(ErasureRequest {
        identity: pen.identity,
        entries: None,
        actor: Actor::person("operator"),
        at: Timestamp(60),
        reason: "asked to".into(),
    }));
    let after = follow(&stage, 0, 10);
    assert_eq!(after[..3], before[..]);
    assert_eq!(notified(&after[3..]), [(4, "ledger".to_owned(), 2, "payloads_erased")]);
}

fn cleaning(stage: &ConformanceFixture<'_>) -> CleaningRequest {
    CleaningRequest {
        tenant: stage.tenant(),
        statuses: Vec::new(),
        untouched_since: Timestamp(100),
        what: CleanedPart::Executions,
        dry_run: false,
        actor: Actor::person("operator"),
        at: Timestamp(200),
        reason: "a year has passed".into(),
    }
}

fn cleaned_up_entries_are_skipped(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.ended("exec_1", ExecutionStatus::Completed, 50);
    stage.opened("exec_2");
    done(store.clean(cleaning(&stage)));
    let left = [
        (1, "ledger".to_owned(), 1, "plan_saved"),
        (4, "exec_2".to_owned(), 1, "execution_opened"),
        (5, "ledger".to_owned(), 2, "executions_removed"),
    ];
    assert_eq!(notified(&follow(&stage, 0, 10)), left);
    assert_eq!(done(store.size(&stage.tenant())), 5, "a removed entry keeps its position");
    let stretch = done(store.entries_after(&stage.tenant(), 1, 1));
    assert_eq!((notified(&stretch.items), stretch.until), (left[1..2].to_vec(), 4));
}

fn a_stretch_has_a_limit(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    for limit in [0, 1_001] {
        refused(store.entries_after(&stage.tenant(), 0, limit), "store.limit");
    }
    assert_eq!(done(store.entries_after(&stage.tenant(), 0, 1)).items.len(), 1);
    assert_eq!(done(store.entries_after(&stage.tenant(), 0, 1_000)).items.len(), 2);
}

fn waiting_for_existing_entries_returns_at_once(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    for place in [0, 1] {
        assert_eq!(done(store.wait_beyond(&stage.tenant(), place)), 2);
    }
}

fn a_waiting_reader_is_notified_of_the_next_entry(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    // Writing and starting to wait race in every order; a lost wake-up would wait for ever.
    for round in 2..60 {
        let both = Barrier::new(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                both.wait();
                done(store.wait_beyond(&stage.tenant(), round))
            });
            both.wait();
            stage.write(&mut pen, "more");
            assert_eq!(waiting.join().expect("waiting does not panic"), round + 1);
        });
    }
}

fn a_reader_waiting_for_a_tenant_is_notified_when_it_appears(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| done(store.wait_beyond(&stage.tenant(), 1)));
        stage.opened("exec_1");
        assert_eq!(waiting.join().expect("waiting does not panic"), 2);
    });
}

fn a_waiting_reader_is_not_notified_of_another_tenants_entries(store: &dyn ConformingStore) {
    let (stage, other) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "other"));
    stage.opened("exec_1");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| done(store.wait_beyond(&stage.tenant(), 2)));
        for at in 0..5 {
            other.opened(&format!("exec_{at}"));
        }
        stage.opened("exec_2");
        assert_eq!(waiting.join().expect("waiting does not panic"), 3);
    });
}

const WRITERS: u64 = 8;
const ROUNDS: u64 = 20;

fn a_reader_of_many_writers_sees_each_entry_once_and_in_order(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.pen("saves the plan");
    let total = 1 + WRITERS * (1 + ROUNDS);
    let seen = thread::scope(|scope| {
        let following = scope.spawn(|| {
            let (mut seen, mut place) = (Vec::new(), 0);
            while place < total {
                done(store.wait_beyond(&stage.tenant(), place));
                let stretch = done(store.entries_after(&stage.tenant(), place, 7));
                seen.extend(stretch.items);
                place = stretch.until;
            }
            seen
        });
        for at in 0..WRITERS {
            scope.spawn(move || {
                let mut pen = stage.driven(&format!("exec_{at}"));
                for round in 0..ROUNDS {
                    stage.write(&mut pen, &format!("round {round}"));
                }
            });
        }
        following.join().expect("following does not panic")
    });
    let places: Vec<u64> = seen.iter().map(|placed| placed.position).collect();
    assert_eq!(places, (1..=total).collect::<Vec<_>>());
    assert_eq!(seen, follow(&stage, 0, 1_000), "a later reader sees the same");
    let mut seqs: BTreeMap<&str, u64> = BTreeMap::new();
    for placed in &seen {
        let seq = seqs.entry(placed.stored.execution.as_str()).or_default();
        *seq += 1;
        assert_eq!(placed.stored.seq, *seq, "of {}", placed.stored.execution);
    }
    assert_eq!(seqs.len() as u64, WRITERS + 1);
}
