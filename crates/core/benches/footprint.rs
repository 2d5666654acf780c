//! How much memory an execution takes, measured from outside: what the process holds before and after.

#[path = "shape/plan.rs"]
#[allow(dead_code, reason = "each bench needs its own part of the shapes")]
mod shape;

use rutter_core::execution::input::Input;
use rutter_core::execution::{Execution, Identity};
use rutter_core::journal::codec::Stored;
use rutter_core::journal::event::Record;
use rutter_core::journal::payload::Salt;
use rutter_core::plan::Plan;
use shape::Drive;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

/// Enough of them that pages and the plan they share do not matter.
const EXECUTIONS: usize = 200;
const PAGE_BYTES: u64 = 4096;

const SHAPES: [&str; 3] = ["chain", "diamond", "fan_out"];
const STATES: [(&str, usize); 4] =
    [("opened", 0), ("half_way", 1_000), ("ended", usize::MAX), (ERASED, usize::MAX)];
/// Replayed from a journal whose payloads were erased: the state alone.
const ERASED: &str = "ended_without_payloads";

/// Each case is measured in a process of its own: memory that was freed is not given back, and would count for the next.
fn main() {
    let mut words = env::args().skip(1).filter(|word| !word.starts_with('-'));
    match (words.next(), words.next()) {
        (Some(shape), Some(state)) => {
            println!("{shape}, {state}: {} KiB", footprint_bytes(&shape, &state) / 1024)
        }
        _ => {
            let program = env::current_exe().expect("this program has a path");
            for shape in SHAPES {
                for (state, _) in STATES {
                    let status = Command::new(&program).args([shape, state]).status();
                    assert!(status.expect("this program can be started").success());
                }
            }
        }
    }
}

/// What one execution of a thousand parts takes, small payloads included.
fn footprint_bytes(shape: &str, state: &str) -> u64 {
    let (document, items) = match shape {
        "chain" => (shape::chain(1_000), 0),
        "diamond" => (shape::diamond(1_000), 0),
        _ => (shape::fan_out(), 200),
    };
    let records_max = STATES.iter().find(|(name, _)| *name == state).map_or(0, |(_, records)| *records);
    let plan = shape::plan(&document);
    if state == ERASED {
        return replayed_bytes(&plan, items);
    }
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
    resident_bytes().saturating_sub(before) / executions.len() as u64
}

fn replayed_bytes(plan: &Arc<Plan>, items: usize) -> u64 {
    let mut drive = Drive::open(plan, items);
    drive.decide(Input::Start);
    drive.go_on(usize::MAX);
    let Identity { tenant, execution } = shape::identity();
    let erase = |(seq, record): (usize, &Record)| {
        let sealed = Stored::split(&tenant, &execution, seq as u64, record, &mut || Salt([0; 16]));
        sealed.expect("no payload is erased yet").0.open(&|_| None).expect("what is gone cannot be wrong")
    };
    let records: Vec<Record> = drive.records.iter().enumerate().map(erase).collect();
    let before = resident_bytes();
    let replay = |_| Execution::replay(shape::identity(), &records).expect("it was carried out like this");
    let executions: Vec<Execution> = (0..EXECUTIONS).map(replay).collect();
    resident_bytes().saturating_sub(before) / executions.len() as u64
}

fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("this measurement needs Linux");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second number of statm is the resident pages") * PAGE_BYTES
}
