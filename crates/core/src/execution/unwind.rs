//! Coming to a stop, and undoing: dependents first, each effect at most once.

use super::agenda::{PartAt, Timer};
use super::decide::{Draft, Recorded};
use super::part::PartState;
use super::{Execution, Phase};
use crate::id::{PartId, StepId};
use crate::journal::event::{EndedAs, Event, Side};
use crate::mutation::Mutation;
use crate::plan::graph::NeedKind;

impl Draft<'_> {
    /// Once nothing is under way or in doubt: the undoing, or the end.
    pub fn finish_draining(&mut self, undo: bool, outcome: EndedAs) -> Recorded {
        let execution = &*self.execution;
        let running = !execution.agenda.running.is_empty() && !Mutation::CancelShownTooEarly.is_active();
        let in_doubt = !execution.agenda.doubts.is_empty() && !Mutation::EndWithDoubt.is_active();
        if running || in_doubt {
            return Ok(());
        }
        let parts = if undo { execution.undo_scope(None) } else { Vec::new() };
        if !parts.is_empty() {
            let reason = execution.stop_reason.clone();
            return self.follow(Event::CompensationStarted { parts, whole: true, reason });
        }
        self.end(outcome)
    }

    pub fn go_back(&mut self) -> Recorded {
        if self.execution.phase != Phase::Undoing || !self.execution.may_call() {
            return Ok(());
        }
        for at in self.due(Timer::RetryUndo) {
            self.start(at, Side::Undo)?;
        }
        let places = self.execution.plan.max_parallel as usize;
        loop {
            let first =
                self.execution.undo.as_ref().and_then(|undo| undo.ready.first().map(|(_, part)| *part));
            let Some(at) = first else { return Ok(()) };
            let before = self.decision.records.len();
            if self.execution.agenda.busy_undoing >= places {
                return Ok(());
            }
            self.start(at, Side::Undo)?;
            if self.decision.records.len() == before {
                return Ok(());
            }
        }
    }

    pub fn finish_undoing(&mut self) -> Recorded {
        let Some(undo) = self.execution.undo.as_ref().filter(|undo| undo.open.is_empty()) else {
            return Ok(());
        };
        let given_up = self
            .execution
            .parts()
            .any(|(_, part)| matches!(part.state, PartState::CompensationFailed { .. }));
        let some_left = !undo.whole && self.execution.parts().any(|(_, part)| part.effect.is_some());
        let outcome = match (given_up, some_left) {
            (true, _) => EndedAs::Failed,
            (false, true) => EndedAs::Partial,
            (false, false) => EndedAs::Compensated,
        };
        self.end(outcome)
    }

    pub fn end_killed(&mut self) -> Recorded {
        self.end(EndedAs::Cancelled)
    }

    fn end(&mut self, outcome: EndedAs) -> Recorded {
        let (reason, remains) = (self.execution.stop_reason.clone(), self.execution.remaining(outcome));
        self.follow(Event::ExecutionEnded { outcome, reason, remains })
    }
}

impl Execution {
    /// What an undoing would undo, in its order: everything, or some steps with all that depends on them.
    ///
    /// A preview of the rollback is this list; [`Event::CompensationStarted`] holds the same.
    pub fn undo_scope(&self, steps: Option<&[StepId]>) -> Vec<PartId> {
        let chosen = steps.map(|steps| {
            let mut chosen: Vec<usize> =
                steps.iter().filter_map(|step| self.plan.find(step.as_str())).collect();
            chosen.extend(self.plan.graph.dependents_of(&chosen, |kind| kind > NeedKind::Sequence));
            chosen
        });
        let is_chosen = |step: usize| chosen.as_ref().is_none_or(|chosen| chosen.contains(&step));
        let mut parts: Vec<(u64, PartAt)> = Vec::new();
        for (step, state) in self.steps.iter().enumerate().filter(|(step, _)| is_chosen(*step)) {
            for (item, part) in state.parts.iter().enumerate() {
                let at = PartAt::new(step, item);
                if part.effect.is_some() && !part.is_active() && self.compensation_of(at).is_some() {
                    parts.push((part.rest, at));
                }
            }
        }
        parts.sort_unstable_by(|a, b| b.cmp(a));
        parts.into_iter().map(|(_, at)| self.name(at)).collect()
    }
}
