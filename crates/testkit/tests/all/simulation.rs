//! A short simulation in every test run: runs without mistakes keep every promise. `scripts/mutants` shows that a
//! broken promise would be detected.

use rutter_core::port::journal::Journal;
use rutter_testkit::memory::MemoryStore;
use rutter_testkit::on_disk::on_sqlite;
use rutter_testkit::simulator::{simulate, simulate_on, simulated_run};

#[test]
fn clean_runs_break_no_promise_and_make_progress() {
    let report = simulate(0..1_500, 3);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    let tally = report.tally;
    assert!(tally.steps_completed * 2 >= tally.steps_begun, "{tally:?}");
    for (what, count) in [
        ("crashes", tally.crashes),
        ("fenced", tally.fenced),
        ("doubts", tally.doubts),
        ("replans", tally.replans),
        ("replans that wait for a person", tally.proposals),
        ("denials", tally.denials),
        ("forbidden calls", tally.forbidden),
        ("delayed calls", tally.delays),
        ("compensations", tally.compensations),
        ("late answers", tally.late_answers),
        ("approvals", tally.approvals),
        ("deviations", tally.deviations),
        ("hand-overs", tally.handovers),
        ("tickets", tally.tickets),
        ("resumed calls", tally.resumed),
        ("questions of tools", tally.tool_asks),
        ("answers to tools", tally.tool_answers),
        ("refusals", tally.refusals),
        ("appends of several decisions", tally.batches),
        ("withdrawn calls", tally.withdrawn),
        ("drifted tools", tally.drifts),
        ("effects that came late", tally.late_effects),
        ("second effects", tally.second_effects),
        ("probes that were asked too early", tally.early_probes),
        ("executions that were taken up again", tally.reopened),
        ("holds", tally.holds),
        ("silent agents", tally.silences),
        ("time limits", tally.time_limits),
        ("answers of people for whom a program vouches", tally.unproven),
    ] {
        assert!(count > 10, "only {count} {what} in {} runs", tally.runs);
    }
    for (what, count) in [
        ("keys that a tool has forgotten", tally.forgotten_keys),
        ("corrections", tally.corrections),
        ("answers refused because only a program vouches for the person", tally.unproven_refused),
    ] {
        assert!(count > 3, "only {count} {what} in {} runs", tally.runs);
    }
    assert!(tally.ended.iter().all(|ends| *ends > 10), "{:?}", tally.ended);
}

/// Seeds that once broke a promise, and what was wrong.
const FOUND: [(&str, &[u64]); 17] = [
    (
        "an attempt was started after its step's total time, closed at once, and its call was still made",
        &[10027, 10460, 37548, 47629, 51234, 54061, 56049, 63896, 74787, 74907, 92576, 93247, 96381],
    ),
    ("a step resolved by hand was undone as if its fallback had never taken effect", &[20258]),
    ("the monitor judged a fan-out under way by a condition that had changed since it began", &[240377]),
    ("an agent's new plan took the approval from a step that had been undone and would run again", &[508517]),
    ("the monitor did not know that a step can complete by a late answer", &[511498]),
    ("the monitor did not know that an agent gives up what waits for approval", &[507166]),
    ("the monitor did not know that an item can be left out that was stopped before its retry", &[2853]),
    (
        "the monitor did not know that a step which failed and is taken up again can complete by a late answer",
        &[1004828],
    ),
    ("the monitor did not know that an item which was stopped before its retry is a failure to tolerate", &[19009]),
    ("the monitor took another effect for the one that was undone", &[8414, 1013614, 1019140]),
    ("the monitor did not know that the undoing of a second effect alone leaves the other one", &[1016737]),
    ("an item waited for its fallback after its step was given up", &[1030070]),
    ("an item that was stopped before its call was never called when its step was retried after the end", &[1006954]),
    ("one of two effects was undone before a dependent, because the other one was undone by hand", &[1011956]),
    ("the monitor missed the report of a claim where a prefix ends before it", &[12716]),
    ("a step without parameters was written with null in a new plan", &[14399]),
    ("a retry of a call that could not be evaluated was judged as one without parameters", &[10991]),
];

#[test]
fn seeds_that_once_broke_a_promise_keep_it() {
    for (what, seeds) in FOUND {
        for seed in seeds {
            let report = simulate(*seed..*seed + 1, 1);
            assert!(report.violations.is_empty(), "{what}: {:#?}", report.violations);
        }
    }
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let catalog = rutter_testkit::simulator::plans::catalog();
    let story = || simulated_run::describe(7, &catalog, &MemoryStore::default()).expect("a plan");
    assert_eq!(story(), story());
}

#[test]
fn runs_on_the_real_store_go_as_in_memory() {
    let in_sqlite = |run: &mut dyn FnMut(&dyn Journal)| on_sqlite(|store| run(store));
    let on_disk = simulate_on(&in_sqlite, 0..60, 3);
    assert!(on_disk.violations.is_empty(), "{:#?}", on_disk.violations);
    assert_eq!(format!("{:?}", on_disk.tally), format!("{:?}", simulate(0..60, 3).tally));
    assert!(on_disk.tally.crashes > 10 && on_disk.tally.fenced > 0, "{:?}", on_disk.tally);
}
