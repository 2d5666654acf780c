//! Time limits: the deadline and time budget of an execution, and what they leave to its attempts.

use super::agenda::PartPosition;
use super::decide::{DecisionDraft, RecordResult};
use super::part::PartState;
use super::{Execution, ExecutionPhase};
use crate::journal::event::{CallSide, Event, ExecutionLimit};
use crate::limits;
use crate::time::{Millis, Timestamp};
use crate::tool::{FailureCategory, ToolFailure};

impl ExecutionLimit {
    /// Whether it is reached by the passing of time, and not by another call.
    pub fn is_time(self) -> bool {
        match self {
            ExecutionLimit::Deadline | ExecutionLimit::Time => true,
            ExecutionLimit::Calls | ExecutionLimit::Cost | ExecutionLimit::Entries => false,
        }
    }
}

impl Execution {
    /// The times at which the execution's deadline and time budget are reached. A limit of calls or cost that waits for
    /// its answer does not suspend them; a time limit that waits for its answer does, and so does a hold.
    pub(super) fn time_limits(&self) -> impl Iterator<Item = (ExecutionLimit, Timestamp)> {
        let waits = self.held.is_some() || self.over.is_some_and(ExecutionLimit::is_time);
        let counts = self.phase == ExecutionPhase::Forward && !waits;
        let limits = [ExecutionLimit::Deadline, ExecutionLimit::Time].into_iter().filter(move |_| counts);
        limits.filter_map(|limit| Some((limit, self.time_limit_end(limit)?)))
    }

    /// The time limit that is reached by now, if any.
    pub(super) fn time_limit_reached(&self, now: Timestamp) -> Option<ExecutionLimit> {
        self.time_limits().find(|(_, end)| *end <= now).map(|(limit, _)| limit)
    }

    /// When a time limit ends, with the time it was given since.
    fn time_limit_end(&self, limit: ExecutionLimit) -> Option<Timestamp> {
        let added = self.time_added.get(&limit).copied().unwrap_or_default();
        let from = self.reopened_at.or(self.started_at)?;
        Some(from.plus(self.time_limit_span(limit)?).plus(added))
    }

    fn time_limit_span(&self, limit: ExecutionLimit) -> Option<Millis> {
        match limit {
            ExecutionLimit::Deadline => Some(self.plan.deadline),
            ExecutionLimit::Time => self.plan.budget.time,
            ExecutionLimit::Calls | ExecutionLimit::Cost | ExecutionLimit::Entries => None,
        }
    }

    /// Raises a limit by its own amount. A time limit gets that much time from now on, however long its question waited.
    pub(super) fn raise_limit(&mut self, limit: ExecutionLimit, at: Timestamp) {
        *self.raised.entry(limit).or_default() += 1;
        if let (Some(end), Some(span)) = (self.time_limit_end(limit), self.time_limit_span(limit)) {
            self.add_time(limit, Millis(at.since(end).0.saturating_add(span.0)));
        }
    }

    /// Moves the end of a time limit.
    pub(super) fn add_time(&mut self, limit: ExecutionLimit, span: Millis) {
        let added = self.time_added.entry(limit).or_default();
        added.0 = added.0.saturating_add(span.0);
    }

    /// The deadline of an attempt that starts now. A forward attempt has no more time than its step and its execution
    /// have left; compensations and probes are not cut.
    pub(super) fn attempt_deadline(&self, at: PartPosition, side: CallSide, now: Timestamp) -> Option<Timestamp> {
        let own = now.plus(self.call_of(at, side)?.timeout);
        match side {
            CallSide::Do | CallSide::Fallback => Some(self.time_left(at, now).map_or(own, |end| end.min(own))),
            CallSide::Undo | CallSide::Probe => Some(own),
        }
    }

    /// The deadline of an attempt that an agent starts now. The default timeout is for the calls of Rutter: an agent has
    /// until its lease ends, and the timeout of the step only if the plan says one.
    pub(super) fn agent_deadline(&self, at: PartPosition, side: CallSide, now: Timestamp) -> Option<Timestamp> {
        let call = self.call_of(at, side).filter(|call| call.has_own_timeout);
        call.map(|call| now.plus(call.timeout)).into_iter().chain(self.time_left(at, now)).min()
    }

    /// When the time of a part's step or of the execution ends, whichever is first.
    fn time_left(&self, at: PartPosition, now: Timestamp) -> Option<Timestamp> {
        let total = self.plan.steps[at.step()].timeout_total;
        let begun = self.part_at(at).and_then(|part| part.ends_by(total));
        let step = begun.or_else(|| total.map(|span| now.plus(span)));
        self.time_limits().map(|(_, end)| end).chain(step).min()
    }

    /// Until when a call that is to be made now may wait for its server: it begins, or has begun, to wait.
    pub(super) fn server_wait_end(&self, at: PartPosition, now: Timestamp) -> Timestamp {
        let waits = self.part_at(at).and_then(|part| part.state.awaited_pause());
        waits.map_or(now, |(pause, _)| pause.since).plus(limits::SERVER_WAIT_MAX)
    }

    /// Whether the deadline of all attempts of a part together has passed by then.
    pub(super) fn is_out_of_time(&self, at: PartPosition, when: Timestamp) -> bool {
        let total = self.plan.steps[at.step()].timeout_total;
        self.part_at(at).and_then(|part| part.ends_by(total)).is_some_and(|end| end <= when)
    }
}

impl DecisionDraft<'_> {
    pub(super) fn reach_limits(&mut self) -> RecordResult {
        match self.execution.time_limit_reached(self.now) {
            Some(limit) => self.reach(limit),
            None => Ok(()),
        }
    }

    /// Applies the plan's policy to a limit. A time limit also ends the forward attempts in flight.
    pub fn reach(&mut self, limit: ExecutionLimit) -> RecordResult {
        if limit.is_time() {
            self.cut_attempts()?;
        }
        let action = self.execution.plan.on_failure;
        self.follow(Event::LimitReached { limit, action })
    }

    /// Closes forward attempts, also those whose own deadline is later: a new plan may have moved the limit.
    fn cut_attempts(&mut self) -> RecordResult {
        for at in self.execution.agenda.running.clone() {
            let state = self.execution.part_at(at).map(|part| &part.state);
            if matches!(state, Some(PartState::Running(attempt)) if attempt.side != CallSide::Undo) {
                self.close_running(at, self.no_answer())?;
            }
        }
        Ok(())
    }

    /// Why an attempt without an answer is closed now.
    pub(super) fn no_answer(&self) -> ToolFailure {
        let message = match self.execution.time_limit_reached(self.now) {
            Some(ExecutionLimit::Deadline) => "no answer before the deadline of the execution",
            Some(_) => "no answer within the time budget of the execution",
            None => "no answer in time",
        };
        ToolFailure::new(FailureCategory::Timeout, message)
    }
}

/// Why an execution stops at a limit.
pub(super) fn limit_reached(limit: ExecutionLimit) -> String {
    format!("the limit of {} was reached", crate::text::spelled(&limit))
}
