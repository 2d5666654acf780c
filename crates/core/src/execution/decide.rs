//! Decides on an input: which events to record, then which calls to make.

use super::agenda::{PartPosition, TimerKind};
use super::input::{CallCapacity, Decision, DecisionContext, ExecutionInput, Refusal};
use super::part::PartState;
use super::{Execution, ExecutionPhase, IllegalEvent};
use crate::actor::Actor;
use crate::id::ToolName;
use crate::journal::event::{CallSide, Event, EventRecord, ExecutionLimit, Question, QuestionAnswer};
use crate::journal::payload::EventPayload;
use crate::limits;
use crate::plan::{Driver, PolicyAction};
use crate::time::Timestamp;
use crate::tool::{FailureCategory, ToolFailure};
use serde_json::Value;

/// Why there is no decision.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A bug in Rutter. This value must be dropped and the execution loaded again.
    #[error(transparent)]
    Broken(#[from] IllegalEvent),
}

pub(super) type RecordResult = Result<(), IllegalEvent>;

impl Execution {
    /// Decides, and applies the records as if they were already in the journal.
    ///
    /// The caller appends `records` atomically before it makes any of the `calls`. If appending fails, this
    /// value is ahead of the journal: it must be dropped and loaded again. A refusal changes nothing.
    pub fn decide(&mut self, actor: &Actor, input: ExecutionInput, moment: DecisionContext) -> Result<Decision, Error> {
        let DecisionContext { now, mut room } = moment;
        self.decide_within(actor, input, now, &mut room)
    }

    /// Decides with limits per tool: calls without capacity wait, the others start.
    pub fn decide_within(
        &mut self,
        actor: &Actor,
        input: ExecutionInput,
        now: Timestamp,
        room: &mut dyn CallCapacity,
    ) -> Result<Decision, Error> {
        self.admit(actor, &input)?;
        let now = now.max(self.last_at);
        let mut draft =
            DecisionDraft { execution: self, actor: actor.clone(), now, room, full: Vec::new(), records: Vec::new() };
        let recovers = matches!(input, ExecutionInput::Recovered);
        draft.take(input)?;
        draft.advance()?;
        let calls = draft.calls(recovers);
        Ok(Decision { records: draft.records, calls })
    }

    /// The next time at which a decision is due without an input.
    ///
    /// [`Execution::decide`] acts on the same timers. A time that has passed means: as soon as there is
    /// capacity for a call.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let timers = TimerKind::ALL.into_iter().filter(|timer| self.minds(*timer));
        let parts = timers.filter_map(|timer| self.timers_of(timer).next().map(|(when, _)| when));
        parts.chain(self.time_limits().map(|(_, when)| when)).min()
    }

    /// Whether timers of this kind are active now.
    pub(super) fn minds(&self, timer: TimerKind) -> bool {
        let live = match self.phase {
            ExecutionPhase::Forward | ExecutionPhase::Draining { .. } | ExecutionPhase::Undoing => true,
            ExecutionPhase::Pending | ExecutionPhase::Killed | ExecutionPhase::Ended { .. } => false,
        };
        match timer {
            TimerKind::Attempt => live,
            TimerKind::Step | TimerKind::Approval => self.phase == ExecutionPhase::Forward,
            TimerKind::Retry => self.may_begin() && self.has_line(),
            TimerKind::RetryUndo => self.phase == ExecutionPhase::Undoing && self.may_call(),
            TimerKind::RetryProbe => live && self.may_call(),
        }
    }

    /// The timers of a kind, earliest first. A call that waits for its changed tool to be accepted has none, nor has
    /// one that an agent started out of order and that now waits for its dependencies.
    pub(super) fn timers_of(&self, timer: TimerKind) -> impl Iterator<Item = (Timestamp, PartPosition)> {
        let side = move |at: PartPosition| match timer {
            TimerKind::Retry | TimerKind::RetryUndo => self.part_at(at).and_then(|part| part.side()),
            TimerKind::RetryProbe => Some(CallSide::Probe),
            TimerKind::Attempt | TimerKind::Step | TimerKind::Approval => None,
        };
        let is_drifted = move |at: PartPosition| side(at).is_some_and(|side| self.is_drifted(at, side));
        let timers = self.agenda.timer(timer).iter().copied();
        let in_turn = move |at: PartPosition| timer != TimerKind::Retry || self.steps[at.step()].unmet == 0;
        timers.filter(move |(_, at)| in_turn(*at) && (self.drifted.is_empty() || !is_drifted(*at)))
    }

    /// Whether Rutter may call tools at all.
    pub(super) fn may_call(&self) -> bool {
        self.driver == Driver::Server && !self.paused
    }

    /// Whether one more forward attempt is within the plan's parallelism.
    ///
    /// While Rutter drives, a part with a slot always passes; an agent may have started more parts than slots.
    pub(super) fn has_line(&self) -> bool {
        self.agenda.calling < self.plan.max_parallel as usize
    }

    /// Whether there is a slot for one more part. A part that an agent started out of order and that now waits for its
    /// dependencies occupies none, or they could never start.
    pub(super) fn has_place(&self) -> bool {
        let (busy, places) = (self.agenda.busy, self.plan.max_parallel as usize);
        let out_of_turn = |at: &PartPosition| self.steps[at.step()].unmet > 0;
        let retries = || self.agenda.timer(TimerKind::Retry).iter().filter(|(_, at)| out_of_turn(at)).count();
        let approved = || self.agenda.approved.iter().filter(|at| out_of_turn(at)).count();
        busy < places || busy - retries() - approved() < places
    }

    /// Whether new forward attempts may start.
    pub(super) fn may_begin(&self) -> bool {
        self.phase == ExecutionPhase::Forward
            && self.may_call()
            && self.agenda.held.is_empty()
            && self.agenda.failing.is_empty()
            && self.over.is_none()
            && !self.replanning
    }

    /// The times at which the execution's deadline and time budget are reached.
    fn time_limits(&self) -> impl Iterator<Item = (ExecutionLimit, Timestamp)> {
        let started = self.started_at.filter(|_| self.phase == ExecutionPhase::Forward && self.over.is_none());
        let spans =
            [(ExecutionLimit::Deadline, Some(self.plan.deadline)), (ExecutionLimit::Time, self.plan.budget.time)];
        spans.into_iter().filter_map(move |(limit, span)| {
            let times = u64::from(1 + self.raised.get(&limit).copied().unwrap_or(0));
            Some((limit, started?.plus(crate::time::Millis(span?.0.saturating_mul(times)))))
        })
    }

    /// A limit that forbids another call.
    pub(super) fn spent_limit(&self) -> Option<ExecutionLimit> {
        let allowed = |limit: ExecutionLimit, amount: Option<u64>| {
            amount.map(|amount| amount.saturating_mul(u64::from(1 + self.raised.get(&limit).copied().unwrap_or(0))))
        };
        if allowed(ExecutionLimit::Calls, self.plan.budget.calls).is_some_and(|calls| self.spent.calls >= calls) {
            return Some(ExecutionLimit::Calls);
        }
        if allowed(ExecutionLimit::Cost, self.plan.budget.cost_micros)
            .is_some_and(|cost| self.spent.cost_micros >= cost)
        {
            return Some(ExecutionLimit::Cost);
        }
        let entries = allowed(ExecutionLimit::Entries, Some(limits::ENTRIES_MAX));
        entries.is_some_and(|entries| self.entries >= entries).then_some(ExecutionLimit::Entries)
    }
}

/// A decision under construction.
pub(super) struct DecisionDraft<'a> {
    pub execution: &'a mut Execution,
    actor: Actor,
    pub now: Timestamp,
    pub room: &'a mut dyn CallCapacity,
    /// Tools without capacity.
    pub full: Vec<ToolName>,
    /// The events decided so far. The calls are derived from them at the end: see [`DecisionDraft::calls`].
    pub records: Vec<EventRecord>,
}

impl DecisionDraft<'_> {
    /// Records an event of the caller.
    pub fn note(&mut self, event: Event) -> RecordResult {
        let actor = self.actor.clone();
        self.record(actor, event)
    }

    /// Records a consequence, as an event of Rutter.
    pub fn follow(&mut self, event: Event) -> RecordResult {
        self.record(Actor::rutter(), event)
    }

    fn record(&mut self, actor: Actor, event: Event) -> RecordResult {
        let record = EventRecord { at: self.now, actor, event };
        self.execution.apply(&record)?;
        self.records.push(record);
        Ok(())
    }

    fn take(&mut self, input: ExecutionInput) -> RecordResult {
        let payload = |value: Option<std::sync::Arc<Value>>| value.map(EventPayload::Present);
        match input {
            ExecutionInput::Start => self.note(Event::ExecutionStarted {}),
            ExecutionInput::Wake => Ok(()),
            ExecutionInput::Recovered => self.recover(),
            ExecutionInput::Returned { part, side, attempt, outcome } => self.returned(part, side, attempt, outcome),
            ExecutionInput::Accepted { part, side, attempt, ticket } => {
                self.follow(Event::AttemptAccepted { part, side, attempt, ticket })
            }
            ExecutionInput::ToolAsks { part, side, attempt, message, schema } => {
                let schema = EventPayload::Present(schema);
                self.follow(Event::ToolAsked { part, side, attempt, message, schema })
            }
            ExecutionInput::AnswerTool { part, attempt, answer, reason } => {
                self.answer_tool(part, attempt, payload(answer), reason)
            }
            ExecutionInput::Approve { part, call, reason } => self.note(Event::ApprovalGranted { part, call, reason }),
            ExecutionInput::Deny { part, call, reason } => self.note(Event::ApprovalDenied { part, call, reason }),
            ExecutionInput::Answer { about, answer, reason, result, evidence } => {
                let skipped = match (&about, answer) {
                    (Question::Failure(step), QuestionAnswer::Skip | QuestionAnswer::Continue) => {
                        let step = self.execution.plan.find(step.as_str()).into_iter().collect::<Vec<_>>();
                        self.execution.names(&self.execution.lacking(&step))
                    }
                    _ => Vec::new(),
                };
                let (result, evidence) = (payload(result), payload(evidence));
                self.note(Event::QuestionAnswered { about, answer, reason, result, evidence, skipped })
            }
            ExecutionInput::Settle { part, happened, reason, result, evidence } => {
                self.settle_by_person(part, happened, reason, payload(result), EventPayload::Present(evidence))
            }
            ExecutionInput::Pause { reason } => self.note(Event::Paused { reason }),
            ExecutionInput::Resume { reason } => self.note(Event::Resumed { reason }),
            ExecutionInput::Cancel { reason, undo } => {
                let undo = undo.unwrap_or(self.execution.plan.on_failure == PolicyAction::Compensate);
                self.note(Event::CancelRequested { reason, undo })
            }
            ExecutionInput::Kill { reason } => self.note(Event::Killed { reason }),
            ExecutionInput::Compensate { steps, reason } => {
                let parts = self.execution.undo_scope(steps.as_deref());
                self.note(Event::CompensationStarted { parts, whole: steps.is_none(), reason })
            }
            ExecutionInput::BeginReplan { reason } => self.note(Event::ReplanBegun { reason }),
            ExecutionInput::AbandonReplan { reason } => self.note(Event::ReplanAbandoned { reason }),
            ExecutionInput::Replan { plan, reason } => self.replan(&plan, reason),
            ExecutionInput::HandOver { to, reason } => self.hand_over(to, reason),
            ExecutionInput::ReportDrift { tool, found } => {
                let pinned = self.execution.definition(&tool);
                self.note(Event::ToolDrifted { tool, pinned, found })
            }
            ExecutionInput::AcceptTool { tool, definition, reason } => {
                self.note(Event::ToolAccepted { tool, definition, reason })
            }
            ExecutionInput::RecordStarted { part, tool, parameters } => self.record_started(part, tool, parameters),
            ExecutionInput::RecordFinished { part, result } => self.record_finished(part, result),
            ExecutionInput::RecordFailed { part, failure, maybe } => self.record_failed(part, failure, maybe),
            ExecutionInput::RecordCompensation { part, description, evidence } => {
                self.note(Event::CompensationRecorded { part, description, evidence: payload(evidence) })
            }
            ExecutionInput::RecordDecision { step, decision, reason, details } => {
                self.note(Event::DecisionRecorded { step, decision, reason, details: payload(details) })
            }
            ExecutionInput::RecordAction { step, kind, description, details } => {
                self.record_action(step, kind, description, payload(details))
            }
            ExecutionInput::RecordEnd { reason } => self.record_end(reason),
            ExecutionInput::SaveContext { values } => {
                let values = EventPayload::Present(std::sync::Arc::new(Value::Object(values)));
                self.note(Event::ContextSaved { values })
            }
        }
    }

    /// Records all consequences, until there are no more.
    fn advance(&mut self) -> RecordResult {
        loop {
            let before = self.records.len();
            self.expire()?;
            self.evaluate_probes()?;
            match self.execution.phase {
                ExecutionPhase::Pending | ExecutionPhase::Ended { .. } => {}
                ExecutionPhase::Forward => {
                    self.handle_failures()?;
                    self.reach_limits()?;
                    self.probe()?;
                    self.go_forward()?;
                    self.finish_forward()?;
                }
                ExecutionPhase::Draining { undo, outcome } => {
                    self.probe()?;
                    self.finish_draining(undo, outcome)?;
                }
                ExecutionPhase::Undoing => {
                    self.probe()?;
                    self.go_back()?;
                    self.finish_undoing()?;
                }
                ExecutionPhase::Killed => self.end_killed()?,
            }
            if self.records.len() == before {
                return Ok(());
            }
        }
    }

    pub fn due(&self, timer: TimerKind) -> Vec<PartPosition> {
        if !self.execution.minds(timer) {
            return Vec::new();
        }
        let passed = self.execution.timers_of(timer).take_while(|(when, _)| *when <= self.now);
        passed.map(|(_, part)| part).collect()
    }

    /// Closes attempts, parts and approvals whose time is up.
    fn expire(&mut self) -> RecordResult {
        for at in self.due(TimerKind::Attempt) {
            let failure = ToolFailure::new(FailureCategory::Timeout, "no answer in time");
            self.close_running(at, failure)?;
        }
        for at in self.due(TimerKind::Step) {
            self.run_out_of_time(at)?;
        }
        for at in self.due(TimerKind::Approval) {
            let part = self.execution.name(at);
            match self.execution.part_at(at).map(|part| &part.state) {
                Some(PartState::Asking { call, .. }) => {
                    let call = *call;
                    self.follow(Event::ApprovalExpired { part, call })?;
                }
                Some(PartState::Approved { call, .. }) => {
                    let (call, reason) = (*call, "it expired unused".to_owned());
                    self.follow(Event::ApprovalVoided { part, call, reason })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends a part whose attempts together took too long: the open attempt, or the next ones.
    pub fn run_out_of_time(&mut self, at: PartPosition) -> RecordResult {
        let failure = ToolFailure::new(FailureCategory::Timeout, "all its attempts together took too long");
        match self.execution.part_at(at).map(|part| &part.state) {
            Some(PartState::Running(_)) => self.close_running(at, failure),
            Some(
                PartState::Asking { side, .. } | PartState::Approved { side, .. } | PartState::BackingOff { side, .. },
            ) => {
                let (part, side) = (self.execution.name(at), *side);
                self.follow(Event::RetryAbandoned { part, side, failure })
            }
            _ => Ok(()),
        }
    }

    fn reach_limits(&mut self) -> RecordResult {
        if self.execution.phase != ExecutionPhase::Forward {
            return Ok(());
        }
        let reached = self.execution.time_limits().find(|(_, when)| *when <= self.now).map(|(limit, _)| limit);
        match reached {
            Some(limit) => self.reach(limit),
            None => Ok(()),
        }
    }

    pub fn reach(&mut self, limit: ExecutionLimit) -> RecordResult {
        let action = self.execution.plan.on_failure;
        self.follow(Event::LimitReached { limit, action })
    }

    /// Records that an open attempt is lost.
    pub fn lose(&mut self, at: PartPosition) -> RecordResult {
        let Some(attempt) = self.running_attempt(at) else { return Ok(()) };
        let then = self.after_loss(at, attempt.side);
        let part = self.execution.name(at);
        self.follow(Event::AttemptLost { part, side: attempt.side, attempt: attempt.number, then })
    }

    pub fn running_attempt(&self, at: PartPosition) -> Option<super::part::Attempt> {
        self.execution.part_at(at)?.running().cloned()
    }
}
