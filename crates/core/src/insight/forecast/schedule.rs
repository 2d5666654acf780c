//! The duration of a plan, by simulation: every sample draws the duration of each step from its history.

use super::MergeableHistogram;
use crate::plan::Plan;
use crate::time::Millis;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Samples of a small plan, and of a large one.
const SAMPLES_MAX: usize = 400;
const SAMPLES_MIN: usize = 40;
const STEPS_ALTOGETHER: usize = 40_000;
/// Rounds of items that are drawn one by one; the others take their average.
const ROUNDS_DRAWN_MAX: u32 = 32;

/// The percentiles of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationForecast {
    pub median: Millis,
    pub p95: Millis,
}

/// The rest of a step; nothing by default.
#[derive(Clone, Debug, Default)]
pub struct RemainingStep {
    pub took: MergeableHistogram,
    /// How long its approval takes, if it needs one.
    pub asked: Option<MergeableHistogram>,
    /// The probability that its condition is false.
    pub passed_over: f64,
    /// Items that run one after the other.
    pub rounds: u32,
    pub is_begun: bool,
    pub elapsed_ms: u64,
    pub is_overdue: bool,
}

/// The duration of the remaining steps; `None` when there are none.
pub fn spans(plan: &Plan, legs: &[RemainingStep]) -> Option<DurationForecast> {
    if legs.iter().all(|leg| leg.rounds == 0) {
        return None;
    }
    let samples = (STEPS_ALTOGETHER / legs.len().max(1)).clamp(SAMPLES_MIN, SAMPLES_MAX);
    let drawers: Vec<DurationSampler<'_>> = legs.iter().map(DurationSampler::of).collect();
    let mut dice = ForecastRandom(u64::from_be_bytes(plan.hash.0[..8].try_into().expect("a hash has 32 bytes")));
    let run = |_| {
        let lengths: Vec<u64> = drawers.iter().map(|drawer| drawer.draw(&mut dice)).collect();
        length(plan, legs, &lengths)
    };
    let mut lengths: Vec<u64> = (0..samples).map(run).collect();
    lengths.sort_unstable();
    let at = |percent: usize| Millis(lengths[(samples * percent / 100).min(samples - 1)]);
    Some(DurationForecast { median: at(50), p95: at(95) })
}

/// The length of one sample: a step starts when its dependencies have ended and a slot is free.
fn length(plan: &Plan, legs: &[RemainingStep], lengths: &[u64]) -> u64 {
    let graph = &plan.graph;
    let mut unmet: Vec<usize> = graph.needs.iter().map(Vec::len).collect();
    let mut ready: BTreeSet<usize> = (0..legs.len()).filter(|&step| unmet[step] == 0).collect();
    let mut under_way: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut now = 0;
    for step in (0..legs.len()).filter(|&step| legs[step].is_begun) {
        ready.remove(&step);
        // Its dependencies have ended, or it would not have started.
        unmet[step] = usize::MAX;
        under_way.push(Reverse((lengths[step], step)));
    }
    loop {
        while under_way.len() < plan.max_parallel as usize
            && let Some(step) = ready.pop_first()
        {
            under_way.push(Reverse((lengths[step].saturating_add(now), step)));
        }
        let Some(Reverse((ended, step))) = under_way.pop() else { return now };
        now = ended;
        for dependent in &graph.dependents[step] {
            let left = &mut unmet[dependent.step];
            if *left == usize::MAX {
                continue;
            }
            *left -= 1;
            if *left == 0 {
                ready.insert(dependent.step);
            }
        }
    }
}

/// Draws the duration of a step.
struct DurationSampler<'a> {
    leg: &'a RemainingStep,
    took: CumulativeCounts,
    asked: Option<CumulativeCounts>,
}

impl DurationSampler<'_> {
    fn of(leg: &RemainingStep) -> DurationSampler<'_> {
        let took = CumulativeCounts::beyond(&leg.took, leg.elapsed_ms);
        DurationSampler { leg, took, asked: leg.asked.as_ref().map(|asked| CumulativeCounts::beyond(asked, 0)) }
    }

    fn draw(&self, dice: &mut ForecastRandom) -> u64 {
        let leg = self.leg;
        if leg.rounds == 0 || dice.throw() < leg.passed_over {
            return 0;
        }
        let drawn = leg.rounds.min(ROUNDS_DRAWN_MAX);
        let took = (0..drawn).map(|_| self.took.draw(dice)).fold(0, u64::saturating_add);
        let took = (took / u64::from(drawn)).saturating_mul(u64::from(leg.rounds));
        let asked = self.asked.as_ref().map_or(0, |asked| asked.draw(dice));
        took.saturating_sub(leg.elapsed_ms).saturating_add(asked)
    }
}

/// Values with their cumulative counts.
struct CumulativeCounts(Vec<(u64, u64)>);

impl CumulativeCounts {
    /// Only values above `least`; empty when there are none.
    fn beyond(histogram: &MergeableHistogram, least: u64) -> CumulativeCounts {
        let mut seen = 0;
        let values = histogram.spread().filter(|(value, _)| least == 0 || *value > least);
        let up_to = values.map(|(value, count)| {
            seen += count;
            (seen, value)
        });
        CumulativeCounts(up_to.collect())
    }

    fn draw(&self, dice: &mut ForecastRandom) -> u64 {
        let Some((all, _)) = self.0.last() else { return 0 };
        let rank = (dice.throw() * *all as f64) as u64;
        let at = self.0.partition_point(|(seen, _)| *seen <= rank);
        self.0.get(at).map_or(0, |(_, value)| *value)
    }
}

/// Deterministic per plan, so that a forecast changes only with the history.
struct ForecastRandom(u64);

impl ForecastRandom {
    /// From 0 to just below 1.
    fn throw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
