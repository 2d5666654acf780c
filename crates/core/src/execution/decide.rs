//! Decides on an input: which events to record, then which calls to make.

use super::agenda::{PartPosition, TimerKind};
use super::hold::ExpiringTimers;
use super::input::{CallCapacity, Decision, DecisionContext, DecisionTerms, ExecutionInput, Refusal};
use super::part::PartState;
use super::{Execution, ExecutionPhase, IllegalEvent};
use crate::actor::Actor;
use crate::id::{PartId, ToolName};
use crate::journal::event::{CallSide, Event, EventRecord, ExecutionLimit, Question, QuestionAnswer};
use crate::journal::payload::EventPayload;
use crate::limits;
use crate::plan::{Driver, PolicyAction};
use crate::policy::OperatorPolicy;
use crate::time::Timestamp;
use crate::tool::{Elicitation, FailureCategory, ToolFailure};
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
        let policy = OperatorPolicy::default();
        self.decide_within(actor, input, DecisionTerms { now, room: &mut room, policy: &policy })
    }

    /// Decides under the operator's policy and with limits per tool: calls without capacity wait, the others start.
    pub fn decide_within(
        &mut self,
        actor: &Actor,
        input: ExecutionInput,
        terms: DecisionTerms<'_>,
    ) -> Result<Decision, Error> {
        let DecisionTerms { now, room, policy } = terms;
        self.admit(actor, &input, policy)?;
        let now = now.max(self.last_at);
        let actor = actor.clone();
        let mut draft =
            DecisionDraft { execution: self, actor, now, room, policy, full: Vec::new(), records: Vec::new() };
        // A hold begins with a recovery: only when it ends are calls resumed.
        let recovers = matches!(input, ExecutionInput::Recovered) || draft.execution.held.is_some();
        draft.take(input)?;
        draft.advance()?;
        let recovers = recovers && draft.execution.held.is_none();
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
        let aging = self.aging().map(|(when, _)| when);
        parts.chain(aging).chain(self.time_limits().map(|(_, when)| when)).chain(self.agent_lease_end()).min()
    }

    /// Whether timers of this kind are active now.
    pub(super) fn minds(&self, timer: TimerKind) -> bool {
        if self.held.is_some() {
            return false;
        }
        let live = match self.phase {
            ExecutionPhase::Forward | ExecutionPhase::Draining { .. } | ExecutionPhase::Undoing => true,
            ExecutionPhase::Pending | ExecutionPhase::Killed | ExecutionPhase::Ended { .. } => false,
        };
        match timer {
            TimerKind::Attempt => live,
            TimerKind::Step => self.phase == ExecutionPhase::Forward,
            TimerKind::Approval => matches!(self.phase, ExecutionPhase::Forward | ExecutionPhase::Undoing),
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
    /// More parts than slots may be under way: an agent started them, or a doubt that gave its slot back is settled.
    pub(super) fn has_line(&self) -> bool {
        self.agenda.calling < self.plan.max_parallel as usize
    }

    /// Whether there is a slot for one more part. A doubt gives its slot back, except where one step follows the other:
    /// see [decision 22](../../../../docs/decisions/0022-doubt-has-an-age.md). A part that an agent started out of order and that now waits for its
    /// dependencies occupies none, or they could never start.
    pub(super) fn has_place(&self) -> bool {
        let places = self.plan.max_parallel as usize;
        let busy = self.agenda.busy - if places > 1 { self.agenda.idle_doubts } else { 0 };
        let out_of_turn = |at: &PartPosition| self.steps[at.step()].unmet > 0;
        let retries = || self.agenda.timer(TimerKind::Retry).iter().filter(|(_, at)| out_of_turn(at)).count();
        let approved = || self.agenda.approved.iter().filter(|at| out_of_turn(at)).count();
        busy < places || busy - retries() - approved() < places
    }

    /// Whether there is a slot for one more part to be undone.
    pub(super) fn has_undo_place(&self) -> bool {
        let places = self.plan.max_parallel as usize;
        let given_back = if places > 1 { self.agenda.idle_doubts_undoing } else { 0 };
        self.agenda.busy_undoing - given_back < places
    }

    /// Whether new forward attempts may start.
    pub(super) fn may_begin(&self) -> bool {
        self.phase == ExecutionPhase::Forward
            && self.may_call()
            && self.agenda.held.is_empty()
            && self.agenda.failing.is_empty()
            && self.over.is_none()
            && !self.replanning
            && self.proposal.is_none()
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
    pub actor: Actor,
    pub now: Timestamp,
    pub room: &'a mut dyn CallCapacity,
    pub policy: &'a OperatorPolicy,
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

    pub fn actor(&self) -> &Actor {
        &self.actor
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
            ExecutionInput::ToolAsks { part, side, attempt, question } => {
                let Elicitation { message, schema, continuation } = question;
                let (schema, continuation) = (EventPayload::Present(schema), payload(continuation));
                self.follow(Event::ToolAsked { part, side, attempt, message, schema, continuation })
            }
            ExecutionInput::AnswerTool { part, attempt, answer, reason } => {
                self.answer_tool(part, attempt, payload(answer), reason)
            }
            ExecutionInput::Approve { part, call, reason } => self.note(Event::ApprovalGranted { part, call, reason }),
            ExecutionInput::Deny { part, call, reason } => self.note(Event::ApprovalDenied { part, call, reason }),
            ExecutionInput::Answer { about, answer, reason, result, evidence } => {
                if let (Some(_), Question::Failure(step) | Question::Item(PartId { step, .. })) =
                    (self.execution.outcome(), &about)
                {
                    // The question is put again, and this is its answer.
                    self.reopen(&[], std::slice::from_ref(step), reason.clone())?;
                }
                let (result, evidence, skipped) = (payload(result), payload(evidence), Vec::new());
                let undo = match (&about, answer) {
                    (Question::SecondEffect(part), QuestionAnswer::Compensate) => Some((part.clone(), reason.clone())),
                    _ => None,
                };
                self.note(Event::QuestionAnswered { about, answer, reason, result, evidence, skipped })?;
                match undo {
                    Some((part, reason)) => {
                        self.note(Event::CompensationStarted { parts: vec![part], whole: false, reason })
                    }
                    None => Ok(()),
                }
            }
            ExecutionInput::Settle { part, happened, reason, result, evidence } => {
                self.settle_by_person(part, happened, reason, payload(result), EventPayload::Present(evidence))
            }
            ExecutionInput::Correct { part, happened, reason, result, evidence } => {
                self.correct(part, happened, reason, payload(result), payload(evidence))
            }
            ExecutionInput::Pause { reason } => self.note(Event::Paused { reason }),
            ExecutionInput::Resume { reason } => self.resume(reason, ExpiringTimers::None),
            ExecutionInput::ResumeExpired { reason, only } if only.is_empty() => {
                self.resume(reason, ExpiringTimers::All)
            }
            ExecutionInput::ResumeExpired { reason, only } => self.resume(reason, ExpiringTimers::Named(only)),
            ExecutionInput::Hold { reason, since } => self.begin_hold(reason, since),
            ExecutionInput::AgentSeen { remembered } => self.agent_seen(remembered),
            ExecutionInput::Cancel { reason, undo } => {
                let undo = undo.unwrap_or(self.execution.plan.on_failure == PolicyAction::Compensate);
                self.note(Event::CancelRequested { reason, undo })
            }
            ExecutionInput::Kill { reason } => self.note(Event::Killed { reason }),
            ExecutionInput::Compensate { steps, reason } => {
                let parts = self.execution.undo_scope(steps.as_deref());
                self.note(Event::CompensationStarted { parts, whole: steps.is_none(), reason })
            }
            ExecutionInput::Reopen { steps, reason } => self.reopen(&steps.unwrap_or_default(), &[], reason),
            ExecutionInput::BeginReplan { reason } => self.note(Event::ReplanBegun { reason }),
            ExecutionInput::AbandonReplan { reason } => self.note(Event::ReplanAbandoned { reason }),
            ExecutionInput::Replan { plan, revision, reason } => self.propose(&plan, revision, reason),
            ExecutionInput::ApproveReplan { reason, .. } => match self.execution.proposal.clone() {
                Some(proposal) => self.replan(&proposal.plan.0, proposal.revision, reason),
                None => Ok(()),
            },
            ExecutionInput::RejectReplan { plan, reason } => self.note(Event::ReplanRejected { plan, reason }),
            ExecutionInput::HandOver { to, reason } => self.hand_over(to, reason),
            ExecutionInput::ReportDefinition { tool, found } => self.note_definition(tool, found),
            ExecutionInput::Withdraw { part, side, attempt, tool, found } => {
                self.withdraw(part, side, attempt, (&tool, found))
            }
            ExecutionInput::AcceptTool { tool, definition, reason } => {
                let voids = format!("another definition of {tool} was accepted, so this is another call");
                self.note(Event::ToolAccepted { tool, definition, reason })?;
                self.void_changed_approvals(&voids)
            }
            ExecutionInput::RecordStarted { part, tool, parameters } => self.record_started(part, tool, parameters),
            ExecutionInput::RecordClaim { part, tool, parameters } => self.record_claim(&part, tool, parameters),
            ExecutionInput::RecordFinished { part, result } => self.record_finished(part, result),
            ExecutionInput::RecordFailed { part, failure, maybe } => self.record_failed(part, failure, maybe),
            ExecutionInput::RecordCompensation { part, description, evidence } => {
                self.record_compensation(part, description, payload(evidence))
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
            self.settle_answered()?;
            if self.execution.held.is_some() {
                return self.advance_while_held();
            }
            self.expire()?;
            self.notice_silence()?;
            self.evaluate_probes()?;
            match self.execution.phase {
                ExecutionPhase::Pending | ExecutionPhase::Ended { .. } => {}
                ExecutionPhase::Forward => {
                    self.handle_failures()?;
                    self.complete_answered()?;
                    self.reach_limits()?;
                    self.probe()?;
                    self.go_forward()?;
                    self.finish_forward()?;
                }
                ExecutionPhase::Draining { undo, outcome } => {
                    self.stop_waiting_for_silent_agent()?;
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
            self.close_running(at, self.no_answer())?;
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
        let state = self.execution.part_at(at).map(|part| &part.state);
        let message = match state.and_then(PartState::awaited_pause) {
            Some((pause, _)) => format!("its time was up while it waited for its server ({})", pause.failure),
            None => "all its attempts together took too long".to_owned(),
        };
        let failure = ToolFailure::new(FailureCategory::Timeout, message);
        match state {
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
