//! How long the layout of a plan with a thousand steps takes.

use crate::engine::median;
use crate::measurement::{BenchTarget, Measurement};
use rutter_web::drawing::layout::{NodeSize, layout};
use std::hint::black_box;
use std::time::Instant;

const STEPS: usize = 1_000;
const SIZE: NodeSize = NodeSize { width: 176.0, height: 56.0 };
/// The target.
const LAYOUT_MS: f64 = 100.0;
const TIMES: usize = 9;

pub(super) fn measure() -> Vec<Measurement> {
    let chain: Vec<(usize, usize)> = (1..STEPS).map(|step| (step - 1, step)).collect();
    // Each depends on the one at its position in the layer before, and on another one there.
    let layers = (0..STEPS - 25).flat_map(|a| [(a, a + 25), (a, (a / 25 + 1) * 25 + (a * 7) % 25)]);
    // Each depends on two of the 120 before it, without a pattern.
    let before = |step: usize, salt: usize| step - 1 - (step * step / salt + 7_919 * step) % step.min(120);
    let loose = (1..STEPS).flat_map(|step| [(before(step, 7), step), (before(step, 13), step)]);
    let plans = [("in a row", chain), ("in layers of 25", layers.collect()), ("here and there", loose.collect())];
    plans.into_iter().map(|(name, edges)| timed(name, &edges)).collect()
}

fn timed(name: &str, edges: &[(usize, usize)]) -> Measurement {
    let took = (0..TIMES).map(|_| {
        let began = Instant::now();
        black_box(layout(STEPS, black_box(edges), SIZE));
        began.elapsed().as_secs_f64() * 1_000.0
    });
    let value = median(took.collect());
    let ratio = Some((value / LAYOUT_MS, "of 100 ms", BenchTarget::AtMost(1.0)));
    Measurement { what: format!("layout: {STEPS} steps {name}"), value, unit: "ms", ratio }
}
