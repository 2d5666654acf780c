//! How steps become ready, settle, and release their dependents.

use super::agenda::{PartPosition, ReadyPart};
use super::apply::{ApplyResult, count};
use super::part::{PartState, StepPart};
use super::step::StepStage;
use super::{Execution, ExecutionPhase};
use crate::id::{PartId, StepId};
use crate::journal::event::{Event, ExecutionEnding, QuestionAnswer};
use crate::plan::PolicyAction;
use crate::time::Timestamp;
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
            if state.halted || state.active + state.queued >= max_parallel {
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
        if fans_out && self.plan.steps[step].policy.action != PolicyAction::ContinueOthers {
            self.halt(step);
        }
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

    /// Settles the step once its last part is settled.
    pub(super) fn conclude(&mut self, step: usize) {
        let state = &self.steps[step];
        if state.stage != StepStage::Begun || state.unsettled > 0 {
            return;
        }
        let any = |test: fn(&PartState) -> bool| state.parts.iter().any(|part| test(&part.state));
        if any(|s| matches!(s, PartState::Failed { .. })) {
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
        if self.plan.steps[step].for_each.is_some() {
            let result = |part: &StepPart| part.result.as_ref().and_then(|r| r.value().map(|v| (**v).clone()));
            let list = self.steps[step].parts.iter().map(|part| result(part).unwrap_or(Value::Null));
            self.steps[step].results = Some(Arc::new(Value::Array(list.collect())));
        }
        self.settle(step, StepStage::Completed);
    }

    pub(super) fn settle_all(&mut self, steps: &[StepId], stage: StepStage, why: &str) -> ApplyResult {
        for step in steps {
            let step = self.expect_step(step)?;
            if self.steps[step].stage != StepStage::Waiting {
                return Err(format!("step {:?} has begun", self.plan.steps[step].id));
            }
            self.settle(step, stage);
            self.steps[step].skip_reason = Some(why.into());
        }
        Ok(())
    }

    /// Settles the step in this stage: steps that waited for it may start.
    pub(super) fn settle(&mut self, step: usize, stage: StepStage) {
        self.withdraw(step, 0);
        self.agenda.held.remove(&step);
        self.agenda.failing.remove(&step);
        self.steps[step].stage = stage;
        self.steps[step].skip_reason = None;
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
                self.settle_all(skipped, StepStage::Skipped, &format!("{id} was skipped"))?;
                self.settle(step, StepStage::Skipped);
                if let Event::QuestionAnswered { reason, .. } = event {
                    self.steps[step].skip_reason = Some(reason.as_str().into());
                }
            }
            QuestionAnswer::Continue => {
                self.settle_all(skipped, StepStage::Skipped, &format!("{id} failed"))?;
                self.settle(step, StepStage::Failed);
            }
            QuestionAnswer::Stop => self.stop_forward(at, false, ExecutionEnding::Failed),
            QuestionAnswer::Compensate => self.stop_forward(at, true, ExecutionEnding::Failed),
            QuestionAnswer::Replan => self.replanning = true,
        }
        Ok(())
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
        self.steps[step].halted = false;
        let unsettled = self.steps[step].parts.iter().filter(|part| !matches!(part.state, PartState::Completed { .. }));
        self.steps[step].unsettled = count(unsettled.count());
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
        }
        self.feed(step);
        Ok(())
    }
}
