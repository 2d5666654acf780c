//! How long a plan takes: it is carried out many times on paper, each step taking as long as it once did.

use super::Histogram;
use crate::plan::Plan;
use crate::time::Millis;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Voyages on paper, for a plan of few steps and for one of many.
const VOYAGES_MAX: usize = 400;
const VOYAGES_MIN: usize = 40;
const STEPS_ALTOGETHER: usize = 40_000;
/// Items of a step that are drawn one by one; the others take as long as those on the average.
const ROUNDS_DRAWN_MAX: u32 = 32;

/// Half of the voyages take no longer than the one, nineteen of twenty no longer than the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub median: Millis,
    pub p95: Millis,
}

/// What is left to be done of a step; nothing by default.
#[derive(Clone, Debug, Default)]
pub struct Leg {
    pub took: Histogram,
    /// How long its approval takes, if it needs one.
    pub asked: Option<Histogram>,
    /// How likely its condition is false.
    pub passed_over: f64,
    /// Items that follow each other.
    pub rounds: u32,
    pub is_begun: bool,
    pub elapsed_ms: u64,
    pub is_overdue: bool,
}

/// `None` when nothing is left to be done.
pub fn spans(plan: &Plan, legs: &[Leg]) -> Option<Span> {
    if legs.iter().all(|leg| leg.rounds == 0) {
        return None;
    }
    let voyages = (STEPS_ALTOGETHER / legs.len().max(1)).clamp(VOYAGES_MIN, VOYAGES_MAX);
    let drawers: Vec<Drawer<'_>> = legs.iter().map(Drawer::of).collect();
    let mut dice = Dice(u64::from_be_bytes(plan.hash.0[..8].try_into().expect("a hash has 32 bytes")));
    let voyage = |_| {
        let lengths: Vec<u64> = drawers.iter().map(|drawer| drawer.draw(&mut dice)).collect();
        length(plan, legs, &lengths)
    };
    let mut lengths: Vec<u64> = (0..voyages).map(voyage).collect();
    lengths.sort_unstable();
    let at = |percent: usize| Millis(lengths[(voyages * percent / 100).min(voyages - 1)]);
    Some(Span { median: at(50), p95: at(95) })
}

/// How long one voyage takes: steps begin when what they need has ended and there is room for them.
fn length(plan: &Plan, legs: &[Leg], lengths: &[u64]) -> u64 {
    let graph = &plan.graph;
    let mut unmet: Vec<usize> = graph.needs.iter().map(Vec::len).collect();
    let mut ready: BTreeSet<usize> = (0..legs.len()).filter(|&step| unmet[step] == 0).collect();
    let mut under_way: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut now = 0;
    for step in (0..legs.len()).filter(|&step| legs[step].is_begun) {
        ready.remove(&step);
        // What it needs has ended, or it would not have begun.
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

/// Draws how long a step takes.
struct Drawer<'a> {
    leg: &'a Leg,
    took: Spread,
    asked: Option<Spread>,
}

impl Drawer<'_> {
    fn of(leg: &Leg) -> Drawer<'_> {
        let took = Spread::beyond(&leg.took, leg.elapsed_ms);
        Drawer { leg, took, asked: leg.asked.as_ref().map(|asked| Spread::beyond(asked, 0)) }
    }

    fn draw(&self, dice: &mut Dice) -> u64 {
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

/// Values with how many there are up to each.
struct Spread(Vec<(u64, u64)>);

impl Spread {
    /// Only values above this; nothing when there are none.
    fn beyond(histogram: &Histogram, least: u64) -> Spread {
        let mut seen = 0;
        let values = histogram.spread().filter(|(value, _)| least == 0 || *value > least);
        let up_to = values.map(|(value, count)| {
            seen += count;
            (seen, value)
        });
        Spread(up_to.collect())
    }

    fn draw(&self, dice: &mut Dice) -> u64 {
        let Some((all, _)) = self.0.last() else { return 0 };
        let rank = (dice.throw() * *all as f64) as u64;
        let at = self.0.partition_point(|(seen, _)| *seen <= rank);
        self.0.get(at).map_or(0, |(_, value)| *value)
    }
}

/// The same throws for the same plan, so that a forecast does not change while nothing happens.
struct Dice(u64);

impl Dice {
    /// From 0 to just below 1.
    fn throw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
