//! The items of fan-outs: which are done, which have failed for good, and whether that completes their step.

use super::JournalMonitor;
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{CallSide, LateAnswer, LateEffect};
use rutter_core::journal::payload::EventPayload;
use serde_json::Value;
use std::collections::BTreeSet;

impl JournalMonitor {
    pub(super) fn complete_if_done(&mut self, step: &StepId, result: Option<&Value>) {
        if self.items.get(step).is_some_and(|items| !items.is_empty()) || self.has_failed(step) {
            return;
        }
        self.ended.insert(step.clone());
        self.completed.insert(step.clone());
        self.completed_steps += 1;
        if let Some(flag) = result.and_then(|result| result["flag"].as_bool()) {
            self.flags.insert(step.clone(), flag);
        }
    }

    /// Whether more items failed for good than the plan tolerates.
    pub(super) fn has_failed(&self, step: &StepId) -> bool {
        let failed = self.failed_items.get(step).map_or(0, BTreeSet::len);
        let items = self.item_counts.get(step).copied().unwrap_or(0) as usize;
        let fan_out = self.plan.find(step.as_str()).and_then(|at| self.plan.steps[at].for_each.as_ref());
        failed > fan_out.map_or(0, |fan_out| fan_out.tolerate.allowed(items))
    }

    pub(super) fn gave_up(&mut self, part: &PartId) {
        self.failed.insert(part.clone());
        self.waiting.remove(part);
        self.item_failed(part);
    }

    /// An attempt took effect that was settled otherwise. A part that would be called again is done with it.
    pub(super) fn came_late(
        &mut self,
        part: &PartId,
        side: CallSide,
        effect: LateEffect,
        answer: &LateAnswer<EventPayload>,
    ) {
        if self.to_undo.contains(part) {
            *self.undo_asked.entry(part.clone()).or_default() += 1;
        }
        if effect != LateEffect::Only {
            return;
        }
        self.at_risk.insert(part.clone(), side);
        self.effects.has_effect(part, side);
        let LateAnswer::Done(result) = answer else { return };
        let is_over = self.failed.contains(part) || self.ended.contains(&part.step);
        if self.stopped && !is_over {
            // Nothing goes on; only if the step is tried again it is done.
            self.failed.insert(part.clone());
        } else if !is_over {
            self.waiting.remove(part);
            self.done(part, side, result.value().map(|value| &**value));
        }
    }

    /// A person takes back what was said by hand: it happened after all, or it did not.
    pub(super) fn corrected(
        &mut self,
        part: &PartId,
        side: CallSide,
        happened: bool,
        result: Option<&EventPayload>,
        effect: Option<LateEffect>,
    ) {
        if let (true, Some(effect)) = (happened, effect) {
            let result = result.cloned().unwrap_or_else(|| EventPayload::Present(Default::default()));
            self.came_late(part, side, effect, &LateAnswer::Done(result));
        }
        if happened {
            return;
        }
        self.at_risk.remove(part);
        self.completed.remove(&part.step);
        if !self.stopped && self.ended.remove(&part.step) {
            self.held.insert(part.step.clone());
        }
        self.gave_up(part);
        if let Some(item) = part.item {
            self.failed_items.entry(part.step.clone()).or_default().insert(item);
        }
    }

    /// A step is tried again, with its parts that failed.
    pub(super) fn retry_failed(&mut self, step: &StepId) {
        let failed: Vec<PartId> = self.failed.iter().filter(|part| part.step == *step).cloned().collect();
        failed.iter().for_each(|part| self.retry_part(part));
    }

    /// A part that failed is tried again: a late answer may complete it from here on. If an attempt of it took effect
    /// after all, it is done.
    pub(super) fn retry_part(&mut self, part: &PartId) {
        if self.failed.remove(part) && !self.effects.sides(part).is_empty() {
            let side = self.at_risk.get(part).copied().unwrap_or(CallSide::Do);
            self.done(part, side, None);
        }
    }

    /// An item that was undone is open again when it is tried again.
    pub(super) fn item_started(&mut self, part: &PartId) {
        let Some(item) = part.item else { return };
        self.started_items.insert(part.clone());
        if let Some(failed) = self.failed_items.get_mut(&part.step) {
            failed.remove(&item);
        }
        self.items.entry(part.step.clone()).or_default().insert(item);
    }

    pub(super) fn item_failed(&mut self, part: &PartId) {
        let Some(item) = part.item else { return };
        if self.items.get_mut(&part.step).is_some_and(|items| items.remove(&item)) {
            self.failed_items.entry(part.step.clone()).or_default().insert(item);
            self.complete_if_done(&part.step, None);
        }
    }

    /// An item that may have taken effect, and was stopped before it was tried again, has failed. The plan may tolerate
    /// that: then its step had completed at the end.
    pub(super) fn stop_items(&mut self) {
        let is_open = |part: &&PartId| {
            let items = self.items.get(&part.step).zip(part.item);
            items.is_some_and(|(open, item)| open.contains(&item)) && !self.in_doubt.contains(part)
        };
        let stopped: Vec<PartId> = self.at_risk.keys().filter(is_open).cloned().collect();
        stopped.iter().for_each(|part| self.gave_up(part));
    }

    pub(super) fn retry_items(&mut self, step: &StepId) {
        if let Some(failed) = self.failed_items.remove(step) {
            self.items.entry(step.clone()).or_default().extend(failed);
        }
    }
}
