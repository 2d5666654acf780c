//! Going forward: applies failure policies, starts ready steps, detects the end.

use super::agenda::{PartPosition, TimerKind};
use super::decide::{DecisionDraft, RecordResult};
use super::part::{PartState, StepPart};
use super::step::StepStage;
use super::{Execution, ExecutionPhase};
use crate::id::{PartId, StepId};
use crate::journal::event::{CallSide, Event, ExecutionEnding, SkipReason};
use crate::journal::payload::EventPayload;
use crate::plan::graph::NeedKind;
use crate::plan::{Driver, PolicyAction};
use crate::tool::ToolFailure;

impl DecisionDraft<'_> {
    /// Applies the policy of every step that failed for good.
    pub fn handle_failures(&mut self) -> RecordResult {
        while let Some(step) = self.execution.agenda.failing.first().copied() {
            let plan = self.execution.plan().clone();
            let policy = &plan.steps[step].policy;
            let (cancelled, skipped) = match policy.action {
                PolicyAction::ManualDecision | PolicyAction::CancelAll | PolicyAction::Compensate => (vec![], vec![]),
                PolicyAction::CancelDependent => {
                    let mut roots = vec![step];
                    roots.extend(&policy.propagate_to);
                    let mut cancelled =
                        self.execution.waiting(plan.graph.dependents_of(&roots, |kind| kind > NeedKind::Sequence));
                    cancelled.extend(self.execution.waiting(policy.propagate_to.clone()));
                    (cancelled, vec![])
                }
                PolicyAction::ContinueOthers => {
                    let cancelled = self.execution.waiting(policy.propagate_to.clone());
                    let mut roots = cancelled.clone();
                    roots.push(step);
                    let skipped = self.execution.lacking(&roots);
                    (cancelled, skipped)
                }
            };
            let (mut cancelled, mut skipped) = (cancelled, skipped);
            cancelled.sort_unstable();
            cancelled.dedup();
            skipped.retain(|step| !cancelled.contains(step));
            let event = Event::FailureHandled {
                step: plan.steps[step].id.clone(),
                action: policy.action,
                reason: policy.reason.clone(),
                cancelled: self.execution.names(&cancelled),
                skipped: self.execution.names(&skipped),
            };
            self.follow(event)?;
        }
        Ok(())
    }

    pub fn go_forward(&mut self) -> RecordResult {
        if self.execution.phase == ExecutionPhase::Forward && self.execution.driver == Driver::Agent {
            return self.accompany();
        }
        if !self.execution.may_begin() {
            return Ok(());
        }
        for at in self.due(TimerKind::Retry) {
            let side = self.execution.part_at(at).and_then(|part| part.side());
            if let Some(side) = side.filter(|_| self.execution.may_begin() && self.execution.has_line()) {
                self.start(at, side)?;
            }
        }
        for at in self.execution.agenda.approved.clone() {
            if let Some(PartState::Approved { side, .. }) = self.execution.part_at(at).map(|part| &part.state) {
                let side = *side;
                let in_turn = self.execution.steps[at.step()].unmet == 0 && self.execution.has_line();
                if self.execution.may_begin() && in_turn {
                    self.start(at, side)?;
                }
            }
        }
        while let Some(at) = self.next_turn() {
            if !self.execution.may_begin() {
                break;
            }
            self.begin(at)?;
        }
        Ok(())
    }

    /// The most urgent part that may start, if there is a slot for it.
    fn next_turn(&self) -> Option<PartPosition> {
        let execution = &*self.execution;
        if !execution.has_place() {
            return None;
        }
        let has_room = |at: &PartPosition| !self.full.contains(&execution.plan.steps[at.step()].call.tool);
        let ready = execution.agenda.ready.iter().map(|turn| turn.part);
        ready.filter(|at| self.full.is_empty() || has_room(at)).find(|at| execution.is_free(*at))
    }

    fn begin(&mut self, at: PartPosition) -> RecordResult {
        let step = at.step();
        if self.execution.steps[step].stage == StepStage::Waiting {
            match self.execution.is_wanted(step) {
                Ok(true) => {}
                Ok(false) => return self.skip(step),
                Err(failure) => return self.fail_to_prepare(step, failure),
            }
            if self.execution.plan.steps[step].for_each.is_some() {
                return self.open_fan_out(step);
            }
        }
        self.start(at, CallSide::Do)
    }

    fn skip(&mut self, step: usize) -> RecordResult {
        let because = SkipReason::Condition;
        let steps = self.execution.names(&[step]);
        let lacking = self.execution.lacking(&[step]);
        let id = self.execution.plan.steps[step].id.clone();
        self.follow(Event::StepsSkipped { steps, because })?;
        if lacking.is_empty() {
            return Ok(());
        }
        let steps = self.execution.names(&lacking);
        self.follow(Event::StepsSkipped { steps, because: SkipReason::NeedsResultOf(id) })
    }

    fn fail_to_prepare(&mut self, step: usize, failure: ToolFailure) -> RecordResult {
        let part = PartId::whole(self.execution.plan.steps[step].id.clone());
        self.follow(Event::PreparationFailed { part, side: CallSide::Do, failure })
    }

    fn open_fan_out(&mut self, step: usize) -> RecordResult {
        match self.execution.items(step) {
            Err(failure) => self.fail_to_prepare(step, failure),
            Ok(items) => {
                let count = items.as_array().map_or(0, |list| u32::try_from(list.len()).unwrap_or(u32::MAX));
                let step = self.execution.plan.steps[step].id.clone();
                self.follow(Event::FanOutOpened { step, count, items: EventPayload::Present(items) })
            }
        }
    }

    /// Starts the call of one side of a part, or requests approval where the plan requires it.
    fn start_call(&mut self, at: PartPosition, side: CallSide) -> RecordResult {
        let forward = matches!(side, CallSide::Do | CallSide::Fallback);
        if forward && self.execution.is_out_of_time(at, self.now) {
            return self.run_out_of_time(at);
        }
        let needs_approval = forward && self.execution.plan.steps[at.step()].approval.is_some();
        if !needs_approval && !self.has_room(at, side) {
            return Ok(());
        }
        if let Some(limit) = self.execution.spent_limit().filter(|_| forward) {
            return self.reach(limit);
        }
        let part = self.execution.name(at);
        let prepared = match self.execution.prepare(at, side) {
            Ok(prepared) => prepared,
            Err(failure) => {
                return self.follow(Event::PreparationFailed { part, side, failure });
            }
        };
        if needs_approval {
            let given = self.execution.part_at(at).and_then(|part| part.approved);
            if given != Some(prepared.hash) {
                return self.ask(at, side, &prepared);
            }
            if !self.has_room(at, side) {
                return Ok(());
            }
        }
        let attempt = self.execution.part_at(at).map_or(0, |part| part.attempts_of(side)) + 1;
        let deadline = self.execution.attempt_deadline(at, side, self.now).unwrap_or(self.now);
        self.follow(Event::AttemptStarted {
            part,
            side,
            attempt,
            by: Driver::Server,
            tool: prepared.tool,
            definition: prepared.definition,
            call: prepared.hash,
            key: prepared.key,
            parameters: EventPayload::Present(prepared.parameters),
            deadline: Some(deadline),
        })
    }

    /// Acquires capacity for a call. A tool without capacity is not tried again in the same decision.
    fn has_room(&mut self, at: PartPosition, side: CallSide) -> bool {
        let Some(tool) = self.execution.call_of(at, side).map(|call| call.tool.clone()) else { return true };
        let is_free = !self.full.contains(&tool) && self.room.try_acquire(&tool);
        if !is_free && !self.full.contains(&tool) {
            self.full.push(tool);
        }
        is_free
    }

    pub(super) fn start(&mut self, at: PartPosition, side: CallSide) -> RecordResult {
        if self.execution.is_drifted(at, side) { Ok(()) } else { self.start_call(at, side) }
    }

    pub(super) fn ask(
        &mut self,
        at: PartPosition,
        side: CallSide,
        prepared: &super::prepare::PreparedCall,
    ) -> RecordResult {
        let part = self.execution.name(at);
        if let Some(PartState::Approved { call, .. } | PartState::Asking { call, .. }) =
            self.execution.part_at(at).map(|part| &part.state)
        {
            let (call, reason) = (*call, "the call is no longer the one that was approved".to_owned());
            return self.follow(Event::ApprovalVoided { part, call, reason });
        }
        let Some(rule) = self.execution.plan.steps[at.step()].approval else { return Ok(()) };
        self.follow(Event::ApprovalRequested {
            part,
            side,
            call: prepared.hash,
            tool: prepared.tool.clone(),
            parameters: EventPayload::Present(prepared.parameters.clone()),
            expires_at: self.now.plus(rule.expires),
        })
    }

    /// While an agent drives, Rutter evaluates conditions and lists and requests approvals, but calls nothing.
    fn accompany(&mut self) -> RecordResult {
        if self.execution.paused || self.execution.replanning || !self.execution.agenda.held.is_empty() {
            return Ok(());
        }
        let ready: Vec<PartPosition> = self.execution.agenda.ready.iter().map(|turn| turn.part).collect();
        for at in ready {
            let step = at.step();
            if self.execution.steps[step].stage == StepStage::Waiting {
                // A condition that cannot be evaluated is left to the agent.
                if self.execution.is_wanted(step) == Ok(false) {
                    self.skip(step)?;
                    continue;
                }
                if self.execution.plan.steps[step].for_each.is_some() {
                    // A list that cannot be evaluated is left to the agent.
                    if self.execution.items(step).is_ok() {
                        self.open_fan_out(step)?;
                    }
                    continue;
                }
            }
            if self.execution.plan.steps[step].approval.is_some()
                && let Ok(prepared) = self.execution.prepare(at, CallSide::Do)
            {
                self.ask(at, CallSide::Do, &prepared)?;
            }
        }
        Ok(())
    }

    pub fn finish_forward(&mut self) -> RecordResult {
        if self.execution.phase != ExecutionPhase::Forward || self.execution.unsettled > 0 {
            return Ok(());
        }
        let stages = || self.execution.steps.iter().map(|step| step.stage);
        let completed = stages().any(|stage| stage == StepStage::Completed);
        let short =
            stages().any(|stage| matches!(stage, StepStage::Failed | StepStage::Cancelled)) || self.execution.gave_up;
        let outcome = match (short, completed) {
            (false, _) => ExecutionEnding::Completed,
            (true, true) => ExecutionEnding::Partial,
            (true, false) => ExecutionEnding::Failed,
        };
        let remains = self.execution.remaining(outcome);
        self.follow(Event::ExecutionEnded { outcome, reason: String::new(), remains })
    }
}

impl Execution {
    /// Steps not started that need the result of one of these, directly or indirectly.
    pub(super) fn lacking(&self, roots: &[usize]) -> Vec<usize> {
        self.waiting(self.plan.graph.dependents_of(roots, |kind| kind == NeedKind::Data))
    }

    fn waiting(&self, mut steps: Vec<usize>) -> Vec<usize> {
        steps.retain(|step| self.steps[*step].stage == StepStage::Waiting);
        steps
    }

    pub(super) fn names(&self, steps: &[usize]) -> Vec<StepId> {
        steps.iter().map(|step| self.plan.steps[*step].id.clone()).collect()
    }

    /// Parts whose effect remains, or may remain, although the plan did not reach its goal.
    pub(super) fn remaining(&self, outcome: ExecutionEnding) -> Vec<PartId> {
        let wanted = matches!(outcome, ExecutionEnding::Completed | ExecutionEnding::Partial);
        let is_wanted = |part: &StepPart| wanted && matches!(part.state, PartState::Completed { .. });
        let remains = self.parts().filter(|(_, part)| part.effect.is_some() && !is_wanted(part));
        remains.map(|(id, _)| id).collect()
    }

    /// Whether a ready part may start. Its dependencies may be running again: an agent or a new plan can go back
    /// to them.
    pub(super) fn is_free(&self, at: PartPosition) -> bool {
        let (step, state) = (&self.plan.steps[at.step()], &self.steps[at.step()]);
        let full = step.for_each.as_ref().is_some_and(|fan_out| state.active >= fan_out.max_parallel);
        !full && state.unmet == 0 && !self.is_drifted(at, CallSide::Do)
    }

    /// Whether the tool of this call has changed since the plan was checked.
    pub(super) fn is_drifted(&self, at: PartPosition, side: CallSide) -> bool {
        !self.drifted.is_empty() && self.call_of(at, side).is_some_and(|call| self.drifted.contains_key(&call.tool))
    }
}
