//! What must be remembered until it ends: executions under way, their attempts, and what they wait for.

use super::tally::Cause;
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId, ToolName};
use crate::journal::event::Side;
use crate::plan::Driver;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Executions under way that are remembered; beyond it those of which nothing was heard for longest are forgotten.
pub const EXECUTIONS_MAX: usize = 20_000;
/// Plans whose names are remembered; beyond it those that were not used for longest are forgotten.
pub const PLANS_MAX: usize = 2_000;

/// What a fold remembers beside its days.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The last entry that was counted.
    pub place: u64,
    pub(super) executions: BTreeMap<ExecutionId, Underway>,
    pub(super) plans: BTreeMap<Hash, Named>,
}

/// The name of a plan, and when it was last of use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub name: Arc<str>,
    pub place: u64,
}

/// Whose execution it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// By the name it had when the execution was opened.
    pub plan: Arc<str>,
    /// Who drove it at first.
    pub driver: Driver,
    pub opened_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Underway {
    pub origin: Origin,
    /// The last entry about it.
    pub place: u64,
    /// Goes on, or is being undone; an execution that has ended is not remembered.
    pub is_live: bool,
    /// Has ended before.
    pub again: bool,
    /// Begun so far.
    pub steps: u64,
    pub attempts: Vec<Running>,
    pub waits: Vec<Wait>,
    /// Parts that were begun and are not completed, with their first start.
    pub begun: Vec<(PartId, Timestamp)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Running {
    pub part: PartId,
    pub side: Side,
    pub tool: ToolName,
    pub since: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    pub cause: Cause,
    /// A part, or a step as a whole; `None` when the execution waits.
    pub part: Option<PartId>,
    pub tool: Option<ToolName>,
    pub since: Timestamp,
}

impl Open {
    pub(super) fn learn(&mut self, plan: Hash, name: &str, place: u64) {
        self.plans.insert(plan, Named { name: name.into(), place });
        forget_oldest(&mut self.plans, PLANS_MAX, |named| named.place);
    }

    pub(super) fn enter(&mut self, execution: &ExecutionId, underway: Underway) {
        self.executions.insert(execution.clone(), underway);
        forget_oldest(&mut self.executions, EXECUTIONS_MAX, |underway| underway.place);
    }

    /// Executions that are remembered.
    pub fn len(&self) -> usize {
        self.executions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.executions.is_empty()
    }
}

/// Makes room for a while, so that it is not looked for the oldest each time.
fn forget_oldest<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, max: usize, place: impl Fn(&V) -> u64) {
    if map.len() <= max {
        return;
    }
    let mut places: Vec<u64> = map.values().map(&place).collect();
    let (_, last_forgotten, _) = places.select_nth_unstable(max / 10);
    let last_forgotten = *last_forgotten;
    map.retain(|_, value| place(value) > last_forgotten);
}

impl Underway {
    pub fn new(origin: Origin, place: u64) -> Underway {
        Underway {
            origin,
            place,
            is_live: false,
            again: false,
            steps: 0,
            attempts: Vec::new(),
            waits: Vec::new(),
            begun: Vec::new(),
        }
    }

    pub fn end_attempt(&mut self, part: &PartId, side: Side) -> Option<Running> {
        let at = self.attempts.iter().position(|running| running.side == side && running.part == *part)?;
        Some(self.attempts.swap_remove(at))
    }

    /// Takes out the waits that are over.
    pub fn end_waits(&mut self, is_over: impl Fn(&Wait) -> bool) -> Vec<Wait> {
        if !self.waits.iter().any(&is_over) {
            return Vec::new();
        }
        let (over, on) = std::mem::take(&mut self.waits).into_iter().partition(is_over);
        self.waits = on;
        over
    }

    pub fn waits_for(&self, cause: Cause, part: Option<&PartId>) -> bool {
        self.waits.iter().any(|wait| wait.cause == cause && wait.part.as_ref() == part)
    }

    /// The step is no longer on its way to completion. Says since when it was.
    pub fn leave_off(&mut self, part: &PartId) -> Option<Timestamp> {
        let at = self.begun.iter().position(|(begun, _)| begun == part)?;
        Some(self.begun.swap_remove(at).1)
    }

    /// Only what is under way, or in doubt, may still be completed.
    pub fn leave_off_the_rest(&mut self) {
        let mut begun = std::mem::take(&mut self.begun);
        begun.retain(|(part, _)| {
            self.attempts.iter().any(|running| running.part == *part)
                || self.waits_for(Cause::Doubt, Some(part))
        });
        self.begun = begun;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_plans_are_forgotten() {
        let mut open = Open::default();
        let hash = |n: u64| Hash::of(&[&n.to_be_bytes()]);
        for place in 0..PLANS_MAX as u64 {
            open.learn(hash(place), "plan", place);
        }
        assert_eq!(open.plans.len(), PLANS_MAX);
        open.learn(hash(0), "plan", PLANS_MAX as u64);
        assert_eq!(open.plans.len(), PLANS_MAX);
        open.learn(hash(PLANS_MAX as u64), "plan", PLANS_MAX as u64 + 1);
        assert_eq!(open.plans.len(), PLANS_MAX - PLANS_MAX / 10);
        assert!(open.plans.contains_key(&hash(0)) && !open.plans.contains_key(&hash(1)));
    }
}
