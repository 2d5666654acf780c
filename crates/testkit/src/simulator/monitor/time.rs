//! Time: limits hold for calls in flight, and nothing happens by itself while the execution is held.

use rutter_core::actor::ActorKind;
use rutter_core::id::PartId;
use rutter_core::journal::event::{
    CallSide, DueKind, Event, EventRecord, ExecutionEnding, ExecutionLimit, OverdueTimer, Question, QuestionAnswer,
};
use rutter_core::limits;
use rutter_core::plan::{Driver, Plan, PlannedCall};
use rutter_core::time::{Millis, Timestamp};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct TimeMonitor {
    started_at: Option<Timestamp>,
    /// Time that the deadline and the time budget got besides their own spans.
    added: [Millis; 2],
    /// Since when time stands still.
    held_since: Option<Timestamp>,
    /// What the last hold listed.
    due: Vec<OverdueTimer>,
    driver_is_agent: bool,
    agent_is_silent: bool,
    cancelled: bool,
    /// When the last call of each part that may have happened was sent.
    sent: BTreeMap<PartId, Timestamp>,
    /// It has completed; what is undone later ends it again.
    completed: bool,
}

const LIMITS: [ExecutionLimit; 2] = [ExecutionLimit::Deadline, ExecutionLimit::Time];

impl TimeMonitor {
    /// Checks one more record. `plan` is the plan before it, `forward` a forward attempt that is under way.
    pub fn observe(&mut self, record: &EventRecord, plan: &Plan, forward: Option<&PartId>) -> Result<(), String> {
        if self.held_since.is_some() {
            self.check_held(record)?;
        }
        match &record.event {
            Event::AttemptStarted {
                part,
                side: CallSide::Do | CallSide::Fallback,
                by: Driver::Server,
                deadline: Some(deadline),
                ..
            } => {
                let end = LIMITS.into_iter().filter_map(|limit| self.end(plan, limit)).min();
                if end.is_some_and(|end| *deadline > end) {
                    return Err(format!("an attempt of {part} has more time than its execution"));
                }
            }
            Event::AttemptStarted { part, side: CallSide::Undo, .. } => {
                let from = self.sent.get(part).and_then(|sent| Some(sent.plus(wait(plan, part)?)));
                if from.is_some_and(|from| record.at < from) {
                    return Err(format!("{part} was undone while its call may still have been under way"));
                }
            }
            Event::LimitReached { limit, .. } if limit.is_time() => {
                if let Some(part) = forward {
                    return Err(format!("{limit:?} was reached and {part} is still under way"));
                }
                if self.end(plan, *limit).is_none_or(|end| record.at < end) {
                    return Err(format!("{limit:?} was reached before its time"));
                }
            }
            Event::ExecutionEnded { outcome: ExecutionEnding::Completed, .. } if !self.completed => {
                let late = LIMITS.into_iter().find(|limit| self.end(plan, *limit).is_some_and(|end| end <= record.at));
                if let Some(limit) = late {
                    return Err(format!("completed after its {limit:?}"));
                }
            }
            Event::AgentSilent { since, .. } if record.at.since(*since) < plan.agent_timeout => {
                return Err("the agent was called silent before its time".into());
            }
            Event::HoldEnded { frozen, expired, .. } => {
                if let Some(timer) = expired.iter().find(|timer| !self.due.contains(timer)) {
                    return Err(format!("{timer:?} expired, and the hold does not list it"));
                }
                if record.actor.party != ActorKind::Person {
                    return Err("a hold was not ended by a person".into());
                }
                let span = self.held_since.map(|since| record.at.since(since));
                if frozen.is_some() && *frozen != span {
                    return Err(format!("a hold of {span:?} left out {frozen:?}"));
                }
            }
            _ => {}
        }
        self.follow(record, plan);
        Ok(())
    }

    fn check_held(&self, record: &EventRecord) -> Result<(), String> {
        let by_itself = match &record.event {
            Event::AttemptStarted { by: Driver::Server, .. }
            | Event::ApprovalExpired { .. }
            | Event::RetryAbandoned { .. }
            | Event::FailureHandled { .. }
            | Event::LimitReached { .. }
            | Event::AgentSilent { .. }
            | Event::StepsSkipped { .. } => record.actor.party == ActorKind::Rutter && !self.driver_is_agent,
            Event::AttemptFailed { failure, .. } => failure.message.starts_with("no answer "),
            Event::CompensationStarted { .. } => !self.cancelled,
            Event::ExecutionEnded { .. } => !self.cancelled,
            _ => false,
        };
        if by_itself { Err(format!("{} happened while time stood still", record.event.kind())) } else { Ok(()) }
    }

    pub fn is_agent_silent(&self) -> bool {
        self.agent_is_silent
    }

    fn follow(&mut self, record: &EventRecord, plan: &Plan) {
        self.agent_is_silent &= record.actor.party != ActorKind::Agent;
        match &record.event {
            Event::AgentSilent { .. } => self.agent_is_silent = true,
            Event::QuestionAnswered { about: Question::Silence, answer: QuestionAnswer::Continue, .. } => {
                self.agent_is_silent = false;
            }
            Event::AttemptStarted { part, side: CallSide::Do | CallSide::Fallback, .. } => {
                self.sent.insert(part.clone(), record.at);
            }
            Event::AttemptSucceeded { part, .. }
            | Event::AttemptFailed { part, maybe: false, .. }
            | Event::DoubtSettled { part, .. }
            | Event::LateAnswerArrived { part, .. }
            | Event::SettlementCorrected { part, .. } => drop(self.sent.remove(part)),
            Event::ExecutionOpened { driver, .. } => self.driver_is_agent = *driver == Driver::Agent,
            Event::ExecutionStarted {} => self.started_at = Some(record.at),
            Event::HandedOver { to, .. } => {
                self.driver_is_agent = *to == Driver::Agent;
                self.agent_is_silent = false;
            }
            Event::CancelRequested { .. } | Event::Killed { .. } => self.cancelled = true,
            Event::Held { since, due, .. } => {
                self.held_since = Some(*since);
                self.due.clone_from(due);
            }
            Event::HoldEnded { frozen, expired, .. } => {
                self.held_since = None;
                let frozen = frozen.unwrap_or_default();
                for (added, kind) in self.added.iter_mut().zip([DueKind::Deadline, DueKind::Time]) {
                    let keeps_its_time = expired.iter().any(|timer| timer.part.is_none() && timer.what == kind);
                    added.0 += if keeps_its_time { 0 } else { frozen.0 };
                }
            }
            Event::QuestionAnswered { answer: QuestionAnswer::Resolve, .. } => self.sent.clear(),
            Event::QuestionAnswered { about: Question::Limit(limit), answer: QuestionAnswer::Continue, .. } => {
                if let (Some(end), Some(span)) = (self.end(plan, *limit), span(plan, *limit)) {
                    let end = end.max(record.at).plus(span);
                    let own = self.started_at.map(|started| started.plus(span)).unwrap_or_default();
                    self.added[index(*limit)] = end.since(own);
                }
            }
            Event::ExecutionEnded { outcome, .. } => {
                self.held_since = None;
                self.agent_is_silent = false;
                self.completed = *outcome == ExecutionEnding::Completed;
            }
            Event::Replanned { .. } => self.completed = false,
            // Its limits count anew.
            Event::Reopened { .. } => {
                self.completed = false;
                (self.started_at, self.added, self.cancelled) = (Some(record.at), Default::default(), false);
            }
            _ => {}
        }
    }

    fn end(&self, plan: &Plan, limit: ExecutionLimit) -> Option<Timestamp> {
        Some(self.started_at?.plus(span(plan, limit)?).plus(self.added[index(limit)]))
    }
}

/// How long after its call a part that may have happened is undone, at the least.
fn wait(plan: &Plan, part: &PartId) -> Option<Millis> {
    let step = &plan.steps[plan.find(part.step.as_str())?];
    let fallback = step.fallback.iter().map(|fallback| fallback.call.timeout);
    let timeout = fallback.chain([step.call.timeout]).min().map(|timeout| timeout.min(limits::UNDO_WAIT_MAX));
    let wait = step.probe.as_ref().and_then(|probe| probe.settle).or(timeout)?;
    // A program is killed only after its grace.
    let killed_after = |call: &PlannedCall| {
        let grace = plan.tools.get(&call.tool).and_then(|tool| tool.grace);
        grace.map_or(Millis(0), |grace| Millis(call.timeout.0 + grace.0))
    };
    let fallback = step.fallback.iter().map(|fallback| &fallback.call);
    Some(wait.max(fallback.chain([&step.call]).map(killed_after).min().unwrap_or_default()))
}

fn span(plan: &Plan, limit: ExecutionLimit) -> Option<Millis> {
    match limit {
        ExecutionLimit::Deadline => Some(plan.deadline),
        ExecutionLimit::Time => plan.budget.time,
        ExecutionLimit::Calls | ExecutionLimit::Cost | ExecutionLimit::Entries => None,
    }
}

fn index(limit: ExecutionLimit) -> usize {
    usize::from(limit == ExecutionLimit::Time)
}
