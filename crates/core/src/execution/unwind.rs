//! Draining and undoing: dependents first, each effect at most once.

use super::agenda::{PartPosition, TimerKind};
use super::decide::{DecisionDraft, RecordResult};
use super::denial::CallDemand;
use super::part::{PartState, StepPart};
use super::undo::UndoProgress;
use super::{Execution, ExecutionPhase};
use crate::id::{PartId, StepId};
use crate::journal::event::{CallSide, Event, ExecutionEnding};
use crate::limits;
use crate::plan::Driver;
use crate::plan::graph::NeedKind;
use crate::time::{Millis, Timestamp};

impl DecisionDraft<'_> {
    /// Starts undoing, or ends, once no attempt is open and nothing is in doubt.
    pub fn finish_draining(&mut self, undo: bool, outcome: ExecutionEnding) -> RecordResult {
        let execution = &*self.execution;
        if !execution.agenda.running.is_empty() || !execution.agenda.doubts.is_empty() {
            return Ok(());
        }
        let parts = if undo { execution.undo_scope(None) } else { Vec::new() };
        if !parts.is_empty() {
            let reason = execution.stop_reason.clone();
            return self.follow(Event::CompensationStarted { parts, whole: true, reason });
        }
        self.end(outcome)
    }

    pub fn go_back(&mut self) -> RecordResult {
        if self.execution.phase == ExecutionPhase::Undoing && self.execution.driver == Driver::Agent {
            return self.accompany_undoing();
        }
        if self.execution.phase != ExecutionPhase::Undoing || !self.execution.may_call() {
            return Ok(());
        }
        for at in self.due(TimerKind::RetryUndo) {
            self.start(at, CallSide::Undo)?;
        }
        for at in self.execution.agenda.approved.clone() {
            self.start(at, CallSide::Undo)?;
        }
        loop {
            let first = self.execution.undo.as_ref().and_then(|undo| undo.next(self.now));
            let Some(at) = first else { return Ok(()) };
            let before = self.records.len();
            if !self.execution.has_undo_place() {
                return Ok(());
            }
            self.start(at, CallSide::Undo)?;
            if self.records.len() == before {
                return Ok(());
            }
        }
    }

    /// While an agent drives, Rutter requests the approvals of what undoes the next steps, and calls nothing.
    fn accompany_undoing(&mut self) -> RecordResult {
        if self.execution.paused {
            return Ok(());
        }
        let again = self.execution.agenda.timer(TimerKind::RetryUndo).iter().filter(|(when, _)| *when <= self.now);
        let mut asked: Vec<PartPosition> = again.map(|(_, at)| *at).collect();
        asked.extend(self.execution.undo.iter().flat_map(|undo| undo.due(self.now)));
        for at in asked {
            if !self.execution.is_unguarded(at, self.policy)
                && let Ok(prepared) = self.execution.prepare(at, CallSide::Undo)
                && let CallDemand::Approval(demand) = self.execution.demand(at, CallSide::Undo, &prepared, self.policy)
            {
                self.ask(at, CallSide::Undo, &prepared, demand)?;
            }
        }
        Ok(())
    }

    pub fn finish_undoing(&mut self) -> RecordResult {
        let Some(undo) = self.execution.undo.as_ref().filter(|undo| undo.open.is_empty()) else {
            return Ok(());
        };
        let given_up =
            self.execution.parts().any(|(_, part)| matches!(part.state, PartState::CompensationFailed { .. }));
        let some_left = !undo.whole && self.execution.parts().any(|(_, part)| part.effect.is_some());
        let restores = undo.restores;
        let outcome = match (given_up, some_left) {
            (true, _) => ExecutionEnding::Failed,
            (false, _) if let Some(outcome) = restores => outcome,
            (false, true) => ExecutionEnding::Partial,
            (false, false) => ExecutionEnding::Compensated,
        };
        self.end(outcome)
    }

    pub fn end_killed(&mut self) -> RecordResult {
        self.end(ExecutionEnding::Cancelled)
    }

    fn end(&mut self, outcome: ExecutionEnding) -> RecordResult {
        let (reason, remains) = (self.execution.stop_reason.clone(), self.execution.remaining(outcome));
        self.follow(Event::ExecutionEnded { outcome, reason, remains })
    }
}

impl Execution {
    /// When the undoing of a part may start, if a call of it may still be under way: undone earlier, it could take effect
    /// afterwards. `None` where its effect is known.
    pub(super) fn undoable_from(&self, at: PartPosition, part: &StepPart) -> Option<Timestamp> {
        let effect = part.effect.filter(|effect| !effect.certain)?;
        let settle = self.plan.steps[at.step()].probe.as_ref().and_then(|probe| probe.settle);
        let timeout = || self.call_of(at, effect.side).map(|call| call.timeout.min(limits::UNDO_WAIT_MAX));
        let killed_after = match (self.grace_of(at, effect.side), self.call_of(at, effect.side)) {
            (Millis(0), _) | (_, None) => Millis(0),
            (grace, Some(call)) => Millis(call.timeout.0.saturating_add(grace.0)),
        };
        Some(part.sent_at?.plus(settle.or_else(timeout)?.max(killed_after)))
    }

    /// Parts that are undone as soon as their calls are old enough.
    pub(super) fn aging(&self) -> impl Iterator<Item = (Timestamp, PartPosition)> {
        let may_begin = self.phase == ExecutionPhase::Undoing && self.may_call() && self.has_undo_place();
        let undo = self.undo.iter().filter(move |_| may_begin);
        undo.flat_map(UndoProgress::aging).filter(|(_, at)| !self.is_drifted(*at, CallSide::Undo))
    }

    /// The parts that undoing would undo, in order: everything, or some steps with their dependents.
    ///
    /// This list is the preview of a rollback; [`Event::CompensationStarted`] has the same.
    pub fn undo_scope(&self, steps: Option<&[StepId]>) -> Vec<PartId> {
        let chosen = steps.map(|steps| {
            let mut chosen: Vec<usize> = steps.iter().filter_map(|step| self.plan.find(step.as_str())).collect();
            chosen.extend(self.plan.graph.dependents_of(&chosen, |kind| kind > NeedKind::Sequence));
            chosen
        });
        let is_chosen = |step: usize| chosen.as_ref().is_none_or(|chosen| chosen.contains(&step));
        let mut parts: Vec<(u64, PartPosition)> = Vec::new();
        for (step, state) in self.steps.iter().enumerate().filter(|(step, _)| is_chosen(*step)) {
            for (item, part) in state.parts.iter().enumerate() {
                let at = PartPosition::new(step, item);
                if !part.is_active() && self.has_undoable_effect(step, part) {
                    parts.push((part.rest, at));
                }
            }
        }
        parts.sort_unstable_by(|a, b| b.cmp(a));
        parts.into_iter().map(|(_, at)| self.name(at)).collect()
    }
}
