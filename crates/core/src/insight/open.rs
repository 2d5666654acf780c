//! The state of open executions: their attempts, and what they wait for.

use super::tally::WaitCause;
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId, ToolName};
use crate::journal::attempts::OpenAttempts;
use crate::plan::Driver;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Open executions that are tracked; beyond it the least recently changed are dropped.
pub const EXECUTIONS_MAX: usize = 20_000;
/// Plan names that are cached; beyond it the least recently used are dropped.
pub const PLANS_MAX: usize = 2_000;

/// The state of a projection besides its days.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectionState {
    /// The position of the last entry that was counted.
    pub place: u64,
    pub(super) executions: BTreeMap<ExecutionId, OpenExecution>,
    pub(super) plans: BTreeMap<Hash, PlanNameUse>,
}

/// The name of a plan, and the position of its last use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanNameUse {
    pub name: Arc<str>,
    pub place: u64,
}

/// The plan and driver to which an execution is counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionOrigin {
    /// The plan's name when the execution was opened.
    pub plan: Arc<str>,
    /// The first driver.
    pub driver: Driver,
    pub opened_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenExecution {
    pub origin: ExecutionOrigin,
    /// The position of its last entry.
    pub place: u64,
    /// Whether it is running or being undone; an ended execution is dropped.
    pub is_live: bool,
    /// Whether it has ended before.
    pub again: bool,
    /// The number of parts started so far.
    pub steps: u64,
    pub attempts: OpenAttempts,
    pub waits: Vec<OngoingWait>,
    /// Parts that were started and are not completed, with their first start.
    pub begun: Vec<(PartId, Timestamp)>,
    /// Parts whose compensation waits for approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo_asked: Vec<PartId>,
    /// Parts that are known to be undone, by an attempt that was settled otherwise, while another one is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone_late: Vec<PartId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OngoingWait {
    pub cause: WaitCause,
    /// A part, or a step as a whole; `None` when the execution waits.
    pub part: Option<PartId>,
    pub tool: Option<ToolName>,
    pub since: Timestamp,
}

impl ProjectionState {
    pub(super) fn learn(&mut self, plan: Hash, name: &str, place: u64) {
        self.plans.insert(plan, PlanNameUse { name: name.into(), place });
        forget_oldest(&mut self.plans, PLANS_MAX, |named| named.place);
    }

    pub(super) fn enter(&mut self, execution: &ExecutionId, underway: OpenExecution) {
        self.executions.insert(execution.clone(), underway);
        forget_oldest(&mut self.executions, EXECUTIONS_MAX, |underway| underway.place);
    }

    /// The number of tracked executions.
    pub fn len(&self) -> usize {
        self.executions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.executions.is_empty()
    }
}

/// Drops several of the oldest at once, so that it does not search for the oldest each time.
fn forget_oldest<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, max: usize, place: impl Fn(&V) -> u64) {
    if map.len() <= max {
        return;
    }
    let mut places: Vec<u64> = map.values().map(&place).collect();
    let (_, last_forgotten, _) = places.select_nth_unstable(max / 10);
    let last_forgotten = *last_forgotten;
    map.retain(|_, value| place(value) > last_forgotten);
}

impl OpenExecution {
    pub fn new(origin: ExecutionOrigin, place: u64) -> OpenExecution {
        OpenExecution {
            origin,
            place,
            is_live: false,
            again: false,
            steps: 0,
            attempts: OpenAttempts::default(),
            waits: Vec::new(),
            begun: Vec::new(),
            undo_asked: Vec::new(),
            undone_late: Vec::new(),
        }
    }

    /// Removes and returns the waits that are over.
    pub fn end_waits(&mut self, is_over: impl Fn(&OngoingWait) -> bool) -> Vec<OngoingWait> {
        if !self.waits.iter().any(&is_over) {
            return Vec::new();
        }
        let (over, on) = std::mem::take(&mut self.waits).into_iter().partition(is_over);
        self.waits = on;
        over
    }

    pub fn waits_for(&self, cause: WaitCause, part: Option<&PartId>) -> bool {
        self.waits.iter().any(|wait| wait.cause == cause && wait.part.as_ref() == part)
    }

    /// Stops tracking a part. Returns its first start.
    pub fn leave_off(&mut self, part: &PartId) -> Option<Timestamp> {
        let at = self.begun.iter().position(|(begun, _)| begun == part)?;
        Some(self.begun.swap_remove(at).1)
    }

    /// Stops tracking parts that can no longer complete: those neither in flight nor in doubt.
    pub fn leave_off_the_rest(&mut self) {
        let mut begun = std::mem::take(&mut self.begun);
        begun.retain(|(part, _)| {
            self.attempts.iter().any(|open| open.key.part == *part) || self.waits_for(WaitCause::Doubt, Some(part))
        });
        self.begun = begun;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_plans_are_forgotten() {
        let mut open = ProjectionState::default();
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
