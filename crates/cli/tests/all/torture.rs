//! The program is killed again and again while it works with tools that have real effects, and keeps its promises.

use crate::fixture::RUTTER;
use rutter_testkit::torture::{TortureOptions, TortureReport, torture};

const KILLS: u64 = 200;

#[test]
fn two_hundred_kills_break_no_promise() {
    let rutter = RUTTER.into();
    let report = torture(&TortureOptions { kills: KILLS, seed: 11, rutter, keep: false }).unwrap();
    assert!(report.violations.is_empty(), "{report:#?}");
    assert!(report.kills_total() >= KILLS, "{report:#?}");
    assert_hits_work(&report);
}

/// Kills that hit nothing would prove nothing.
fn assert_hits_work(report: &TortureReport) {
    for aim in ["time", "effect", "entry"] {
        assert!(report.kills.get(aim).is_some_and(|count| *count >= KILLS / 10), "{aim}: {report:#?}");
    }
    let at_least = [("lost", 50), ("doubts settled", 10), ("undoings", 5), ("acknowledged", 20), ("effects", 100)];
    for (what, least) in at_least {
        assert!(report.counted.get(what).is_some_and(|count| *count >= least), "{what}: {report:#?}");
    }
}
