//! The memory of an execution, measured as the resident memory of the process before and after.

#[path = "shape/plan.rs"]
#[allow(dead_code, reason = "each bench needs its own part of the shapes")]
mod shape;

use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::journal::codec::StoredRecord;
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::plan::Plan;
use shape::Drive;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

/// Enough executions that page sizes and the shared plan do not matter.
const EXECUTIONS: usize = 200;
const PAGE_BYTES: u64 = 4096;

const SHAPES: [&str; 3] = ["chain", "diamond", "fan_out"];
const STATES: [(&str, usize); 4] = [("opened", 0), ("half_way", 1_000), ("ended", usize::MAX), (ERASED, usize::MAX)];
/// Replayed from a journal whose payloads were erased: the state alone.
const ERASED: &str = "ended_without_payloads";

/// Each case runs in its own process: freed memory is not returned to the system and would distort the next.
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

/// The memory of one execution of a thousand parts, including small payloads.
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
                drive.decide(ExecutionInput::Start);
                drive.go_on(records_max);
            }
            // The records belong to the journal, not to the execution; shared payloads stay.
            drive.execution
        })
        .collect();
    resident_bytes().saturating_sub(before) / executions.len() as u64
}

fn replayed_bytes(plan: &Arc<Plan>, items: usize) -> u64 {
    let mut drive = Drive::open(plan, items);
    drive.decide(ExecutionInput::Start);
    drive.go_on(usize::MAX);
    let ExecutionIdentity { tenant, execution } = shape::identity();
    let erase = |(seq, record): (usize, &EventRecord)| {
        let sealed = StoredRecord::split(&tenant, &execution, seq as u64, record, &mut || PayloadSalt([0; 16]));
        sealed.expect("no payload is erased yet").0.open(&|_| None).expect("erased payloads always open")
    };
    let records: Vec<EventRecord> = drive.records.iter().enumerate().map(erase).collect();
    let before = resident_bytes();
    let replay = |_| Execution::replay(shape::identity(), &records).expect("it was recorded like this");
    let executions: Vec<Execution> = (0..EXECUTIONS).map(replay).collect();
    resident_bytes().saturating_sub(before) / executions.len() as u64
}

fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("this measurement needs Linux");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second number of statm is the resident pages") * PAGE_BYTES
}
