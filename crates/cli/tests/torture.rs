//! The program is killed again and again while it works with tools that have real effects, and keeps its promises.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

use rutter_testkit::torture::{Options, Report, torture};

const KILLS: u64 = 200;

#[test]
fn two_hundred_kills_break_no_promise() {
    let rutter = env!("CARGO_BIN_EXE_rutter").into();
    let report = torture(&Options { kills: KILLS, seed: 11, rutter, keep: false }).unwrap();
    assert!(report.violations.is_empty(), "{report:#?}");
    assert!(report.kills_total() >= KILLS, "{report:#?}");
    assert_hits_work(&report);
}

/// Kills that hit nothing would prove nothing.
fn assert_hits_work(report: &Report) {
    for aim in ["time", "effect", "entry"] {
        assert!(report.kills.get(aim).is_some_and(|count| *count >= KILLS / 10), "{aim}: {report:#?}");
    }
    let at_least =
        [("lost", 50), ("doubts settled", 10), ("undoings", 5), ("acknowledged", 20), ("effects", 100)];
    for (what, least) in at_least {
        assert!(report.counted.get(what).is_some_and(|count| *count >= least), "{what}: {report:#?}");
    }
}
