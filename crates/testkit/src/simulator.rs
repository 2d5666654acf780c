//! The seeded simulator: it proves the core before there is a database or a network.
//!
//! [`plans`] writes random plans, [`world`] answers badly, [`crew`] interferes, [`voyage`] drives and crashes,
//! [`monitor`] knows the promises. [`mutation`] makes deliberate mistakes, to show that they would be seen.

pub mod crew;
mod flight;
mod inspect;
pub mod logbook;
pub mod monitor;
pub mod mutation;
pub mod plans;
pub mod tally;
pub mod voyage;
pub mod world;

use crate::memory::Memory;
use crate::panic::caught;
use mutation::Mistake;
use rutter_core::port::journal::Journal;
use rutter_core::tool::ToolCatalog;
use std::sync::atomic::{AtomicU64, Ordering};
use tally::Tally;

/// A seed whose voyage broke a promise.
#[derive(Clone, Debug)]
pub struct Violation {
    pub seed: u64,
    pub what: String,
}

/// What came of many voyages.
#[derive(Debug, Default)]
pub struct Report {
    pub tally: Tally,
    pub violations: Vec<Violation>,
}

/// Sails the seeds on all cores, each with the same mistake, until `violations_max` promises are broken.
pub fn simulate(seeds: std::ops::Range<u64>, mistake: Option<Mistake>, violations_max: usize) -> Report {
    simulate_on(&in_memory, seeds, mistake, violations_max)
}

/// Lends an empty journal for one voyage.
pub type Lend = dyn Fn(&mut dyn FnMut(&dyn Journal)) + Sync;

pub fn in_memory(voyage: &mut dyn FnMut(&dyn Journal)) {
    voyage(&Memory::default());
}

/// The same on journals of any kind, a new one for each voyage.
pub fn simulate_on(
    lend: &Lend,
    seeds: std::ops::Range<u64>,
    mistake: Option<Mistake>,
    violations_max: usize,
) -> Report {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(seeds.start);
    let catalog = plans::catalog();
    let work = || {
        mutation::activate(mistake);
        let mut report = Report::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return report;
            }
            match sail(lend, seed, &catalog) {
                Ok(tally) => report.tally.add(&tally),
                Err(what) => {
                    report.violations.push(Violation { seed, what });
                    if report.violations.len() >= violations_max {
                        next.store(seeds.end, Ordering::Relaxed);
                    }
                }
            }
        }
    };
    let reports: Vec<Report> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("panics are caught per seed")).collect()
    });
    let mut all = Report::default();
    for report in reports {
        all.tally.add(&report.tally);
        all.violations.extend(report.violations);
    }
    all.violations.sort_by_key(|violation| violation.seed);
    all
}

/// One voyage; a panic is a broken promise like any other.
pub fn sail(lend: &Lend, seed: u64, catalog: &ToolCatalog) -> Result<Tally, String> {
    let mut outcome = Err("no journal was lent".to_owned());
    let sailed = caught(|| lend(&mut |journal| outcome = voyage::sail(seed, catalog, journal)));
    sailed.map_err(|said| format!("panicked: {said}")).and(outcome)
}
