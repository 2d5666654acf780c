//! What follows from an input: facts to record, then calls to make.

use super::agenda::{PartAt, Timer};
use super::input::{Decision, Input, Moment, Refusal, Room};
use super::part::PartState;
use super::{Execution, IllegalEvent, Phase};
use crate::actor::Actor;
use crate::id::ToolName;
use crate::journal::event::{Answer, Event, Limit, Question, Record, Side};
use crate::journal::payload::Payload;
use crate::limits;
use crate::mutation::Mutation;
use crate::plan::{Driver, PolicyAction};
use crate::time::Timestamp;
use crate::tool::{Category, Failure};
use serde_json::Value;

/// Why nothing was decided.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A mistake of ours. This execution must be thrown away and loaded again.
    #[error(transparent)]
    Broken(#[from] IllegalEvent),
}

pub(super) type Recorded = Result<(), IllegalEvent>;

impl Execution {
    /// Decides, and moves on as if the records were already in the journal.
    ///
    /// The caller appends `records` in one piece before it makes any of the `calls`. If appending fails,
    /// this value is ahead of the journal: it must be thrown away and loaded again. A refusal changes nothing.
    pub fn decide(&mut self, actor: &Actor, input: Input, moment: Moment) -> Result<Decision, Error> {
        let Moment { now, mut room } = moment;
        self.decide_within(actor, input, now, &mut room)
    }

    /// The same where each tool has its own limits: what there is no room for waits, the rest goes on.
    pub fn decide_within(
        &mut self,
        actor: &Actor,
        input: Input,
        now: Timestamp,
        room: &mut dyn Room,
    ) -> Result<Decision, Error> {
        self.admit(actor, &input)?;
        let now = now.max(self.last_at);
        let mut draft = Draft {
            execution: self,
            actor: actor.clone(),
            now,
            room,
            full: Vec::new(),
            decision: Decision::default(),
        };
        let recovers = matches!(input, Input::Recovered);
        draft.take(input)?;
        draft.advance()?;
        if recovers {
            draft.go_on();
        }
        Ok(draft.decision)
    }

    /// When something will have to be decided even if nobody asks.
    ///
    /// The same rule says which timers [`Execution::decide`] acts on. A time that has passed means: as soon
    /// as there is room for a call.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let timers = Timer::ALL.into_iter().filter(|timer| {
            self.minds(*timer) || (*timer == Timer::Retry && Mutation::WakeByAnotherRule.is_active())
        });
        let parts = timers.filter_map(|timer| self.timers_of(timer).next().map(|(when, _)| when));
        parts.chain(self.time_limits().map(|(_, when)| when)).min()
    }

    /// Which timers matter now.
    pub(super) fn minds(&self, timer: Timer) -> bool {
        let live = match self.phase {
            Phase::Forward | Phase::Draining { .. } | Phase::Undoing => true,
            Phase::Pending | Phase::Killed | Phase::Ended { .. } => false,
        };
        match timer {
            Timer::Attempt => live,
            Timer::Step | Timer::Approval => self.phase == Phase::Forward,
            Timer::Retry => self.may_begin() && self.has_line(),
            Timer::RetryUndo => self.phase == Phase::Undoing && self.may_call(),
            Timer::RetryProbe => live && self.may_call(),
        }
    }

    /// The timers of a kind, earliest first. A call that waits for its tool to be accepted has none, nor has one
    /// that an agent made out of turn and that now has to wait for what it needs.
    pub(super) fn timers_of(&self, timer: Timer) -> impl Iterator<Item = (Timestamp, PartAt)> {
        let side = move |at: PartAt| match timer {
            Timer::Retry | Timer::RetryUndo => self.part_at(at).and_then(|part| part.side()),
            Timer::RetryProbe => Some(Side::Probe),
            Timer::Attempt | Timer::Step | Timer::Approval => None,
        };
        let is_drifted = move |at: PartAt| side(at).is_some_and(|side| self.is_drifted(at, side));
        let timers = self.agenda.timer(timer).iter().copied();
        let in_turn = move |at: PartAt| timer != Timer::Retry || self.steps[at.step()].unmet == 0;
        timers.filter(move |(_, at)| in_turn(*at) && (self.drifted.is_empty() || !is_drifted(*at)))
    }

    /// Whether Rutter may call tools at all.
    pub(super) fn may_call(&self) -> bool {
        self.driver == Driver::Server && (!self.paused || Mutation::IgnorePause.is_active())
    }

    /// Whether one more forward attempt keeps within the plan's parallelism.
    ///
    /// Holding a place is enough, as long as Rutter drives; an agent may have taken more than there are.
    pub(super) fn has_line(&self) -> bool {
        self.agenda.calling < self.plan.max_parallel as usize || Mutation::IgnorePlaces.is_active()
    }

    /// Whether one more part may begin. One that an agent began out of turn and that now waits for what it needs does not
    /// hold a place: what it needs could never begin.
    pub(super) fn has_place(&self) -> bool {
        let (busy, places) = (self.agenda.busy, self.plan.max_parallel as usize);
        let out_of_turn = |at: &PartAt| self.steps[at.step()].unmet > 0;
        let retries = || self.agenda.timer(Timer::Retry).iter().filter(|(_, at)| out_of_turn(at)).count();
        let approved = || self.agenda.approved.iter().filter(|at| out_of_turn(at)).count();
        busy < places || busy - retries() - approved() < places
    }

    /// Whether new forward attempts may be made: nothing holds the execution up.
    pub(super) fn may_begin(&self) -> bool {
        let undecided = !self.agenda.held.is_empty() && !Mutation::ContinueWhileHeld.is_active();
        self.phase == Phase::Forward
            && self.may_call()
            && !undecided
            && self.agenda.failing.is_empty()
            && self.over.is_none()
            && !self.replanning
    }

    /// The points in time at which a limit of the whole execution is reached.
    fn time_limits(&self) -> impl Iterator<Item = (Limit, Timestamp)> {
        let started = self.started_at.filter(|_| self.phase == Phase::Forward && self.over.is_none());
        let spans = [(Limit::Deadline, Some(self.plan.deadline)), (Limit::Time, self.plan.budget.time)];
        spans.into_iter().filter_map(move |(limit, span)| {
            let times = u64::from(1 + self.raised.get(&limit).copied().unwrap_or(0));
            Some((limit, started?.plus(crate::time::Millis(span?.0.saturating_mul(times)))))
        })
    }

    /// A limit that forbids one more call.
    pub(super) fn spent_limit(&self) -> Option<Limit> {
        let allowed = |limit: Limit, amount: Option<u64>| {
            amount.map(|amount| {
                amount.saturating_mul(u64::from(1 + self.raised.get(&limit).copied().unwrap_or(0)))
            })
        };
        if allowed(Limit::Calls, self.plan.budget.calls).is_some_and(|calls| self.spent.calls >= calls) {
            return Some(Limit::Calls);
        }
        if allowed(Limit::Cost, self.plan.budget.cost_micros)
            .is_some_and(|cost| self.spent.cost_micros >= cost)
        {
            return Some(Limit::Cost);
        }
        let entries = allowed(Limit::Entries, Some(limits::ENTRIES_MAX));
        entries.is_some_and(|entries| self.entries >= entries).then_some(Limit::Entries)
    }
}

/// A decision in the making.
pub(super) struct Draft<'a> {
    pub execution: &'a mut Execution,
    actor: Actor,
    pub now: Timestamp,
    pub room: &'a mut dyn Room,
    /// Tools there was no room for.
    pub full: Vec<ToolName>,
    pub decision: Decision,
}

impl Draft<'_> {
    /// Records what the one who asked did.
    pub fn note(&mut self, event: Event) -> Recorded {
        let actor = self.actor.clone();
        self.record(actor, event)
    }

    /// Records what follows by itself.
    pub fn follow(&mut self, event: Event) -> Recorded {
        self.record(Actor::rutter(), event)
    }

    fn record(&mut self, actor: Actor, event: Event) -> Recorded {
        let record = Record { at: self.now, actor, event };
        self.execution.apply(&record)?;
        self.decision.records.push(record);
        Ok(())
    }

    fn take(&mut self, input: Input) -> Recorded {
        let payload = |value: Option<std::sync::Arc<Value>>| value.map(Payload::Present);
        match input {
            Input::Start => self.note(Event::ExecutionStarted {}),
            Input::Wake => Ok(()),
            Input::Recovered => self.recover(),
            Input::Returned { part, side, attempt, outcome } => self.returned(part, side, attempt, outcome),
            Input::Accepted { part, side, attempt, ticket } => {
                self.follow(Event::AttemptAccepted { part, side, attempt, ticket })
            }
            Input::ToolAsks { part, side, attempt, message, schema } => {
                let schema = Payload::Present(schema);
                self.follow(Event::ToolAsked { part, side, attempt, message, schema })
            }
            Input::AnswerTool { part, attempt, answer, reason } => {
                self.answer_tool(part, attempt, payload(answer), reason)
            }
            Input::Approve { part, call, reason } => self.note(Event::ApprovalGranted { part, call, reason }),
            Input::Deny { part, call, reason } => self.note(Event::ApprovalDenied { part, call, reason }),
            Input::Answer { about, answer, reason, result, evidence } => {
                let skipped = match (&about, answer) {
                    (Question::Failure(step), Answer::Skip | Answer::Continue) => {
                        let step = self.execution.plan.find(step.as_str()).into_iter().collect::<Vec<_>>();
                        self.execution.names(&self.execution.lacking(&step))
                    }
                    _ => Vec::new(),
                };
                let (result, evidence) = (payload(result), payload(evidence));
                self.note(Event::QuestionAnswered { about, answer, reason, result, evidence, skipped })
            }
            Input::Settle { part, happened, reason, result, evidence } => {
                self.settle_by_person(part, happened, reason, payload(result), Payload::Present(evidence))
            }
            Input::Pause { reason } => self.note(Event::Paused { reason }),
            Input::Resume { reason } => self.note(Event::Resumed { reason }),
            Input::Cancel { reason, undo } => {
                let undo = undo.unwrap_or(self.execution.plan.on_failure == PolicyAction::Compensate);
                self.note(Event::CancelRequested { reason, undo })
            }
            Input::Kill { reason } => self.note(Event::Killed { reason }),
            Input::Compensate { steps, reason } => {
                let parts = self.execution.undo_scope(steps.as_deref());
                self.note(Event::CompensationStarted { parts, whole: steps.is_none(), reason })
            }
            Input::BeginReplan { reason } => self.note(Event::ReplanBegun { reason }),
            Input::AbandonReplan { reason } => self.note(Event::ReplanAbandoned { reason }),
            Input::Replan { plan, reason } => self.replan(&plan, reason),
            Input::HandOver { to, reason } => self.hand_over(to, reason),
            Input::ReportDrift { tool, found } => {
                let pinned = self.execution.definition(&tool);
                self.note(Event::ToolDrifted { tool, pinned, found })
            }
            Input::AcceptTool { tool, definition, reason } => {
                self.note(Event::ToolAccepted { tool, definition, reason })
            }
            Input::RecordStarted { part, tool, parameters } => self.record_started(part, tool, parameters),
            Input::RecordFinished { part, result } => self.record_finished(part, result),
            Input::RecordFailed { part, failure, maybe } => self.record_failed(part, failure, maybe),
            Input::RecordCompensation { part, description, evidence } => {
                self.note(Event::CompensationRecorded { part, description, evidence: payload(evidence) })
            }
            Input::RecordDecision { step, decision, reason, details } => {
                self.note(Event::DecisionRecorded { step, decision, reason, details: payload(details) })
            }
            Input::RecordAction { step, kind, description, details } => {
                self.record_action(step, kind, description, payload(details))
            }
            Input::RecordEnd { reason } => self.record_end(reason),
            Input::SaveContext { values } => {
                let values = Payload::Present(std::sync::Arc::new(Value::Object(values)));
                self.note(Event::ContextSaved { values })
            }
        }
    }

    /// Everything that follows by itself, until nothing more does.
    fn advance(&mut self) -> Recorded {
        loop {
            let before = self.decision.records.len();
            self.expire()?;
            self.judge_probes()?;
            match self.execution.phase {
                Phase::Pending | Phase::Ended { .. } => {}
                Phase::Forward => {
                    self.handle_failures()?;
                    self.reach_limits()?;
                    self.probe()?;
                    self.go_forward()?;
                    self.finish_forward()?;
                }
                Phase::Draining { undo, outcome } => {
                    self.probe()?;
                    self.finish_draining(undo, outcome)?;
                }
                Phase::Undoing => {
                    self.probe()?;
                    self.go_back()?;
                    self.finish_undoing()?;
                }
                Phase::Killed => self.end_killed()?,
            }
            if self.decision.records.len() == before {
                return Ok(());
            }
        }
    }

    pub fn due(&self, timer: Timer) -> Vec<PartAt> {
        if !self.execution.minds(timer) {
            return Vec::new();
        }
        let passed = self.execution.timers_of(timer).take_while(|(when, _)| *when <= self.now);
        passed.map(|(_, part)| part).collect()
    }

    /// Closes what has taken too long.
    fn expire(&mut self) -> Recorded {
        for at in self.due(Timer::Attempt) {
            let failure = Failure::new(Category::Timeout, "no answer in time");
            self.close_running(at, failure)?;
        }
        for at in self.due(Timer::Step) {
            let failure = Failure::new(Category::Timeout, "all its attempts together took too long");
            let part = self.execution.name(at);
            match self.execution.part_at(at).map(|part| &part.state) {
                Some(PartState::Running(_)) => self.close_running(at, failure)?,
                Some(PartState::BackingOff { side, .. }) => {
                    let side = *side;
                    self.follow(Event::RetryAbandoned { part, side, failure })?;
                }
                _ => {}
            }
        }
        for at in self.due(Timer::Approval) {
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

    fn reach_limits(&mut self) -> Recorded {
        if self.execution.phase != Phase::Forward {
            return Ok(());
        }
        let reached =
            self.execution.time_limits().find(|(_, when)| *when <= self.now).map(|(limit, _)| limit);
        match reached {
            Some(limit) => self.reach(limit),
            None => Ok(()),
        }
    }

    pub fn reach(&mut self, limit: Limit) -> Recorded {
        let action = self.execution.plan.on_failure;
        self.follow(Event::LimitReached { limit, action })
    }

    /// Records that an attempt under way will never be answered.
    pub fn lose(&mut self, at: PartAt) -> Recorded {
        let Some(attempt) = self.running_attempt(at) else { return Ok(()) };
        let then = self.after_loss(at, attempt.side);
        let part = self.execution.name(at);
        self.follow(Event::AttemptLost { part, side: attempt.side, attempt: attempt.number, then })
    }

    pub fn running_attempt(&self, at: PartAt) -> Option<super::part::Attempt> {
        self.execution.part_at(at)?.running().cloned()
    }
}
