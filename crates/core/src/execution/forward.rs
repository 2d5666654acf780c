//! Going forward: applies failure policies, starts ready steps, detects the end.

use super::agenda::{PartPosition, TimerKind};
use super::decide::{DecisionDraft, RecordResult};
use super::denial::CallDemand;
use super::input::CallRoom;
use super::part::{PartState, StepPart};
use super::prepare::UnpreparedCall;
use super::step::{SkipCause, StepStage, StepState};
use super::{Execution, ExecutionPhase, IllegalEvent};
use crate::id::{PartId, StepId};
use crate::journal::event::{CallSide, Event, ExecutionEnding, ExecutionLimit, SkipReason};
use crate::journal::payload::EventPayload;
use crate::plan::graph::NeedKind;
use crate::plan::{Driver, PolicyAction};
use crate::time::Millis;
use crate::tool::{FailureCategory, ToolFailure};

impl DecisionDraft<'_> {
    /// Applies the policy of every step that failed for good.
    pub fn handle_failures(&mut self) -> RecordResult {
        while let Some(step) = self.execution.agenda.failing.first().copied() {
            let plan = self.execution.plan().clone();
            let policy = &plan.steps[step].policy;
            // What is known to be done is completed next, and nothing else of the plan is given up for it.
            let is_answered = self.execution.is_answered_after_all(step);
            let needs_a_yes = self.execution.needs_a_yes(step);
            let action = if needs_a_yes || is_answered { PolicyAction::ManualDecision } else { policy.action };
            let cancelled = match action {
                PolicyAction::ManualDecision | PolicyAction::CancelAll | PolicyAction::Compensate => vec![],
                PolicyAction::CancelDependent => {
                    let mut roots = vec![step];
                    roots.extend(&policy.propagate_to);
                    let mut cancelled =
                        self.execution.waiting(plan.graph.dependents_of(&roots, |kind| kind > NeedKind::Sequence));
                    cancelled.extend(self.execution.waiting(policy.propagate_to.clone()));
                    cancelled
                }
                PolicyAction::ContinueOthers => self.execution.waiting(policy.propagate_to.clone()),
            };
            let mut cancelled = self.execution.with_those_behind(cancelled);
            cancelled.sort_unstable();
            cancelled.dedup();
            let event = Event::FailureHandled {
                step: plan.steps[step].id.clone(),
                action,
                reason: policy.reason.clone(),
                cancelled: self.execution.names(&cancelled),
                // Which dependents cannot do without its result is decided when they are evaluated.
                skipped: Vec::new(),
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
            match self.execution.skipped_because(step) {
                Ok(None) => {}
                Ok(Some(because)) => return self.skip(step, because),
                Err(unprepared) => return self.fail_to_prepare(step, unprepared),
            }
            if self.execution.plan.steps[step].for_each.is_some() {
                return self.open_fan_out(step);
            }
            if let Some(lacked) = self.execution.lacked_by_call(step) {
                return self.skip(step, SkipReason::NeedsResultOf(lacked));
            }
        }
        self.start(at, CallSide::Do)
    }

    /// A step whose condition or list needs a result that does not exist is skipped; any other reason is a failure.
    fn fail_to_prepare(&mut self, step: usize, unprepared: UnpreparedCall) -> RecordResult {
        let failure = match unprepared {
            UnpreparedCall::Lacks { step: lacked, .. } => {
                return self.skip(step, SkipReason::NeedsResultOf(lacked));
            }
            UnpreparedCall::Failed(failure) => failure,
        };
        let failure = self.unjudged(PartPosition::new(step, 0), CallSide::Do, failure);
        let part = PartId::whole(self.execution.plan.steps[step].id.clone());
        self.follow(Event::PreparationFailed { part, side: CallSide::Do, failure })
    }

    fn open_fan_out(&mut self, step: usize) -> RecordResult {
        match self.execution.items(step) {
            Err(unprepared) => self.fail_to_prepare(step, unprepared),
            Ok(items) => {
                if let Some(lacked) = self.execution.lacked_by_items(step, &items) {
                    return self.skip(step, SkipReason::NeedsResultOf(lacked));
                }
                let count = items.as_array().map_or(0, |list| u32::try_from(list.len()).unwrap_or(u32::MAX));
                if count == 0 && self.execution.needs_a_yes(step) {
                    return self.hold_gate(step, "its list is empty");
                }
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
        if forward && self.execution.is_known_beside_unsure(at, side) {
            let failure = ToolFailure::new(FailureCategory::Conflict, "another attempt took effect");
            let part = self.execution.name(at);
            return self.follow(Event::RetryAbandoned { part, side, failure });
        }
        if self.execution.has_forgotten_key(at, side, self.now) {
            let part = self.execution.name(at);
            return self.follow(Event::KeyExpired { part, side });
        }
        let is_unguarded = self.execution.is_unguarded(at, self.policy);
        if is_unguarded && !self.has_room(at, side)? {
            return Ok(());
        }
        let part = self.execution.name(at);
        let prepared = match self.execution.prepare(at, side) {
            Ok(prepared) => prepared,
            Err(unprepared) => {
                let failure = self.unjudged(at, side, unprepared.into_failure());
                let failure = self.with_first_failure(at, side, failure);
                return self.follow(Event::PreparationFailed { part, side, failure });
            }
        };
        if !is_unguarded {
            match self.execution.demand(at, side, &prepared, self.policy) {
                CallDemand::Forbidden { rule, reason } => return self.forbid(at, side, &prepared, rule, reason),
                CallDemand::Approval(demand) => return self.ask(at, side, &prepared, demand),
                CallDemand::None => {}
            }
        }
        // Only a call that could be made now reaches a limit: what waits for an approval does not.
        if let Some(limit) = self.execution.spent_limit().filter(|_| forward) {
            return self.reach(limit);
        }
        if !is_unguarded && (!self.has_room(at, side)? || !self.is_within_limit(at, side, &prepared)?) {
            return Ok(());
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

    /// The failure of a call that cannot be evaluated. Where a rule may be about it, only a person says that it is done.
    fn unjudged(&self, at: PartPosition, side: CallSide, failure: ToolFailure) -> ToolFailure {
        let execution = &*self.execution;
        let call = match side {
            // A list that is not known yet has no parts.
            CallSide::Do => Some(&execution.plan.steps[at.step()].call),
            CallSide::Fallback | CallSide::Undo => execution.call_of(at, side),
            CallSide::Probe => None,
        };
        match call {
            Some(call) => execution.unjudged(call, failure, self.policy),
            None => failure,
        }
    }

    /// A fallback that could not be prepared does not hide why it was needed.
    fn with_first_failure(&self, at: PartPosition, side: CallSide, failure: ToolFailure) -> ToolFailure {
        let first = self.execution.part_at(at).and_then(|part| part.fell_back.as_ref());
        match first.filter(|_| side == CallSide::Fallback) {
            Some(first) => {
                let message = format!("{first}; then its fallback could not be called: {}", failure.message);
                ToolFailure { message, ..failure }
            }
            None => failure,
        }
    }

    /// Acquires capacity for a call. A tool without capacity is not tried again in the same decision; a call whose server
    /// is paused waits on record.
    fn has_room(&mut self, at: PartPosition, side: CallSide) -> Result<bool, IllegalEvent> {
        let Some(tool) = self.execution.call_of(at, side).map(|call| call.tool.clone()) else { return Ok(true) };
        if self.full.contains(&tool) {
            return Ok(false);
        }
        let waits_until = self.execution.server_wait_end(at, self.now);
        let room = match waits_until > self.now {
            true => self.room.try_acquire(&tool),
            false if self.room.try_acquire_paused(&tool) => CallRoom::Free,
            false => CallRoom::Full,
        };
        match room {
            CallRoom::Free => return Ok(true),
            CallRoom::Full => self.full.push(tool),
            CallRoom::Paused { until, failure } => {
                let (part, rule) = (self.execution.name(at), String::new());
                let until = until.min(waits_until).max(self.now.plus(Millis(1)));
                self.follow(Event::CallDelayed { part, side, rule, until, failure: Some(failure) })?;
            }
        }
        Ok(false)
    }

    pub(super) fn start(&mut self, at: PartPosition, side: CallSide) -> RecordResult {
        if self.execution.is_drifted(at, side) { Ok(()) } else { self.start_call(at, side) }
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
                // A condition or a list that cannot be evaluated is left to the agent, unless a result is missing.
                match self.execution.skipped_because(step) {
                    Ok(Some(because)) => {
                        self.skip(step, because)?;
                        continue;
                    }
                    Err(unprepared @ UnpreparedCall::Lacks { .. }) => {
                        self.fail_to_prepare(step, unprepared)?;
                        continue;
                    }
                    Ok(None) | Err(UnpreparedCall::Failed(_)) => {}
                }
                if self.execution.plan.steps[step].for_each.is_some() {
                    if !matches!(self.execution.items(step), Err(UnpreparedCall::Failed(_))) {
                        self.open_fan_out(step)?;
                    }
                    continue;
                }
                if let Some(lacked) = self.execution.lacked_by_call(step) {
                    self.skip(step, SkipReason::NeedsResultOf(lacked))?;
                    continue;
                }
            }
            // What the policy forbids is left to the agent, too: if it makes the call, that is a deviation.
            if !self.execution.is_unguarded(at, self.policy)
                && let Ok(prepared) = self.execution.prepare(at, CallSide::Do)
                && let CallDemand::Approval(demand) = self.execution.demand(at, CallSide::Do, &prepared, self.policy)
            {
                self.ask(at, CallSide::Do, &prepared, demand)?;
            }
        }
        Ok(())
    }

    pub fn finish_forward(&mut self) -> RecordResult {
        if self.execution.phase != ExecutionPhase::Forward || self.execution.unsettled > 0 {
            return Ok(());
        }
        // What is finished after its time is not simply completed: the question about the limit comes first.
        if self.execution.over.is_some_and(ExecutionLimit::is_time) {
            return Ok(());
        }
        let steps = || self.execution.steps.iter();
        let completed = steps().any(|state| state.stage == StepStage::Completed && !state.is_undone());
        let is_short = |state: &StepState| {
            matches!(state.stage, StepStage::Failed | StepStage::Cancelled) || (state.is_undone() && !state.retired)
        };
        let short = steps().any(is_short) || self.execution.gave_up;
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
        // Items that were done before their step was left out are no longer wanted.
        let is_left_out = |id: &PartId| {
            let state = self.plan.find(id.step.as_str()).map(|step| &self.steps[step]);
            state.is_some_and(|state| state.skip_cause == Some(SkipCause::Decision))
        };
        let is_wanted = |id: &PartId, part: &StepPart| {
            wanted && matches!(part.state, PartState::Completed { .. }) && !is_left_out(id)
        };
        let second = |part: &StepPart| part.second.iter().any(|second| !(wanted && second.accepted));
        let aside = |part: &StepPart| part.aside.is_some();
        let own = |id: &PartId, part: &StepPart| part.effect.is_some() && !is_wanted(id, part);
        let remains = self.parts().filter(|(id, part)| own(id, part) || second(part) || aside(part));
        remains.map(|(id, _)| id).collect()
    }

    /// Whether a ready part may start. Its dependencies may be running again: an agent or a new plan can go back
    /// to them.
    pub(super) fn is_free(&self, at: PartPosition) -> bool {
        let (step, state) = (&self.plan.steps[at.step()], &self.steps[at.step()]);
        let full = step
            .for_each
            .as_ref()
            .is_some_and(|fan_out| state.slots_taken(fan_out.max_parallel) >= fan_out.max_parallel);
        !full && state.unmet == 0 && !self.is_drifted(at, CallSide::Do)
    }

    /// Whether the tool of this call has changed since the plan was checked.
    pub(super) fn is_drifted(&self, at: PartPosition, side: CallSide) -> bool {
        !self.drifted.is_empty() && self.call_of(at, side).is_some_and(|call| self.drifted.contains_key(&call.tool))
    }
}
