//! A short simulation with every test run: clean voyages keep every promise, and each deliberate mistake is noticed.

use rutter_core::port::journal::Journal;
use rutter_testkit::memory::Memory;
use rutter_testkit::on_disk::on_sqlite;
use rutter_testkit::simulator::{mutation, simulate, simulate_on, voyage};

#[test]
fn clean_voyages_break_no_promise_and_get_something_done() {
    let report = simulate(0..1_500, None, 3);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    let tally = report.tally;
    assert!(tally.steps_completed * 2 >= tally.steps_begun, "{tally:?}");
    for (what, count) in [
        ("crashes", tally.crashes),
        ("fenced", tally.fenced),
        ("doubts", tally.doubts),
        ("replans", tally.replans),
        ("compensations", tally.compensations),
        ("late answers", tally.late_answers),
        ("approvals", tally.approvals),
        ("deviations", tally.deviations),
        ("hand-overs", tally.handovers),
        ("tickets", tally.tickets),
        ("calls gone on with", tally.resumed),
        ("questions of tools", tally.tool_asks),
        ("answers to tools", tally.tool_answers),
        ("refusals", tally.refusals),
    ] {
        assert!(count > 10, "only {count} {what} in {} voyages", tally.voyages);
    }
    assert!(tally.ended.iter().all(|ends| *ends > 10), "{:?}", tally.ended);
}

#[test]
fn every_deliberate_mistake_is_noticed() {
    let mistakes = mutation::all();
    assert!(mistakes.len() >= 15);
    for (name, mistake) in mistakes {
        let report = simulate(0..6_000, Some(mistake), 1);
        assert!(!report.violations.is_empty(), "{name} was not noticed");
    }
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let catalog = rutter_testkit::simulator::plans::catalog();
    let story = || voyage::tell(7, &catalog, &Memory::default()).expect("a plan");
    assert_eq!(story(), story());
}

#[test]
fn voyages_on_the_real_store_go_as_in_memory() {
    let in_sqlite = |voyage: &mut dyn FnMut(&dyn Journal)| on_sqlite(|store| voyage(store));
    let on_disk = simulate_on(&in_sqlite, 0..60, None, 3);
    assert!(on_disk.violations.is_empty(), "{:#?}", on_disk.violations);
    assert_eq!(format!("{:?}", on_disk.tally), format!("{:?}", simulate(0..60, None, 3).tally));
    assert!(on_disk.tally.crashes > 10 && on_disk.tally.fenced > 0, "{:?}", on_disk.tally);
}
