//! Slots: a doubt that only waits keeps no independent step waiting.

use super::{JournalMonitor, MonitorResult};
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::CallSide;
use std::collections::BTreeSet;

impl JournalMonitor {
    /// Whether something is in doubt that might keep a slot.
    pub fn has_doubts(&self) -> bool {
        let goes_on =
            !self.stopped && !self.paused && !self.over && !self.replanning && !self.proposed && self.held.is_empty();
        goes_on && self.plan.max_parallel > 1 && self.in_doubt.iter().any(|part| !self.running.contains_key(part))
    }

    /// After everything that could start has started: a step that could start too has no slot because others are
    /// called, wait to be called again or are being probed, not because they are in doubt.
    pub fn check_places(&self) -> MonitorResult {
        if !self.has_doubts() {
            return Ok(());
        }
        let undoing = |part: &PartId| self.running.get(part) == Some(&CallSide::Undo);
        let busy: BTreeSet<&PartId> = self.running.keys().filter(|part| !undoing(part)).chain(&self.waiting).collect();
        if busy.len() >= self.plan.max_parallel as usize {
            return Ok(());
        }
        match self.plan.steps.iter().enumerate().find(|(at, step)| self.could_begin(*at, &step.id)) {
            Some((_, step)) => Err(format!("{:?} waits for a slot, and only doubts keep one: {busy:?}", step.id)),
            None => Ok(()),
        }
    }

    /// Whether a step without a condition or a list has not begun, and nothing that it needs is missing.
    fn could_begin(&self, at: usize, id: &StepId) -> bool {
        let step = &self.plan.steps[at];
        let is_plain = step.when.is_none() && step.else_of.is_none() && step.for_each.is_none();
        let is_of = |part: &PartId| part.step == *id;
        let mut begun = self.running.keys().chain(&self.waiting).chain(&self.in_doubt).chain(&self.failed);
        let has_begun = begun.any(is_of) || self.at_risk.keys().any(is_of) || self.ended.contains(id);
        let needs = &self.plan.graph.needs[at];
        is_plain
            && !has_begun
            && !self.drifted.contains(&step.call.tool)
            && needs.iter().all(|need| self.ended.contains(&self.plan.steps[need.step].id))
    }
}
