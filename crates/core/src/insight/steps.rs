//! The tallies of each plan's steps: how often they failed for good, how long they took.

use super::histogram::MergeableHistogram;
use super::tally::is_zero;
use crate::id::StepId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Steps counted on one day, of all plans; any more are ignored.
pub const STEPS_MAX: usize = 5_000;

/// The tally of one step over all executions. Of a step that fans out, every item counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepTally {
    /// Failed for good; cancelled runs are left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Skipped because its condition was false.
    #[serde(skip_serializing_if = "is_zero")]
    pub passed_over: u64,
    /// How often it fanned out, and the total number of items.
    #[serde(skip_serializing_if = "is_zero")]
    pub fanned_out: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub items: u64,
    /// From the first attempt to the completion; one value per completion.
    #[serde(skip_serializing_if = "MergeableHistogram::is_empty")]
    pub took_ms: MergeableHistogram,
    /// The wait for approval.
    #[serde(skip_serializing_if = "MergeableHistogram::is_empty")]
    pub asked_ms: MergeableHistogram,
}

impl StepTally {
    pub fn add(&mut self, other: &StepTally) {
        self.failed += other.failed;
        self.passed_over += other.passed_over;
        self.fanned_out += other.fanned_out;
        self.items += other.items;
        self.took_ms.add(&other.took_ms);
        self.asked_ms.add(&other.asked_ms);
    }
}

/// Steps by plan name and step id, at most [`STEPS_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepTallies(BTreeMap<Arc<str>, BTreeMap<StepId, StepTally>>);

impl StepTallies {
    /// Changes the tally of a step; a new step is ignored when there are too many.
    pub fn count(&mut self, plan: &Arc<str>, step: &StepId, change: impl FnOnce(&mut StepTally)) {
        if let Some(tally) = self.0.get_mut(plan).and_then(|steps| steps.get_mut(step)) {
            return change(tally);
        }
        if self.len() < STEPS_MAX {
            change(self.0.entry(plan.clone()).or_default().entry(step.clone()).or_default());
        }
    }

    pub fn add(&mut self, other: &StepTallies) {
        for (plan, steps) in &other.0 {
            for (step, theirs) in steps {
                self.count(plan, step, |tally| tally.add(theirs));
            }
        }
    }

    pub fn of(&self, plan: &str) -> impl Iterator<Item = (&StepId, &StepTally)> {
        self.0.get(plan).into_iter().flatten()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_beyond_the_bound_are_not_counted() {
        let plans: [Arc<str>; 2] = ["first".into(), "second".into()];
        for (steps, counted) in [(STEPS_MAX - 1, STEPS_MAX - 1), (STEPS_MAX, STEPS_MAX), (STEPS_MAX + 1, STEPS_MAX)] {
            let mut tallies = StepTallies::default();
            for step in 0..steps {
                tallies.count(&plans[step % 2], &StepId::new(&format!("s{step}")), |tally| tally.failed += 1);
            }
            tallies.count(&plans[0], &StepId::new("s0"), |tally| tally.failed += 1);
            assert_eq!(tallies.len(), counted);
            let (_, first) = tallies.of("first").next().unwrap();
            assert_eq!(first.failed, 2, "a step that is counted already still is");
        }
    }
}
