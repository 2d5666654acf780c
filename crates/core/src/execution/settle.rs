//! How steps become ready, settle, and release their dependents.

use super::agenda::{PartPosition, ReadyPart};
use super::apply::{ApplyResult, count};
use super::part::{PartState, StepPart};
use super::step::{SkipCause, StepStage};
use super::{Execution, ExecutionPhase};
use crate::id::{PartId, StepId};
use crate::journal::event::{Event, ExecutionEnding, Question, QuestionAnswer};
use crate::plan::{FailureTolerance, PolicyAction};
use crate::time::Timestamp;
use crate::tool::ToolFailure;
use serde_json::Value;
use std::cmp::Reverse;
use std::sync::Arc;

impl Execution {
    /// Queues a step whose dependencies are settled.
    pub(super) fn offer(&mut self, step: usize) {
        if self.steps[step].stage == StepStage::Waiting && self.steps[step].unmet == 0 {
            self.enqueue(PartPosition::new(step, 0));
        }
    }

    pub(crate) fn enqueue(&mut self, part: PartPosition) {
        if self.agenda.ready.insert(self.turn(part)) {
            self.steps[part.step()].queued += 1;
        }
    }

    pub(super) fn withdraw(&mut self, step: usize, item: usize) {
        let turn = self.turn(PartPosition::new(step, item));
        if self.agenda.ready.remove(&turn) {
            let state = &mut self.steps[step];
            state.queued = state.queued.saturating_sub(1);
        }
    }

    /// A sequential plan runs in plan order; with more slots, the longest path to the end goes first.
    pub(crate) fn turn(&self, part: PartPosition) -> ReadyPart {
        let height = if self.plan.max_parallel == 1 { 0 } else { self.plan.graph.height[part.step()] };
        ReadyPart { priority: Reverse(self.plan.steps[part.step()].priority), height: Reverse(height), part }
    }

    /// Queues the next items of a fan-out, up to its parallelism.
    pub(crate) fn feed(&mut self, step: usize) {
        let Some(fan_out) = &self.plan.0.steps[step].for_each else { return };
        let max_parallel = fan_out.max_parallel;
        loop {
            let state = &mut self.steps[step];
            let Some(next) = state.parts.get(state.next_item as usize) else { return };
            if state.halted || state.slots_taken(max_parallel) + state.queued >= max_parallel {
                return;
            }
            let (item, is_pending) = (state.next_item as usize, next.state == PartState::Pending);
            state.next_item += 1;
            if is_pending {
                self.enqueue(PartPosition::new(step, item));
            }
        }
    }

    /// One item failed: unless the policy lets others continue, no further item starts.
    pub(super) fn halt_unless_others_go_on(&mut self, step: usize) {
        let fans_out = self.plan.steps[step].for_each.is_some();
        let others_go_on = self.plan.steps[step].policy.action == PolicyAction::ContinueOthers;
        if fans_out && !others_go_on && self.failed_for_good(step) {
            self.halt(step);
        }
    }

    /// Whether more parts have failed than the plan tolerates. A failed item that was skipped by decision does not
    /// count.
    pub(super) fn failed_for_good(&self, step: usize) -> bool {
        let parts = &self.steps[step].parts;
        let failed = parts.iter().filter(|part| matches!(part.state, PartState::Failed { .. }) && !part.accepted);
        let tolerate = self.plan.steps[step].for_each.as_ref().map_or(FailureTolerance::NONE, |it| it.tolerate);
        failed.count() > tolerate.allowed(parts.len())
    }

    pub(super) fn halt(&mut self, step: usize) {
        if self.steps[step].halted || self.plan.steps[step].for_each.is_none() {
            return;
        }
        self.steps[step].halted = true;
        for item in 0..self.steps[step].parts.len() {
            if self.steps[step].parts[item].state == PartState::Pending {
                self.withdraw(step, item);
                self.hold_back(PartPosition::new(step, item));
            }
        }
    }

    /// Stops counting an item that will not start; if it may have taken effect before, it has failed.
    pub(super) fn hold_back(&mut self, part: PartPosition) {
        let state = &mut self.steps[part.step()];
        state.unsettled = state.unsettled.saturating_sub(1);
        let held = &mut state.parts[part.item()];
        if held.effect.is_some() {
            held.stop();
            self.rests += 1;
            held.rest = self.rests;
        }
    }

    /// A fan-out failed before its list was known.
    pub(super) fn fail_unopened(&mut self, id: &StepId, failure: &ToolFailure) -> ApplyResult {
        let step = self.expect_step(id)?;
        if self.steps[step].stage != StepStage::Waiting {
            return Err(format!("step {id:?} has begun"));
        }
        self.withdraw(step, 0);
        self.steps[step].failure = Some(failure.clone());
        self.steps[step].stage = StepStage::Failing;
        self.agenda.failing.insert(step);
        Ok(())
    }

    /// Settles the step once its last part is settled.
    pub(super) fn conclude(&mut self, step: usize) {
        let state = &self.steps[step];
        if state.stage != StepStage::Begun || state.unsettled > 0 {
            return;
        }
        let any = |test: fn(&PartState) -> bool| state.parts.iter().any(|part| test(&part.state));
        if self.failed_for_good(step) {
            if self.phase == ExecutionPhase::Forward {
                self.steps[step].stage = StepStage::Failing;
                self.agenda.failing.insert(step);
            } else {
                self.settle(step, StepStage::Failed);
            }
        } else if any(|s| matches!(s, PartState::Cancelled | PartState::Pending)) {
            self.settle(step, StepStage::Cancelled);
        } else {
            self.complete(step);
        }
    }

    pub(super) fn complete(&mut self, step: usize) {
        self.collect_results(step);
        self.settle(step, StepStage::Completed);
    }

    /// The result of a fan-out: the list of its items' results.
    pub(super) fn collect_results(&mut self, step: usize) {
        if self.plan.steps[step].for_each.is_some() {
            let is_done = |part: &StepPart| !matches!(part.state, PartState::Failed { .. });
            let result = |part: &StepPart| {
                let result = part.result.as_ref().filter(|_| is_done(part))?;
                result.value().map(|value| (**value).clone())
            };
            let list = self.steps[step].parts.iter().map(|part| result(part).unwrap_or(Value::Null));
            self.steps[step].results = Some(Arc::new(Value::Array(list.collect())));
        }
    }

    pub(super) fn settle_all(
        &mut self,
        steps: &[StepId],
        stage: StepStage,
        why: &str,
        cause: Option<SkipCause>,
    ) -> ApplyResult {
        for step in steps {
            let step = self.expect_step(step)?;
            if self.steps[step].stage != StepStage::Waiting {
                return Err(format!("step {:?} has begun", self.plan.steps[step].id));
            }
            self.settle(step, stage);
            self.steps[step].skip_reason = Some(why.into());
            self.steps[step].skip_cause = cause;
        }
        Ok(())
    }

    /// Settles the step in this stage: steps that waited for it may start.
    pub(super) fn settle(&mut self, step: usize, stage: StepStage) {
        self.withdraw(step, 0);
        self.agenda.held.remove(&step);
        self.agenda.failing.remove(&step);
        self.steps[step].stage = stage;
        self.steps[step].failed_with = self.steps[step].first_failure().cloned();
        (self.steps[step].skip_reason, self.steps[step].skip_cause) = (None, None);
        self.unsettled = self.unsettled.saturating_sub(1);
        for part in &mut self.steps[step].parts {
            // A part that was to run again, and now will not, may still have an effect from before.
            if part.state == PartState::Pending && part.effect.is_some() {
                part.stop();
                self.rests += 1;
                part.rest = self.rests;
            }
        }
        let plan = self.plan.0.clone();
        for dependent in &plan.graph.dependents[step] {
            let unmet = &mut self.steps[dependent.step].unmet;
            *unmet = unmet.saturating_sub(1);
            self.offer(dependent.step);
        }
    }

    pub(super) fn answer_failure(
        &mut self,
        at: Timestamp,
        id: &StepId,
        answer: QuestionAnswer,
        skipped: &[StepId],
        event: &Event,
    ) -> ApplyResult {
        let step = self.expect_step(id)?;
        if self.steps[step].stage != StepStage::Held {
            return Err(format!("step {id:?} does not wait for a decision"));
        }
        match answer {
            QuestionAnswer::Retry => {
                self.agenda.held.remove(&step);
                self.revive(at, step, event)?;
            }
            QuestionAnswer::Resolve => {
                for item in 0..self.steps[step].parts.len() {
                    let part =
                        PartId { item: self.plan.steps[step].for_each.as_ref().map(|_| count(item)), step: id.clone() };
                    if !matches!(self.steps[step].parts[item].state, PartState::Completed { .. }) {
                        self.change_part(&part, at, event)?;
                    }
                }
                self.complete(step);
                if let (true, Event::QuestionAnswered { result: Some(result), .. }) =
                    (self.steps[step].parts.is_empty(), event)
                {
                    self.steps[step].results = result.value().cloned();
                }
            }
            QuestionAnswer::Skip => {
                self.gave_up = true;
                let cause = Some(SkipCause::NoResult);
                self.settle_all(skipped, StepStage::Skipped, &format!("{id} was skipped"), cause)?;
                self.settle(step, StepStage::Skipped);
                if let Event::QuestionAnswered { reason, .. } = event {
                    self.steps[step].skip_reason = Some(reason.as_str().into());
                    self.steps[step].skip_cause = Some(SkipCause::Decision);
                }
            }
            QuestionAnswer::Continue => {
                let cause = Some(SkipCause::NoResult);
                self.settle_all(skipped, StepStage::Skipped, &format!("{id} failed"), cause)?;
                self.settle(step, StepStage::Failed);
                self.steps[step].left_behind = true;
            }
            QuestionAnswer::Stop => self.stop_forward(at, false, ExecutionEnding::Failed),
            QuestionAnswer::Compensate => self.stop_forward(at, true, ExecutionEnding::Failed),
            QuestionAnswer::Replan => self.replanning = true,
        }
        Ok(())
    }

    /// Whether a part is an item that failed for good, and about which somebody can still decide.
    pub fn is_failed_item(&self, id: &PartId) -> bool {
        self.decidable_item(id).is_some_and(|part| !part.accepted)
    }

    /// Whether a part is an item that was skipped by decision, and can still run after all.
    pub fn is_left_out_item(&self, id: &PartId) -> bool {
        self.decidable_item(id).is_some_and(|part| part.accepted)
    }

    fn decidable_item(&self, id: &PartId) -> Option<&StepPart> {
        let at = self.locate(id).filter(|_| id.item.is_some())?;
        let open = match self.steps[at.step()].stage {
            StepStage::Begun | StepStage::Held => true,
            StepStage::Completed => !self.steps[at.step()].retired,
            StepStage::Failed => self.outcome().is_some() && !self.steps[at.step()].retired,
            _ => false,
        };
        self.part_at(at).filter(|part| open && matches!(part.state, PartState::Failed { .. }))
    }

    /// Decides about one failed item; the others stay as they are.
    pub(super) fn answer_item(
        &mut self,
        at: Timestamp,
        id: &PartId,
        answer: QuestionAnswer,
        event: &Event,
    ) -> ApplyResult {
        let was_left_out = answer == QuestionAnswer::Retry && self.is_left_out_item(id);
        let is_open = was_left_out || self.is_failed_item(id);
        let place = self.locate(id).filter(|_| is_open).ok_or_else(|| format!("{id} has not failed"))?;
        if !Question::ITEM_ANSWERS.contains(&answer) {
            return Err("an item does not accept this answer".into());
        }
        let step = place.step();
        self.gave_up |= answer == QuestionAnswer::Skip;
        self.unsettle(step);
        let was_halted = std::mem::replace(&mut self.steps[step].halted, false);
        if answer == QuestionAnswer::Retry {
            self.agenda.held.remove(&step);
            self.steps[step].stage = StepStage::Begun;
            self.steps[step].unsettled += 1;
        }
        self.change_part(id, at, event)?;
        if was_left_out {
            self.gave_up = self.has_left_out();
        }
        // An attempt of it took effect after all: there is nothing to repeat.
        let is_done = matches!(self.steps[step].parts[place.item()].state, PartState::Completed { .. });
        if answer == QuestionAnswer::Retry && is_done {
            self.steps[step].unsettled -= 1;
        }
        if was_halted && self.failed_for_good(step) {
            self.steps[step].halted = true;
            // Items that wait are not counted while the others are held back.
            let waits = self.steps[step].parts[place.item()].state == PartState::Pending;
            self.steps[step].unsettled -= u32::from(waits);
            return Ok(());
        }
        if self.failed_for_good(step) {
            return Ok(());
        }
        if was_halted {
            self.release_items(step);
        }
        if self.steps[step].stage == StepStage::Held {
            self.agenda.held.remove(&step);
            self.steps[step].stage = StepStage::Begun;
        }
        self.conclude(step);
        Ok(())
    }

    /// A completed step has an item to be decided about again: what has not started waits for it.
    fn unsettle(&mut self, step: usize) {
        if self.steps[step].stage != StepStage::Completed {
            return;
        }
        self.steps[step].stage = StepStage::Begun;
        self.steps[step].results = None;
        self.wait_again(step);
    }

    /// The step is no longer settled: its dependents wait for it again.
    pub(super) fn wait_again(&mut self, step: usize) {
        self.unsettled += 1;
        let plan = self.plan.0.clone();
        for dependent in &plan.graph.dependents[step] {
            self.steps[dependent.step].unmet += 1;
            if self.steps[dependent.step].stage == StepStage::Waiting {
                self.withdraw(dependent.step, 0);
            }
        }
    }

    /// Counts and queues the items that were held back.
    fn release_items(&mut self, step: usize) {
        for item in 0..self.steps[step].parts.len() {
            let place = PartPosition::new(step, item);
            if self.steps[step].parts[item].state != PartState::Pending || self.agenda.ready.contains(&self.turn(place))
            {
                continue;
            }
            self.steps[step].unsettled += 1;
            if count(item) < self.steps[step].next_item {
                self.enqueue(place);
            }
        }
        self.feed(step);
    }

    /// Retries failed parts, and queues items that were held back.
    pub(super) fn revive(&mut self, at: Timestamp, step: usize, event: &Event) -> ApplyResult {
        if self.steps[step].parts.is_empty() {
            self.steps[step].stage = StepStage::Waiting;
            self.steps[step].failure = None;
            self.offer(step);
            return Ok(());
        }
        self.steps[step].stage = StepStage::Begun;
        (self.steps[step].halted, self.steps[step].left_behind) = (false, false);
        let unsettled = self.steps[step].parts.iter().filter(|part| !matches!(part.state, PartState::Completed { .. }));
        self.steps[step].unsettled = count(unsettled.count());
        let completed_before = count(self.steps[step].parts.len()) - self.steps[step].unsettled;
        let mut completed = 0;
        for item in 0..self.steps[step].parts.len() {
            let place = PartPosition::new(step, item);
            match self.steps[step].parts[item].state {
                PartState::Failed { .. } | PartState::Compensated { .. } => {
                    let id = self.name(place);
                    self.change_part(&id, at, event)?;
                }
                PartState::Pending if count(item) < self.steps[step].next_item => {
                    self.enqueue(place);
                }
                _ => {}
            }
            if matches!(self.steps[step].parts[item].state, PartState::Completed { .. }) {
                completed += 1;
            }
        }
        // Parts whose earlier attempt took effect after all have nothing to repeat.
        self.steps[step].unsettled = self.steps[step].unsettled.saturating_sub(completed - completed_before);
        self.feed(step);
        self.conclude(step);
        Ok(())
    }
}
