//! A hold: time stands still until a person has looked. Nothing expires, fails, is retried or undone meanwhile.
//!
//! After a long gap nobody can tell which of the timers that came due still mean anything. The hold lists them. Ending it
//! leaves the span out of every timer, or of all but those that are named, or lets happen what came due.

use super::agenda::{PartPosition, TimerKind};
use super::decide::{DecisionDraft, RecordResult};
use super::input::{ExecutionInput, Refusal};
use super::part::{PartState, ProbeProgress, StepPart};
use super::{Execution, ExecutionPhase};
use crate::actor::Actor;
use crate::journal::event::{DueKind, Event, ExecutionEnding, ExecutionLimit, OverdueTimer};
use crate::limits::{self, NAME_CHARS_MAX};
use crate::text::cut;
use crate::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A hold that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionHold {
    pub reason: String,
    /// From then on time does not count.
    pub since: Timestamp,
    /// When the hold was recorded.
    pub at: Timestamp,
    /// What came due between the two, in order.
    pub due: Vec<OverdueTimer>,
    /// How much more came due than is listed.
    pub more: u32,
}

/// A span in which no worker ran, or in which the clock was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerGap {
    pub reason: String,
    /// The last sign of a worker.
    pub since: Timestamp,
    /// When the worker came back. What came due later is none of the gap's.
    pub until: Timestamp,
}

/// The timers that came due and happen now, although time stood still.
pub(super) enum ExpiringTimers {
    None,
    All,
    Named(Vec<String>),
}

impl Execution {
    pub fn hold(&self) -> Option<&ExecutionHold> {
        self.held.as_ref()
    }

    /// Whether something came due in the gap, or would go on by itself as if there had been none.
    pub fn is_caught_by(&self, gap: &WorkerGap) -> bool {
        let is_from_before = self.last_at <= gap.until.max(gap.since);
        // After a clock went back nobody can say which timers came due: every one of them counts.
        let went_back = gap.until <= gap.since;
        let came_due = self.wake_at().is_some_and(|when| went_back || when <= gap.until.max(self.last_at));
        let left_open = self.agenda.running.iter().any(|at| self.runs_here(*at));
        self.held.is_none() && is_from_before && (came_due || left_open || self.wants_room())
    }

    /// Every timer that is due by then, in order.
    fn due_timers(&self, by: Timestamp) -> Vec<OverdueTimer> {
        let of_part = |timer: TimerKind| {
            let due = self.timers_of(timer).take_while(move |(when, _)| *when <= by);
            due.map(move |(at, part)| OverdueTimer { what: due_kind(timer), part: Some(self.name(part)), at })
        };
        let parts = TimerKind::ALL.into_iter().filter(|timer| self.minds(*timer)).flat_map(of_part);
        let aging = self.aging().map(|(at, part)| {
            let part = Some(self.name(part));
            OverdueTimer { what: DueKind::Compensation, part, at }
        });
        let limits = self.time_limits().map(|(limit, at)| {
            let what = if limit == ExecutionLimit::Time { DueKind::Time } else { DueKind::Deadline };
            OverdueTimer { what, part: None, at }
        });
        let agent = self.agent_lease_end().map(|at| OverdueTimer { what: DueKind::Agent, part: None, at });
        let mut due: Vec<OverdueTimer> =
            parts.chain(aging.chain(limits).chain(agent).filter(|timer| timer.at <= by)).collect();
        due.sort_by_key(|timer| timer.at);
        due
    }

    pub(super) fn admit_hold(&self) -> Result<(), Refusal> {
        match self.held {
            Some(_) => Err(Refusal::new("execution.paused", "this execution is held already")),
            None => Ok(()),
        }
    }

    /// While held, only a person decides what becomes of it. What an agent did is recorded all the same.
    pub(super) fn admit_while_held(&self, actor: &Actor, input: &ExecutionInput) -> Result<(), Refusal> {
        let decides = matches!(
            input,
            ExecutionInput::Cancel { .. }
                | ExecutionInput::Kill { .. }
                | ExecutionInput::HandOver { .. }
                | ExecutionInput::Answer { .. }
                | ExecutionInput::Replan { .. }
        );
        match self.held {
            Some(_) if decides => super::admit::person(actor, "decide about an execution that is held")
                .map_err(|refusal| refusal.hint("a person looks at what came due, and resumes it")),
            _ => Ok(()),
        }
    }

    /// Only a person ends a hold: that a person has looked is what it waits for.
    pub(super) fn admit_end_of_hold(&self, actor: &Actor) -> Result<(), Refusal> {
        match self.held {
            Some(_) => super::admit::person(actor, "resume an execution that is held")
                .map_err(|refusal| refusal.hint("a person looks at what came due, and resumes it")),
            None => Ok(()),
        }
    }

    /// Whether these names are of timers that the hold lists.
    pub(super) fn admit_expiring(&self, names: &[String]) -> Result<(), Refusal> {
        let due: &[OverdueTimer] = self.held.as_ref().map_or(&[], |hold| &hold.due);
        let Some(unknown) = names.iter().find(|name| !due.iter().any(|timer| timer.is_named(name))) else {
            return Ok(());
        };
        let mut listed: Vec<String> = due.iter().map(OverdueTimer::name).collect();
        listed.dedup();
        let refusal =
            Refusal::new("execution.not_due", format!("{:?} is not among what came due", cut(unknown, NAME_CHARS_MAX)));
        Err(match listed.is_empty() {
            true => refusal.hint("nothing is listed: resume without names"),
            false => refusal.hint(format!("listed are: {}", listed.join(", "))),
        })
    }

    /// Leaves a span out of every timer, except those that expired.
    pub(super) fn thaw(&mut self, hold: &ExecutionHold, span: Millis, expired: &[OverdueTimer]) {
        let parts = expired.iter().filter_map(|timer| self.locate(timer.part.as_ref()?));
        let parts: BTreeSet<PartPosition> = parts.collect();
        let is_expired = |kind: DueKind| expired.iter().any(|timer| timer.what == kind);
        // Also parts without a timer: one in doubt gets one when it is sent again.
        for step in 0..self.steps.len() {
            for item in 0..self.steps[step].parts.len() {
                let (at, mut part) = (PartPosition::new(step, item), self.steps[step].parts[item].clone());
                if part.is_active() && !parts.contains(&at) {
                    part.postpone(hold.since, span);
                    self.replace(at, part);
                }
            }
        }
        if let Some(undo) = &mut self.undo {
            undo.postpone(span, &parts);
        }
        for (limit, kind) in [(ExecutionLimit::Deadline, DueKind::Deadline), (ExecutionLimit::Time, DueKind::Time)] {
            if !is_expired(kind) {
                self.add_time(limit, span);
            }
        }
        if !is_expired(DueKind::Agent) {
            self.agent_seen_at = self.agent_seen_at.map(|seen| seen.plus(span));
        }
    }
}

impl DecisionDraft<'_> {
    /// Stops the clock of the execution as of `since`.
    pub fn begin_hold(&mut self, reason: String, since: Timestamp) -> RecordResult {
        let since = since.max(self.execution.last_at).min(self.now);
        let mut due = self.execution.due_timers(self.now);
        let more = due.len().saturating_sub(limits::HOLD_DUE_MAX);
        due.truncate(limits::HOLD_DUE_MAX);
        self.note(Event::Held { reason, since, due, more: u32::try_from(more).unwrap_or(u32::MAX) })
    }

    /// Resumes. After a hold its span does not count, except for the timers that expire.
    pub fn resume(&mut self, reason: String, expiring: ExpiringTimers) -> RecordResult {
        let Some(hold) = &self.execution.held else { return self.note(Event::Resumed { reason }) };
        let span = self.now.since(hold.since);
        let (frozen, expired) = match expiring {
            ExpiringTimers::None => (Some(span), Vec::new()),
            ExpiringTimers::All => (None, Vec::new()),
            ExpiringTimers::Named(names) => {
                let is_named = |timer: &&OverdueTimer| names.iter().any(|name| timer.is_named(name));
                (Some(span), hold.due.iter().filter(is_named).cloned().collect())
            }
        };
        self.note(Event::HoldEnded { reason, frozen, expired })
    }

    /// While held, only what a person stops comes to its end.
    pub(super) fn advance_while_held(&mut self) -> RecordResult {
        match self.execution.phase {
            ExecutionPhase::Draining { undo, outcome: outcome @ ExecutionEnding::Cancelled } => {
                self.stop_waiting_for_silent_agent()?;
                self.finish_draining(undo, outcome)
            }
            ExecutionPhase::Killed => self.end_killed(),
            _ => Ok(()),
        }
    }
}

impl StepPart {
    /// The time for which the part waits in its present state.
    fn timer(&mut self) -> Option<&mut Timestamp> {
        match &mut self.state {
            PartState::Asking { expires_at, .. } | PartState::Approved { expires_at, .. } => Some(expires_at),
            PartState::Running(attempt) | PartState::InDoubt { probing: ProbeProgress::Running(attempt), .. } => {
                attempt.deadline.as_mut()
            }
            PartState::BackingOff { until, .. }
            | PartState::InDoubt { probing: ProbeProgress::BackingOff { until, .. }, .. } => Some(until),
            _ => None,
        }
    }

    /// Moves its timers by a span that began at `since`.
    fn postpone(&mut self, since: Timestamp, span: Millis) {
        if let Some(when) = self.timer() {
            *when = when.plus(span);
        }
        if let Some(pause) = self.state.awaited_pause_mut() {
            pause.since = pause.since.plus(span);
        }
        if let Some(began) = self.began_at {
            // Of a part that began within the span, only the rest of it does not count.
            let counted = began.since(since).0;
            self.frozen.0 = self.frozen.0.saturating_add(span.0.saturating_sub(counted));
        }
    }

    /// A timer that was set while held runs from the end of the hold, like all others.
    pub(super) fn set_back(&mut self, before: &StepPart, span: Millis) {
        let mut before = before.clone();
        if let Some(when) = self.timer().filter(|when| before.timer().is_none_or(|old| old != *when)) {
            *when = Timestamp(when.0.saturating_sub_unsigned(span.0));
        }
    }
}

fn due_kind(timer: TimerKind) -> DueKind {
    match timer {
        TimerKind::Attempt => DueKind::Attempt,
        TimerKind::Step => DueKind::Step,
        TimerKind::Approval => DueKind::Approval,
        TimerKind::Retry => DueKind::Retry,
        TimerKind::RetryUndo => DueKind::Compensation,
        TimerKind::RetryProbe => DueKind::Probe,
    }
}
