//! How much memory an execution takes, measured from outside: what the process holds before and after.

#[path = "shape/plan.rs"]
#[allow(dead_code, reason = "each bench needs its own part of the shapes")]
mod shape;

use rutter_core::execution::input::Input;
use shape::Drive;
use std::fs;

/// Enough of them that pages and the plan they share do not matter.
const EXECUTIONS: usize = 200;
const PAGE_BYTES: u64 = 4096;

fn main() {
    for (name, document, items) in [
        ("chain of 1,000 steps", shape::chain(1_000), 0),
        ("diamond of 1,000 steps", shape::diamond(1_000), 0),
        ("5 steps of 200 items", shape::fan_out(), 200),
    ] {
        let plan = shape::plan(&document);
        for (state, records_max) in [("opened", 0), ("half way", 1_000), ("ended", usize::MAX)] {
            let before = resident_bytes();
            let executions: Vec<_> = (0..EXECUTIONS)
                .map(|_| {
                    let mut drive = Drive::open(&plan, items);
                    if records_max > 0 {
                        drive.decide(Input::Start);
                        drive.go_on(records_max);
                    }
                    // The records are the journal's, not the execution's; payloads they share stay.
                    drive.execution
                })
                .collect();
            let each = resident_bytes().saturating_sub(before) / executions.len() as u64;
            println!("{name}, {state}: {} KiB", each / 1024);
        }
    }
}

fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("this measurement needs Linux");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second number of statm is the resident pages") * PAGE_BYTES
}
