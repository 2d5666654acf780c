//! The analytics of a ledger equal those of each execution by itself, however often processing is interrupted.

mod ledger;
mod slow;

use ledger::{Ledger, fold, fold_with_stops};
use rutter_core::insight::tally::{ActivityTally, WaitCause};
use rutter_core::journal::event::{Event, EventRecord, Question, QuestionAnswer};
use rutter_testkit::chance::SeededRandom;

const LEDGERS: u64 = 40;
const EXECUTIONS: u64 = 25;

#[test]
fn stopping_and_resuming_changes_nothing() {
    for seed in 0..LEDGERS {
        let ledger = Ledger::of(seed * 1_000..seed * 1_000 + EXECUTIONS, seed);
        let once = fold(&ledger);
        for stops in [1, 3, 20] {
            let mut chance = SeededRandom::new(seed);
            let with_stops = fold_with_stops(&ledger, stops, &mut chance);
            assert_eq!(with_stops.open(), once.open(), "ledger {seed}");
            assert!(with_stops.days().eq(once.days()), "ledger {seed} with {stops} stops");
        }
    }
}

#[test]
fn a_repeated_entry_is_not_counted_again() {
    let ledger = Ledger::of(0..EXECUTIONS, 1);
    let once = fold(&ledger);
    let mut twice = once.clone();
    for placed in &ledger.entries {
        twice.apply(placed);
    }
    assert_eq!(twice, once);
}

/// Without the waits that one entry does not show. An execution that ended with a changed tool and is then undone waits
/// for that tool again. An answer about one item, and a correction, end or begin the wait of a step depending on its
/// other items.
fn comparable(tally: &ActivityTally, records: &[EventRecord]) -> ActivityTally {
    let mut tally = tally.clone();
    tally.waits_ms.remove(&WaitCause::Drift);
    let depends_on_items = records.iter().any(|record| match &record.event {
        Event::QuestionAnswered { about: Question::Item(_), answer, .. } => *answer != QuestionAnswer::Retry,
        Event::SettlementCorrected { happened, .. } => !happened,
        _ => false,
    });
    if depends_on_items {
        tally.waits_ms.remove(&WaitCause::Failure);
    }
    tally
}

#[test]
fn the_counts_equal_those_of_a_slow_count_of_every_execution() {
    let (mut seen, mut again) = (ActivityTally::default(), 0);
    for seed in 0..LEDGERS {
        let ledger = Ledger::of(seed * 1_000..seed * 1_000 + EXECUTIONS, seed);
        let folded = fold(&ledger);
        let mut one_by_one = ActivityTally::default();
        for (execution, records) in &ledger.executions {
            let alone = fold(&ledger.only(execution));
            let mut counted = ActivityTally::default();
            for (_, day) in alone.days() {
                counted.add(&day.total());
            }
            let expected = slow::tally(execution, records);
            assert_eq!(comparable(&counted, records), comparable(&expected, records), "{execution} of ledger {seed}");
            one_by_one.add(&counted);
            seen.add(&expected);
            again += expected.ended_again;
        }
        let mut together = ActivityTally::default();
        for (_, day) in folded.days() {
            together.add(&day.total());
        }
        assert_eq!(together, one_by_one, "ledger {seed}");
    }
    assert!(again > 5 && seen.ended.all() > 300 && seen.doubts > 10 && seen.replans > 10, "{seen:?}");
    // Waits for changed tools are not compared here; a test in the core covers drift.
    for cause in WaitCause::ALL.into_iter().filter(|cause| *cause != WaitCause::Drift) {
        assert!(seen.waits_ms.get(&cause).is_some_and(|waits| waits.count() > 5), "{cause:?}");
    }
}

#[test]
fn plans_tools_and_drivers_add_up_to_the_same() {
    let ledger = Ledger::of(7_000..7_000 + EXECUTIONS, 7);
    let folded = fold(&ledger);
    let (mut plans, mut tools, mut drivers) =
        (ActivityTally::default(), ActivityTally::default(), ActivityTally::default());
    for (_, day) in folded.days() {
        day.plans.iter().for_each(|(_, tally)| plans.add(tally));
        day.tools.iter().for_each(|(_, tally)| tools.add(tally));
        drivers.add(&day.total());
    }
    assert_eq!(plans, drivers);
    assert_eq!((&tools.attempts, tools.retries), (&plans.attempts, plans.retries));
    assert_eq!((&tools.attempt_ms, tools.lost, tools.doubts), (&plans.attempt_ms, plans.lost, plans.doubts));
    let opened: u64 = folded.days().flat_map(|(_, day)| day.hours.values()).map(|hour| hour.opened).sum();
    let saved: u64 = folded.days().map(|(_, day)| day.saved()).sum();
    assert_eq!((opened, saved), (EXECUTIONS, ledger.plans));
}
