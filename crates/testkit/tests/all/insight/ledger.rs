//! Ledgers of simulated executions, each spread over some days and mixed with the others.

use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::insight::day::{CalendarDate, DailyTally};
use rutter_core::insight::open::{ExecutionOrigin, ProjectionState};
use rutter_core::insight::projection::{LedgerProjection, ProjectionNeed};
use rutter_core::journal::codec::StoredRecord;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::port::feed::FeedEntry;
use rutter_core::port::journal::Journal;
use rutter_core::time::Timestamp;
use rutter_store::wait;
use rutter_testkit::chance::SeededRandom;
use rutter_testkit::memory::MemoryStore;
use rutter_testkit::simulator::{plans, simulated_run};
use std::collections::{BTreeMap, VecDeque};

pub struct Ledger {
    pub entries: Vec<FeedEntry>,
    pub executions: BTreeMap<ExecutionId, Vec<EventRecord>>,
    /// Revisions that were saved.
    pub plans: u64,
}

impl Ledger {
    /// Simulates the seeds and mixes their entries.
    pub fn of(seeds: std::ops::Range<u64>, seed: u64) -> Ledger {
        let mut chance = SeededRandom::new(seed);
        let catalog = plans::catalog();
        let mut executions = BTreeMap::new();
        for seed in seeds {
            let memory = MemoryStore::default();
            simulated_run::run(seed, &catalog, &memory).unwrap();
            let execution = ExecutionId::new(&format!("exec_{seed}"));
            let identity = ExecutionIdentity { tenant: tenant(), execution: execution.clone() };
            let mut records = wait(memory.load(&identity)).unwrap().records;
            // Some days and hours later; slower as well, so that executions span midnight.
            let (later_ms, slower) = (chance.below(5 * 86_400_000), 1 + chance.below(3) * 1_000);
            for record in &mut records {
                record.at = Timestamp(record.at.0 * slower as i64 + later_ms as i64);
            }
            executions.insert(execution, records);
        }
        Ledger::mixed(executions, &mut chance)
    }

    fn mixed(executions: BTreeMap<ExecutionId, Vec<EventRecord>>, chance: &mut SeededRandom) -> Ledger {
        let mut lines: Vec<(ExecutionId, VecDeque<(u64, EventRecord)>)> = (executions.iter())
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
                    let record = EventRecord { at: record.at, actor: Actor::agent("pilot"), event };
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
        Ledger::mixed(executions, &mut SeededRandom::new(0))
    }

    fn origin(&self, execution: &ExecutionId) -> ExecutionOrigin {
        let first = &self.executions[execution][0];
        let Event::ExecutionOpened { plan, driver, .. } = &first.event else { panic!("{first:?}") };
        let plan = plan.plan.as_ref().unwrap().name.as_str().into();
        ExecutionOrigin { plan, driver: *driver, opened_at: first.at }
    }
}

pub fn fold(ledger: &Ledger) -> LedgerProjection {
    let mut fold = LedgerProjection::default();
    ledger.entries.iter().for_each(|placed| take(&mut fold, placed, ledger, &mut BTreeMap::new()));
    fold
}

/// The same, serialized and resumed this many times.
pub fn fold_with_stops(ledger: &Ledger, stops: usize, chance: &mut SeededRandom) -> LedgerProjection {
    let mut cuts: Vec<usize> = (0..stops).map(|_| chance.index(ledger.entries.len())).collect();
    cuts.sort_unstable();
    let (mut fold, mut written) = (LedgerProjection::default(), BTreeMap::new());
    for (at, placed) in ledger.entries.iter().enumerate() {
        for _ in cuts.iter().filter(|cut| **cut == at) {
            for (date, day) in fold.changed() {
                written.insert(date, serde_json::to_string(day).unwrap());
            }
            let open: ProjectionState = serde_json::from_str(&serde_json::to_string(fold.open()).unwrap()).unwrap();
            fold = LedgerProjection::resume(open);
        }
        take(&mut fold, placed, ledger, &mut written);
    }
    for (date, day) in written {
        fold.supply(date, serde_json::from_str(&day).unwrap());
    }
    fold
}

fn take(
    fold: &mut LedgerProjection,
    placed: &FeedEntry,
    ledger: &Ledger,
    written: &mut BTreeMap<CalendarDate, String>,
) {
    while let Some(need) = fold.needs(placed) {
        match need {
            ProjectionNeed::Day(date) => {
                let day = written.get(&date).map(|day| serde_json::from_str::<DailyTally>(day).unwrap());
                fold.supply(date, day.unwrap_or_default());
            }
            ProjectionNeed::Plan(hash) => panic!("plan {hash} was saved before"),
            ProjectionNeed::Execution(execution) => fold.introduce(&execution, ledger.origin(&execution)),
        }
    }
    fold.apply(placed);
}

fn placed(before: usize, execution: &ExecutionId, seq: u64, record: &EventRecord) -> FeedEntry {
    let mut salt = || PayloadSalt([7; 16]);
    let (stored, _) = StoredRecord::split(&tenant(), execution, seq, record, &mut salt).unwrap();
    FeedEntry { position: before as u64 + 1, hash: Hash::ZERO, stored }
}

fn tenant() -> TenantId {
    TenantId::new("sim")
}
