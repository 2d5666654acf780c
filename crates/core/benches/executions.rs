//! The cost of deciding, replaying and viewing executions. Throughput is counted in events.

#[path = "shape/plan.rs"]
#[allow(dead_code, reason = "each bench needs its own part of the shapes")]
mod shape;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::journal::event::ExecutionEnding;
use rutter_core::plan::Plan;
use rutter_core::time::Timestamp;
use shape::Drive;
use std::hint::black_box;
use std::sync::Arc;

/// Each shape with this many parts, and the items its input needs for that.
fn shapes(parts: usize) -> [(&'static str, Arc<Plan>, usize); 3] {
    [
        ("chain", shape::plan(&shape::chain(parts)), 0),
        ("fan_out", shape::plan(&shape::fan_out()), parts / 5),
        ("diamond", shape::plan(&shape::diamond(parts)), 0),
    ]
}

/// From the start to the end: every event is decided and applied once.
fn forward(c: &mut Criterion) {
    let mut group = c.benchmark_group("decide_and_apply");
    for parts in [10, 100, 1_000] {
        for (shape, plan, items) in shapes(parts) {
            let opened = Drive::open(&plan, items);
            let mut ended = opened.clone();
            ended.decide(ExecutionInput::Start);
            ended.go_on(usize::MAX);
            assert_eq!(ended.execution.outcome(), Some(ExecutionEnding::Completed), "{shape}");
            group.throughput(Throughput::Elements(ended.records.len() as u64 - 1));
            group.bench_function(BenchmarkId::new(shape, parts), |b| {
                let all = |mut drive: Drive| {
                    drive.decide(ExecutionInput::Start);
                    drive.go_on(usize::MAX);
                    drive
                };
                b.iter_batched(|| opened.clone(), all, BatchSize::LargeInput);
            });
        }
    }
    group.finish();
}

/// Undoes everything after it has succeeded.
fn back(c: &mut Criterion) {
    let mut group = c.benchmark_group("undo");
    for parts in [10, 100, 1_000] {
        for (shape, plan, items) in shapes(parts) {
            let mut ended = Drive::open(&plan, items);
            ended.decide(ExecutionInput::Start);
            ended.go_on(usize::MAX);
            let undo = |mut drive: Drive| {
                drive.decide(ExecutionInput::Compensate { steps: None, reason: "measured".into() });
                drive.go_on(usize::MAX);
                drive
            };
            let undone = undo(ended.clone());
            assert_eq!(undone.execution.outcome(), Some(ExecutionEnding::Compensated), "{shape}");
            group.throughput(Throughput::Elements((undone.records.len() - ended.records.len()) as u64));
            group.bench_function(BenchmarkId::new(shape, parts), |b| {
                b.iter_batched(|| ended.clone(), undo, BatchSize::LargeInput);
            });
        }
    }
    group.finish();
}

fn replay(c: &mut Criterion) {
    let mut drive = Drive::open(&shape::plan(&shape::fan_out()), 1_000);
    drive.decide(ExecutionInput::Start);
    drive.go_on(10_000);
    let mut group = c.benchmark_group("replay");
    group.throughput(Throughput::Elements(drive.records.len() as u64));
    group.bench_function("10000_events", |b| {
        b.iter(|| {
            Execution::replay(shape::identity(), black_box(&drive.records))
                .expect("the journal was recorded by this execution")
        });
    });
    group.finish();
}

/// Half way through a thousand steps, where views are largest.
fn look_at(c: &mut Criterion) {
    let mut group = c.benchmark_group("look_at");
    for (shape, plan, items) in shapes(1_000) {
        let mut drive = Drive::open(&plan, items);
        drive.decide(ExecutionInput::Start);
        drive.go_on(1_000);
        let execution = &drive.execution;
        let moment = DecisionContext { now: Timestamp(1_000), room: 0 };
        group.bench_function(BenchmarkId::new("wake_at", shape), |b| b.iter(|| black_box(execution).wake_at()));
        group.bench_function(BenchmarkId::new("view", shape), |b| b.iter(|| black_box(execution).view()));
        group.bench_function(BenchmarkId::new("brief", shape), |b| b.iter(|| black_box(execution).brief()));
        // A wake without anything to do is the most frequent decision.
        group.bench_function(BenchmarkId::new("idle_wake", shape), |b| {
            let mut execution = execution.clone();
            b.iter(|| {
                execution.decide(&Actor::rutter(), ExecutionInput::Wake, moment).expect("a wake is always possible")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, forward, back, replay, look_at);
criterion_main!(benches);
