//! Going forward: failures get their policy, ready steps begin, the end is seen.

use super::agenda::{PartAt, Timer};
use super::decide::{Draft, Recorded};
use super::input::ToolCall;
use super::part::{Part, PartState};
use super::step::Stage;
use super::{Execution, Phase};
use crate::id::{PartId, StepId};
use crate::journal::event::{EndedAs, Event, Side, SkipReason};
use crate::journal::payload::Payload;
use crate::mutation::Mutation;
use crate::plan::graph::NeedKind;
use crate::plan::{Driver, PolicyAction};
use crate::tool::Failure;

/// Whether a call could be made.
#[derive(PartialEq, Eq)]
pub(super) enum Begun {
    Yes,
    NoRoom,
}

impl Draft<'_> {
    /// Applies the policy of every step that failed for good.
    pub fn handle_failures(&mut self) -> Recorded {
        while let Some(step) = self.execution.agenda.failing.first().copied() {
            let plan = self.execution.plan().clone();
            let policy = &plan.steps[step].policy;
            let (cancelled, skipped) = match policy.action {
                PolicyAction::ManualDecision | PolicyAction::CancelAll | PolicyAction::Compensate => {
                    (vec![], vec![])
                }
                PolicyAction::CancelDependent => {
                    let mut roots = vec![step];
                    roots.extend(&policy.propagate_to);
                    let mut cancelled = self
                        .execution
                        .waiting(plan.graph.dependents_of(&roots, |kind| kind > NeedKind::Sequence));
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

    pub fn go_forward(&mut self) -> Recorded {
        if self.execution.phase == Phase::Forward && self.execution.driver == Driver::Agent {
            return self.accompany();
        }
        if !self.execution.may_begin() {
            return Ok(());
        }
        for at in self.due(Timer::Retry) {
            let side = self.execution.part_at(at).and_then(|part| part.side());
            if let Some(side) = side.filter(|_| self.execution.may_begin() && self.execution.has_line()) {
                self.start(at, side)?;
            }
        }
        for at in self.execution.agenda.approved.clone() {
            if let Some(PartState::Approved { side, .. }) = self.execution.part_at(at).map(|part| &part.state)
            {
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

    /// The most urgent part that may begin, if there is a place for it.
    fn next_turn(&self) -> Option<PartAt> {
        let execution = &*self.execution;
        if !execution.has_place() && !Mutation::IgnorePlaces.is_active() {
            return None;
        }
        let has_room = |at: &PartAt| !self.full.contains(&execution.plan.steps[at.step()].call.tool);
        if Mutation::StartBeforeNeedsEnd.is_active() {
            let waiting = |at: &PartAt| execution.steps[at.step()].stage == Stage::Waiting && has_room(at);
            return (0..execution.steps.len()).map(|step| PartAt::new(step, 0)).find(waiting);
        }
        let ready = execution.agenda.ready.iter().map(|turn| turn.part);
        ready.filter(|at| self.full.is_empty() || has_room(at)).find(|at| execution.is_free(*at))
    }

    fn begin(&mut self, at: PartAt) -> Result<Begun, super::IllegalEvent> {
        let step = at.step();
        if self.execution.steps[step].stage == Stage::Waiting {
            match self.execution.is_wanted(step) {
                Ok(true) => {}
                Ok(false) => return self.skip(step).map(|()| Begun::Yes),
                Err(failure) => return self.fail_to_prepare(step, failure).map(|()| Begun::Yes),
            }
            if self.execution.plan.steps[step].for_each.is_some() {
                return self.open_fan_out(step).map(|()| Begun::Yes);
            }
        }
        self.start(at, Side::Do)
    }

    fn skip(&mut self, step: usize) -> Recorded {
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

    fn fail_to_prepare(&mut self, step: usize, failure: Failure) -> Recorded {
        let part = PartId::whole(self.execution.plan.steps[step].id.clone());
        self.follow(Event::PreparationFailed { part, side: Side::Do, failure })
    }

    fn open_fan_out(&mut self, step: usize) -> Recorded {
        match self.execution.items(step) {
            Err(failure) => self.fail_to_prepare(step, failure),
            Ok(items) => {
                let count = items.as_array().map_or(0, |list| u32::try_from(list.len()).unwrap_or(u32::MAX));
                let step = self.execution.plan.steps[step].id.clone();
                self.follow(Event::FanOutOpened { step, count, items: Payload::Present(items) })
            }
        }
    }

    /// Makes the call of one side of a part, after asking for approval where the plan wants it.
    fn start_call(&mut self, at: PartAt, side: Side) -> Result<Begun, super::IllegalEvent> {
        let forward = matches!(side, Side::Do | Side::Fallback);
        let needs_approval = forward && self.execution.plan.steps[at.step()].approval.is_some();
        if !needs_approval && !self.has_room(at, side) {
            return Ok(Begun::NoRoom);
        }
        if let Some(limit) = self.execution.spent_limit().filter(|_| forward) {
            return self.reach(limit).map(|()| Begun::Yes);
        }
        let part = self.execution.name(at);
        let prepared = match self.execution.prepare(at, side) {
            Ok(prepared) => prepared,
            Err(failure) => {
                return self.follow(Event::PreparationFailed { part, side, failure }).map(|()| Begun::Yes);
            }
        };
        if needs_approval {
            let given = self.execution.part_at(at).and_then(|part| part.approved);
            let bound = Mutation::ApprovalNotBoundToCall.is_active() && given.is_some();
            if given != Some(prepared.hash) && !bound {
                return self.ask(at, side, &prepared).map(|()| Begun::Yes);
            }
            if !self.has_room(at, side) {
                return Ok(Begun::NoRoom);
            }
        }
        let attempt = self.execution.part_at(at).map_or(0, |part| part.attempts_of(side)) + 1;
        let deadline = self.execution.attempt_deadline(at, side, self.now).unwrap_or(self.now);
        self.follow(Event::AttemptStarted {
            part: part.clone(),
            side,
            attempt,
            by: Driver::Server,
            tool: prepared.tool.clone(),
            definition: prepared.definition,
            call: prepared.hash,
            key: prepared.key,
            parameters: Payload::Present(prepared.parameters.clone()),
            deadline: Some(deadline),
        })?;
        self.decision.calls.push(ToolCall {
            part,
            side,
            attempt,
            tool: prepared.tool,
            definition: prepared.definition,
            parameters: prepared.parameters,
            key: prepared.key,
            deadline,
            ticket: None,
        });
        Ok(Begun::Yes)
    }

    /// Takes room for a call. A tool that had none is not asked for again in the same decision.
    fn has_room(&mut self, at: PartAt, side: Side) -> bool {
        let Some(tool) = self.execution.call_of(at, side).map(|call| call.tool.clone()) else { return true };
        let is_free = !self.full.contains(&tool) && self.room.take(&tool);
        if !is_free && !self.full.contains(&tool) {
            self.full.push(tool);
        }
        is_free
    }

    pub(super) fn start(&mut self, at: PartAt, side: Side) -> Result<Begun, super::IllegalEvent> {
        if self.execution.is_drifted(at, side) { Ok(Begun::Yes) } else { self.start_call(at, side) }
    }

    pub(super) fn ask(&mut self, at: PartAt, side: Side, prepared: &super::prepare::Prepared) -> Recorded {
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
            parameters: Payload::Present(prepared.parameters.clone()),
            expires_at: self.now.plus(rule.expires),
        })
    }

    /// While an agent drives, Rutter works out conditions and lists and asks for approvals, and calls nothing.
    fn accompany(&mut self) -> Recorded {
        if self.execution.paused || self.execution.replanning || !self.execution.agenda.held.is_empty() {
            return Ok(());
        }
        let ready: Vec<PartAt> = self.execution.agenda.ready.iter().map(|turn| turn.part).collect();
        for at in ready {
            let step = at.step();
            if self.execution.steps[step].stage == Stage::Waiting {
                // A condition that cannot be worked out is the agent's to judge.
                if self.execution.is_wanted(step) == Ok(false) {
                    self.skip(step)?;
                    continue;
                }
                if self.execution.plan.steps[step].for_each.is_some() {
                    // A list that cannot be worked out is the agent's to deal with.
                    if self.execution.items(step).is_ok() {
                        self.open_fan_out(step)?;
                    }
                    continue;
                }
            }
            if self.execution.plan.steps[step].approval.is_some()
                && let Ok(prepared) = self.execution.prepare(at, Side::Do)
            {
                self.ask(at, Side::Do, &prepared)?;
            }
        }
        Ok(())
    }

    pub fn finish_forward(&mut self) -> Recorded {
        let doubts_do_not_count = Mutation::EndWithDoubt.is_active()
            && self.execution.unsettled == self.execution.agenda.doubts.len()
            && self.execution.unsettled > 0;
        if self.execution.phase != Phase::Forward || (self.execution.unsettled > 0 && !doubts_do_not_count) {
            return Ok(());
        }
        let stages = || self.execution.steps.iter().map(|step| step.stage);
        let completed = stages().any(|stage| stage == Stage::Completed);
        let short =
            stages().any(|stage| matches!(stage, Stage::Failed | Stage::Cancelled)) || self.execution.gave_up;
        let outcome = match (short, completed) {
            (false, _) => EndedAs::Completed,
            (true, true) => EndedAs::Partial,
            (true, false) => EndedAs::Failed,
        };
        let remains = self.execution.remaining(outcome);
        self.follow(Event::ExecutionEnded { outcome, reason: String::new(), remains })
    }
}

impl Execution {
    /// Steps not begun that cannot do without the result of one of these, directly or through each other.
    pub(super) fn lacking(&self, roots: &[usize]) -> Vec<usize> {
        self.waiting(self.plan.graph.dependents_of(roots, |kind| kind == NeedKind::Data))
    }

    fn waiting(&self, mut steps: Vec<usize>) -> Vec<usize> {
        steps.retain(|step| self.steps[*step].stage == Stage::Waiting);
        steps
    }

    pub(super) fn names(&self, steps: &[usize]) -> Vec<StepId> {
        steps.iter().map(|step| self.plan.steps[*step].id.clone()).collect()
    }

    /// Parts whose effect is, or may be, still there although that is not what the plan wanted.
    pub(super) fn remaining(&self, outcome: EndedAs) -> Vec<PartId> {
        let wanted = matches!(outcome, EndedAs::Completed | EndedAs::Partial);
        let is_wanted = |part: &Part| wanted && matches!(part.state, PartState::Completed { .. });
        let remains = self.parts().filter(|(_, part)| part.effect.is_some() && !is_wanted(part));
        remains.map(|(id, _)| id).collect()
    }

    /// Whether a part whose turn it is may begin. What it needs may be under way again: an agent or a new plan can
    /// go back to it.
    pub(super) fn is_free(&self, at: PartAt) -> bool {
        let (step, state) = (&self.plan.steps[at.step()], &self.steps[at.step()]);
        let full = step.for_each.as_ref().is_some_and(|fan_out| state.active >= fan_out.max_parallel);
        !full && state.unmet == 0 && !self.is_drifted(at, Side::Do)
    }

    /// Whether the tool of this call is not the one the plan was checked with.
    pub(super) fn is_drifted(&self, at: PartAt, side: Side) -> bool {
        !self.drifted.is_empty()
            && self.call_of(at, side).is_some_and(|call| self.drifted.contains_key(&call.tool))
    }
}
