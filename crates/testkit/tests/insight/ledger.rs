//! Ledgers of simulated executions, each spread over some days and mixed with the others.

use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::insight::day::{Date, Day};
use rutter_core::insight::fold::{Fold, Need};
use rutter_core::insight::open::{Open, Origin};
use rutter_core::journal::codec::Stored;
use rutter_core::journal::event::{Event, Record};
use rutter_core::journal::payload::Salt;
use rutter_core::port::feed::Placed;
use rutter_core::port::journal::Journal;
use rutter_core::time::Timestamp;
use rutter_store::wait;
use rutter_testkit::chance::Chance;
use rutter_testkit::memory::Memory;
use rutter_testkit::simulator::{plans, voyage};
use std::collections::{BTreeMap, VecDeque};

pub struct Ledger {
    pub entries: Vec<Placed>,
    pub executions: BTreeMap<ExecutionId, Vec<Record>>,
    /// Revisions that were saved.
    pub plans: u64,
}

impl Ledger {
    /// Simulates the seeds and mixes their entries.
    pub fn of(seeds: std::ops::Range<u64>, seed: u64) -> Ledger {
        let mut chance = Chance::new(seed);
        let catalog = plans::catalog();
        let mut executions = BTreeMap::new();
        for seed in seeds {
            let memory = Memory::default();
            voyage::sail(seed, &catalog, &memory).unwrap();
            let execution = ExecutionId::new(&format!("exec_{seed}"));
            let identity = Identity { tenant: tenant(), execution: execution.clone() };
            let mut records = wait(memory.load(&identity)).unwrap().records;
            // Some days later, and some hours; slower as well, so that executions reach over midnight.
            let (later_ms, slower) = (chance.below(5 * 86_400_000), 1 + chance.below(3) * 1_000);
            for record in &mut records {
                record.at = Timestamp(record.at.0 * slower as i64 + later_ms as i64);
            }
            executions.insert(execution, records);
        }
        Ledger::mixed(executions, &mut chance)
    }

    fn mixed(executions: BTreeMap<ExecutionId, Vec<Record>>, chance: &mut Chance) -> Ledger {
        let mut lines: Vec<(ExecutionId, VecDeque<(u64, Record)>)> = (executions.iter())
            .map(|(execution, records)| (execution.clone(), (1..).zip(records.iter().cloned()).collect()))
            .collect();
        let (mut entries, mut saved) = (Vec::new(), 0);
        while !lines.is_empty() {
            let at = chance.index(lines.len());
            let (execution, line) = &mut lines[at];
            let execution = execution.clone();
            for _ in 0..=chance.below(4) {
                let Some((seq, record)) = line.pop_front() else { break };
                if let Event::ExecutionOpened { plan, .. } | Event::Replanned { plan, .. } = &record.event {
                    saved += 1;
                    let name = plan.plan.as_ref().unwrap().name.clone();
                    let id = PlanId::new(&format!("plan_{execution}"));
                    let event = Event::PlanSaved { id, revision: 1, plan: plan.hash, name };
                    let record = Record { at: record.at, actor: Actor::agent("pilot"), event };
                    entries.push(placed(entries.len(), &ExecutionId::new("ledger"), saved, &record));
                }
                entries.push(placed(entries.len(), &execution, seq, &record));
            }
            if line.is_empty() {
                lines.swap_remove(at);
            }
        }
        Ledger { entries, executions, plans: saved }
    }

    /// One execution alone.
    pub fn only(&self, execution: &ExecutionId) -> Ledger {
        let executions = BTreeMap::from([(execution.clone(), self.executions[execution].clone())]);
        Ledger::mixed(executions, &mut Chance::new(0))
    }

    fn origin(&self, execution: &ExecutionId) -> Origin {
        let first = &self.executions[execution][0];
        let Event::ExecutionOpened { plan, driver, .. } = &first.event else { panic!("{first:?}") };
        let plan = plan.plan.as_ref().unwrap().name.as_str().into();
        Origin { plan, driver: *driver, opened_at: first.at }
    }
}

pub fn fold(ledger: &Ledger) -> Fold {
    let mut fold = Fold::default();
    ledger.entries.iter().for_each(|placed| take(&mut fold, placed, ledger, &mut BTreeMap::new()));
    fold
}

/// The same, written down and taken up again so many times.
pub fn fold_with_stops(ledger: &Ledger, stops: usize, chance: &mut Chance) -> Fold {
    let mut cuts: Vec<usize> = (0..stops).map(|_| chance.index(ledger.entries.len())).collect();
    cuts.sort_unstable();
    let (mut fold, mut written) = (Fold::default(), BTreeMap::new());
    for (at, placed) in ledger.entries.iter().enumerate() {
        for _ in cuts.iter().filter(|cut| **cut == at) {
            for (date, day) in fold.changed() {
                written.insert(date, serde_json::to_string(day).unwrap());
            }
            let open: Open = serde_json::from_str(&serde_json::to_string(fold.open()).unwrap()).unwrap();
            fold = Fold::resume(open);
        }
        take(&mut fold, placed, ledger, &mut written);
    }
    for (date, day) in written {
        fold.supply(date, serde_json::from_str(&day).unwrap());
    }
    fold
}

fn take(fold: &mut Fold, placed: &Placed, ledger: &Ledger, written: &mut BTreeMap<Date, String>) {
    while let Some(need) = fold.needs(placed) {
        match need {
            Need::Day(date) => {
                let day = written.get(&date).map(|day| serde_json::from_str::<Day>(day).unwrap());
                fold.supply(date, day.unwrap_or_default());
            }
            Need::Plan(hash) => panic!("plan {hash} was saved before"),
            Need::Execution(execution) => fold.introduce(&execution, ledger.origin(&execution)),
        }
    }
    fold.take(placed);
}

fn placed(before: usize, execution: &ExecutionId, seq: u64, record: &Record) -> Placed {
    let mut salt = || Salt([7; 16]);
    let (stored, _) = Stored::split(&tenant(), execution, seq, record, &mut salt).unwrap();
    Placed { place: before as u64 + 1, hash: Hash::ZERO, stored }
}

fn tenant() -> TenantId {
    TenantId::new("sim")
}
