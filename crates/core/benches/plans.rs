//! The cost of checking, previewing and comparing plans.

#[path = "shape/plan.rs"]
#[allow(dead_code, reason = "each bench needs its own part of the shapes")]
mod shape;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rutter_core::plan::diff::diff;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::preview::preview;
use std::hint::black_box;

fn check(c: &mut Criterion) {
    let mut group = c.benchmark_group("check");
    for steps in [10, 100, 1_000] {
        for (shape, document) in [("chain", shape::chain(steps)), ("diamond", shape::diamond(steps))] {
            let text = document.to_string();
            group.throughput(Throughput::Elements(steps as u64));
            // JSON is YAML, so one text is enough for both parsers.
            for (name, format) in [("json", DocumentFormat::Json), ("yaml", DocumentFormat::Yaml)] {
                let id = BenchmarkId::new(format!("{shape}/{name}"), steps);
                group.bench_with_input(id, &text, |b, text| {
                    b.iter(|| {
                        let checked = shape::check(text.as_bytes(), format);
                        assert!(checked.plan.is_some());
                        checked
                    });
                });
            }
        }
    }
    group.finish();
}

fn look_at(c: &mut Criterion) {
    let mut group = c.benchmark_group("look_at");
    group.sample_size(20);
    for steps in [10, 100, 1_000] {
        let (chain, diamond) = (shape::plan(&shape::chain(steps)), shape::plan(&shape::diamond(steps)));
        group.bench_function(BenchmarkId::new("preview/chain", steps), |b| b.iter(|| preview(black_box(&chain))));
        group.bench_function(BenchmarkId::new("preview/diamond", steps), |b| b.iter(|| preview(black_box(&diamond))));
        group.bench_function(BenchmarkId::new("diff", steps), |b| b.iter(|| diff(&chain, black_box(&diamond))));
    }
    group.finish();
}

criterion_group!(benches, check, look_at);
criterion_main!(benches);
