//! How steps become ready, come to rest, and let others go on.

use super::agenda::{PartAt, Turn};
use super::apply::{Applied, count};
use super::part::{Part, PartState};
use super::step::Stage;
use super::{Execution, Phase};
use crate::id::{PartId, StepId};
use crate::journal::event::{Answer, EndedAs, Event};
use crate::plan::PolicyAction;
use crate::time::Timestamp;
use serde_json::Value;
use std::cmp::Reverse;
use std::sync::Arc;

impl Execution {
    /// A step whose needs are met may begin.
    pub(super) fn offer(&mut self, step: usize) {
        if self.steps[step].stage == Stage::Waiting && self.steps[step].unmet == 0 {
            self.enqueue(PartAt::new(step, 0));
        }
    }

    pub(crate) fn enqueue(&mut self, part: PartAt) {
        if self.agenda.ready.insert(self.turn(part)) {
            self.steps[part.step()].queued += 1;
        }
    }

    pub(super) fn withdraw(&mut self, step: usize, item: usize) {
        let turn = self.turn(PartAt::new(step, item));
        if self.agenda.ready.remove(&turn) {
            let state = &mut self.steps[step];
            state.queued = state.queued.saturating_sub(1);
        }
    }

    /// In a sequential plan the order is the plan's; with more places the longest way to the end goes first.
    pub(crate) fn turn(&self, part: PartAt) -> Turn {
        let height = if self.plan.max_parallel == 1 { 0 } else { self.plan.graph.height[part.step()] };
        Turn { priority: Reverse(self.plan.steps[part.step()].priority), height: Reverse(height), part }
    }

    /// Makes the next items of a fan-out ready, as many as may be at work at once.
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
                self.enqueue(PartAt::new(step, item));
            }
        }
    }

    /// One item failed: unless the policy lets others go on, no further item begins.
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
                self.hold_back(PartAt::new(step, item));
            }
        }
    }

    /// An item that will not begin is not waited for; one that may have taken effect before has failed.
    pub(super) fn hold_back(&mut self, part: PartAt) {
        let state = &mut self.steps[part.step()];
        state.unsettled = state.unsettled.saturating_sub(1);
        let held = &mut state.parts[part.item()];
        if held.effect.is_some() {
            held.stop();
            self.rests += 1;
            held.rest = self.rests;
        }
    }

    /// When the last part has come to rest, so has the step.
    pub(super) fn conclude(&mut self, step: usize) {
        let state = &self.steps[step];
        if state.stage != Stage::Begun || state.unsettled > 0 {
            return;
        }
        let any = |test: fn(&PartState) -> bool| state.parts.iter().any(|part| test(&part.state));
        if any(|s| matches!(s, PartState::Failed { .. })) {
            if self.phase == Phase::Forward {
                self.steps[step].stage = Stage::Failing;
                self.agenda.failing.insert(step);
            } else {
                self.settle(step, Stage::Failed);
            }
        } else if any(|s| matches!(s, PartState::Cancelled | PartState::Pending)) {
            self.settle(step, Stage::Cancelled);
        } else {
            self.complete(step);
        }
    }

    pub(super) fn complete(&mut self, step: usize) {
        if self.plan.steps[step].for_each.is_some() {
            let result = |part: &Part| part.result.as_ref().and_then(|r| r.value().map(|v| (**v).clone()));
            let list = self.steps[step].parts.iter().map(|part| result(part).unwrap_or(Value::Null));
            self.steps[step].results = Some(Arc::new(Value::Array(list.collect())));
        }
        self.settle(step, Stage::Completed);
    }

    pub(super) fn settle_all(&mut self, steps: &[StepId], stage: Stage) -> Applied {
        for step in steps {
            let step = self.expect_step(step)?;
            if self.steps[step].stage != Stage::Waiting {
                return Err(format!("step {:?} has begun", self.plan.steps[step].id));
            }
            self.settle(step, stage);
        }
        Ok(())
    }

    /// The step is at rest, in whatever way: those that only waited for it may go on.
    pub(super) fn settle(&mut self, step: usize, stage: Stage) {
        self.withdraw(step, 0);
        self.agenda.held.remove(&step);
        self.agenda.failing.remove(&step);
        self.steps[step].stage = stage;
        self.unsettled = self.unsettled.saturating_sub(1);
        for part in &mut self.steps[step].parts {
            // What was to be done anew, and now will not be, may still have an effect from before.
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
        answer: Answer,
        skipped: &[StepId],
        event: &Event,
    ) -> Applied {
        let step = self.expect_step(id)?;
        if self.steps[step].stage != Stage::Held {
            return Err(format!("step {id:?} does not wait for a decision"));
        }
        match answer {
            Answer::Retry => {
                self.agenda.held.remove(&step);
                self.revive(at, step, event)?;
            }
            Answer::Resolve => {
                for item in 0..self.steps[step].parts.len() {
                    let part = PartId {
                        item: self.plan.steps[step].for_each.as_ref().map(|_| count(item)),
                        step: id.clone(),
                    };
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
            Answer::Skip => {
                self.gave_up = true;
                self.settle_all(skipped, Stage::Skipped)?;
                self.settle(step, Stage::Skipped);
            }
            Answer::Continue => {
                self.settle_all(skipped, Stage::Skipped)?;
                self.settle(step, Stage::Failed);
            }
            Answer::Stop => self.stop_forward(at, false, EndedAs::Failed),
            Answer::Compensate => self.stop_forward(at, true, EndedAs::Failed),
            Answer::Replan => self.replanning = true,
        }
        Ok(())
    }

    /// Failed parts are tried again, and items that were held back get their turn.
    pub(super) fn revive(&mut self, at: Timestamp, step: usize, event: &Event) -> Applied {
        if self.steps[step].parts.is_empty() {
            self.steps[step].stage = Stage::Waiting;
            self.steps[step].failure = None;
            self.offer(step);
            return Ok(());
        }
        self.steps[step].stage = Stage::Begun;
        self.steps[step].halted = false;
        let unsettled =
            self.steps[step].parts.iter().filter(|part| !matches!(part.state, PartState::Completed { .. }));
        self.steps[step].unsettled = count(unsettled.count());
        for item in 0..self.steps[step].parts.len() {
            let place = PartAt::new(step, item);
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
