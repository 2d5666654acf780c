//! Draining and undoing: dependents first, each effect at most once.

use super::agenda::{PartPosition, TimerKind};
use super::decide::{DecisionDraft, RecordResult};
use super::part::PartState;
use super::{Execution, ExecutionPhase};
use crate::id::{PartId, StepId};
use crate::journal::event::{CallSide, Event, ExecutionEnding};
use crate::plan::graph::NeedKind;

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
        if self.execution.phase != ExecutionPhase::Undoing || !self.execution.may_call() {
            return Ok(());
        }
        for at in self.due(TimerKind::RetryUndo) {
            self.start(at, CallSide::Undo)?;
        }
        let places = self.execution.plan.max_parallel as usize;
        loop {
            let first = self.execution.undo.as_ref().and_then(|undo| undo.ready.first().map(|(_, part)| *part));
            let Some(at) = first else { return Ok(()) };
            let before = self.records.len();
            if self.execution.agenda.busy_undoing >= places {
                return Ok(());
            }
            self.start(at, CallSide::Undo)?;
            if self.records.len() == before {
                return Ok(());
            }
        }
    }

    pub fn finish_undoing(&mut self) -> RecordResult {
        let Some(undo) = self.execution.undo.as_ref().filter(|undo| undo.open.is_empty()) else {
            return Ok(());
        };
        let given_up =
            self.execution.parts().any(|(_, part)| matches!(part.state, PartState::CompensationFailed { .. }));
        let some_left = !undo.whole && self.execution.parts().any(|(_, part)| part.effect.is_some());
        let outcome = match (given_up, some_left) {
            (true, _) => ExecutionEnding::Failed,
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
                if part.effect.is_some() && !part.is_active() && self.compensation_of(at).is_some() {
                    parts.push((part.rest, at));
                }
            }
        }
        parts.sort_unstable_by(|a, b| b.cmp(a));
        parts.into_iter().map(|(_, at)| self.name(at)).collect()
    }
}
