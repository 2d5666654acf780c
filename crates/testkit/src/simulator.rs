//! The seeded simulator: it tests the core without a database or a network.
//!
//! [`plans`] writes random plans, [`world`] answers badly, [`operators`] interferes, [`simulated_run`] drives and
//! crashes, [`monitor`] checks the promises. [`crate::mutants`] shows that it detects a broken one.

mod append;
mod evasion;
mod inspect;
mod late;
pub mod monitor;
pub mod operators;
mod pending_call;
pub mod plans;
pub mod simulated_journal;
pub mod simulated_run;
pub mod tally;
pub mod world;

use crate::memory::MemoryStore;
use crate::panic::caught;
use rutter_core::port::journal::Journal;
use rutter_core::tool::ToolCatalog;
use std::sync::atomic::{AtomicU64, Ordering};
use tally::SimulationTally;

/// A seed whose run broke a promise.
#[derive(Clone, Debug)]
pub struct SimulationViolation {
    pub seed: u64,
    pub what: String,
}

/// The result of many runs.
#[derive(Debug, Default)]
pub struct SimulationReport {
    pub tally: SimulationTally,
    pub violations: Vec<SimulationViolation>,
}

/// Runs the seeds on all cores, until `violations_max` promises are broken.
pub fn simulate(seeds: std::ops::Range<u64>, violations_max: usize) -> SimulationReport {
    simulate_on(&in_memory, seeds, violations_max)
}

/// Lends an empty journal for one run.
pub type JournalLender = dyn Fn(&mut dyn FnMut(&dyn Journal)) + Sync;

pub fn in_memory(simulate_one: &mut dyn FnMut(&dyn Journal)) {
    simulate_one(&MemoryStore::default());
}

/// The same on journals of any kind, a new one for each run.
pub fn simulate_on(lend: &JournalLender, seeds: std::ops::Range<u64>, violations_max: usize) -> SimulationReport {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(seeds.start);
    let catalog = plans::catalog();
    let work = || {
        let mut report = SimulationReport::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return report;
            }
            match run_seed(lend, seed, &catalog) {
                Ok(tally) => report.tally.add(&tally),
                Err(what) => {
                    report.violations.push(SimulationViolation { seed, what });
                    if report.violations.len() >= violations_max {
                        next.store(seeds.end, Ordering::Relaxed);
                    }
                }
            }
        }
    };
    let reports: Vec<SimulationReport> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("panics are caught per seed")).collect()
    });
    let mut all = SimulationReport::default();
    for report in reports {
        all.tally.add(&report.tally);
        all.violations.extend(report.violations);
    }
    all.violations.sort_by_key(|violation| violation.seed);
    all
}

/// One run; a panic is a broken promise like any other.
pub fn run_seed(lend: &JournalLender, seed: u64, catalog: &ToolCatalog) -> Result<SimulationTally, String> {
    let mut outcome = Err("no journal was lent".to_owned());
    let ended = caught(|| lend(&mut |journal| outcome = simulated_run::run(seed, catalog, journal)));
    ended.map_err(|message| format!("panicked: {message}")).and(outcome)
}
