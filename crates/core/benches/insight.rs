//! The cost of projecting a ledger entry by entry, of adding up a year of days, and of a forecast.

#[path = "shape/plan.rs"]
#[allow(dead_code, reason = "each bench needs its own part of the shapes")]
mod shape;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, PlanId, StepId, TenantId, ToolName};
use rutter_core::insight::day::DailyTally;
use rutter_core::insight::forecast::{PlanHistory, of_plan};
use rutter_core::insight::projection::LedgerProjection;
use rutter_core::insight::tally::ActivityTally;
use rutter_core::journal::codec::StoredRecord;
use rutter_core::journal::event::{CallSide, Event, EventRecord, ExecutionEnding, PlanReference};
use rutter_core::journal::payload::{EventPayload, PayloadSalt};
use rutter_core::plan::Driver;
use rutter_core::port::feed::FeedEntry;
use rutter_core::time::Timestamp;
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;

const PLANS: u64 = 20;
const TOOLS: u64 = 40;
const STEPS: u64 = 10;
const DAY_MS: u64 = 86_400_000;

/// Executions of ten steps, a hundred at a time, spread over a year.
fn ledger(entries: u64) -> Vec<FeedEntry> {
    let tenant = TenantId::new("default");
    let payload = || EventPayload::Present(Arc::new(json!({})));
    let mut placed: Vec<FeedEntry> = Vec::new();
    let mut write = |execution: &str, at: u64, event: Event| {
        let record = EventRecord { at: Timestamp(at as i64), actor: Actor::rutter(), event };
        let execution = ExecutionId::new(execution);
        let (stored, _) = StoredRecord::split(&tenant, &execution, 1, &record, &mut || PayloadSalt([1; 16]))
            .expect("the payloads are there");
        let place = placed.len() as u64 + 1;
        placed.push(FeedEntry { position: place, hash: Hash::ZERO, stored });
        place
    };
    let plan = |number: u64| Hash::of(&[&number.to_be_bytes()]);
    for number in 0..PLANS {
        let (id, name) = (PlanId::new(&format!("plan_{number}")), format!("plan {number}"));
        write("ledger", 0, Event::PlanSaved { id, revision: 1, plan: plan(number), name });
    }
    let executions = entries / (STEPS * 2 + 3);
    for wave in 0..executions.div_ceil(100) {
        let at = |step: u64| wave * 100 * 365 * DAY_MS / executions.max(1) + step * 40;
        let names: Vec<String> = (0..100).map(|n| format!("exec_{wave}_{n}")).collect();
        for (number, name) in (0..).zip(&names) {
            let (plan, lineage) = (PlanReference { hash: plan(number % PLANS), plan: None }, name.clone());
            let driver = Driver::Server;
            write(name, at(0), Event::ExecutionOpened { plan, revision: 1, lineage, driver, inputs: payload() });
            write(name, at(0), Event::ExecutionStarted {});
        }
        for step in 0..STEPS {
            for (number, name) in (0..).zip(&names) {
                let part = PartId::whole(StepId::new(&format!("step_{step}")));
                let tool = ToolName::new(&format!("server.tool_{}", (step * 7 + number) % TOOLS));
                let (side, attempt) = (CallSide::Do, 1);
                let started = Event::AttemptStarted {
                    part: part.clone(),
                    side,
                    attempt,
                    by: Driver::Server,
                    tool,
                    definition: Hash::ZERO,
                    call: Hash::ZERO,
                    key: Hash::ZERO,
                    parameters: payload(),
                    deadline: None,
                };
                write(name, at(step), started);
                let (result, cost_micros) = (payload(), 5);
                let took = number * 3;
                write(name, at(step) + took, Event::AttemptSucceeded { part, side, attempt, result, cost_micros });
            }
        }
        for name in &names {
            let (outcome, reason) = (ExecutionEnding::Completed, String::new());
            write(name, at(STEPS), Event::ExecutionEnded { outcome, reason, remains: Vec::new() });
        }
    }
    placed
}

fn folded(ledger: &[FeedEntry]) -> LedgerProjection {
    let mut fold = LedgerProjection::default();
    ledger.iter().for_each(|placed| fold.apply(placed));
    fold
}

fn fold(c: &mut Criterion) {
    let mut group = c.benchmark_group("insight");
    group.sample_size(10);
    for entries in [10_000, 1_000_000] {
        let ledger = ledger(entries);
        group.throughput(Throughput::Elements(ledger.len() as u64));
        group.bench_function(format!("fold {entries}"), |b| b.iter(|| folded(black_box(&ledger)).place()));
    }
    group.finish();
}

fn year(c: &mut Criterion) {
    let fold = folded(&ledger(1_000_000));
    let days: Vec<String> =
        fold.days().map(|(_, day)| serde_json::to_string(day).expect("a day is plain data")).collect();
    let bytes: usize = days.iter().map(String::len).sum();
    let mut group = c.benchmark_group("insight");
    group.sample_size(10);
    let count = days.len();
    group.bench_function(format!("add up {count} days"), |b| {
        b.iter(|| {
            let (mut plans, mut total) = (DailyTally::default(), ActivityTally::default());
            for (_, day) in fold.days() {
                plans.plans.add(&day.plans);
                total.add(&day.total());
            }
            (plans, total)
        });
    });
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function(format!("read {count} days"), |b| {
        b.iter(|| days.iter().filter_map(|day| serde_json::from_str::<DailyTally>(day).ok()).count());
    });
    group.finish();
}

/// From forty days on which every step ran twenty times.
fn look_ahead(c: &mut Criterion) {
    let mut group = c.benchmark_group("insight");
    group.sample_size(20);
    for steps in [10, 100, 1_000] {
        for (name, plan) in [("chain", shape::chain(steps)), ("diamond", shape::diamond(steps))] {
            let plan = shape::plan(&plan);
            let mut day = DailyTally::default();
            let called: Arc<str> = plan.name.as_str().into();
            for (at, step) in plan.steps.iter().enumerate() {
                day.steps.count(&called, &step.id, |tally| {
                    (1..=20).for_each(|n| tally.took_ms.record(n * (at as u64 + 7) % 5_000));
                    tally.failed = at as u64 % 3;
                });
            }
            let days = vec![day; 40];
            group.bench_function(format!("what 40 days know of a {name} of {steps}"), |b| {
                b.iter(|| PlanHistory::of(black_box(&plan), days.iter()));
            });
            let history = PlanHistory::of(&plan, days.iter());
            group.bench_function(format!("forecast of a {name} of {steps}"), |b| {
                b.iter(|| of_plan(black_box(&plan), &history).chance);
            });
        }
    }
    group.finish();
}

criterion_group!(benches, fold, year, look_ahead);
criterion_main!(benches);
