//! How an entry of the ledger changes the active conditions.

use super::{ActiveCondition, AlertKind};
use rutter_core::actor::{Actor, ActorKind};
use rutter_core::id::PartId;
use rutter_core::journal::codec::StoredRecord;
use rutter_core::journal::describe::describe;
use rutter_core::journal::event::{AttemptFollowUp, CallSide, Deviation, Event, ExecutionEnding, Question};
use rutter_core::text::cut;

const TEXT_CHARS_MAX: usize = 300;
/// The longest quotation in a text.
const QUOTE_CHARS_MAX: usize = 150;

#[derive(Debug, PartialEq)]
pub enum ConditionChange {
    Raise(ActiveCondition),
    Settle(AlertKind, String),
    /// An agent did something in an execution; if it is the one that was silent, it no longer is.
    Hear(String, Actor),
    /// An execution no longer waits for a changed tool, or for any.
    Leave(Option<String>, String),
    /// The execution was removed.
    Forget(String),
}

pub fn effects(stored: &StoredRecord) -> Vec<ConditionChange> {
    let mut effects = effects_of_event(stored);
    // Whatever the agent that drives does ends its silence.
    if stored.actor.party == ActorKind::Agent {
        effects.push(ConditionChange::Hear(stored.execution.to_string(), stored.actor.clone()));
    }
    effects
}

fn effects_of_event(stored: &StoredRecord) -> Vec<ConditionChange> {
    let teller = ConditionReader { stored, execution: stored.execution.as_str() };
    match &stored.event {
        Event::ExecutionEnded { outcome, .. } => teller.ended(*outcome),
        Event::Killed { .. } => teller.rest(),
        Event::Reopened { .. } => teller.settle_ends(None).collect(),
        Event::AttemptFailed { part, side, then, .. } | Event::AttemptLost { part, side, then, .. } => {
            teller.attempt(part, *side, *then)
        }
        Event::KeyExpired { part, side } => teller.attempt(part, *side, AttemptFollowUp::InDoubt),
        Event::PreparationFailed { part, side: CallSide::Undo, .. }
        | Event::CallForbidden { part, side: CallSide::Undo, .. }
        | Event::RetryAbandoned { part, side: CallSide::Undo, .. } => vec![teller.not_undone(part)],
        Event::DoubtSettled { part, side, happened, then, .. } => {
            let mut effects = vec![teller.settle(AlertKind::InDoubt, part)];
            match (side, happened, then) {
                (CallSide::Undo, false, AttemptFollowUp::GiveUp) => effects.push(teller.not_undone(part)),
                (CallSide::Undo, true, _) => effects.push(teller.settle(AlertKind::CompensationFailed, part)),
                _ => {}
            }
            effects
        }
        Event::AttemptStarted { part, side: CallSide::Undo, .. }
        | Event::AttemptSucceeded { part, side: CallSide::Undo, .. }
        | Event::CompensationRecorded { part, .. }
        | Event::QuestionAnswered { about: Question::Compensation(part), .. } => {
            vec![teller.settle(AlertKind::CompensationFailed, part)]
        }
        Event::DeviationFound { kind: Deviation::SecondEffect, step: Some(step), .. } => {
            vec![teller.raise(AlertKind::SecondEffect, &teller.part(&PartId::whole(step.clone())))]
        }
        // The answer says what becomes of it, or that it was the result that a failed step waited for.
        Event::QuestionAnswered { about: Question::SecondEffect(part) | Question::Item(part), .. } => {
            vec![teller.settle(AlertKind::SecondEffect, &PartId::whole(part.step.clone()))]
        }
        Event::QuestionAnswered { about: Question::Failure(step), .. } => {
            vec![teller.settle(AlertKind::SecondEffect, &PartId::whole(step.clone()))]
        }
        Event::LimitReached { .. } => vec![teller.raise(AlertKind::Budget, teller.execution)],
        Event::QuestionAnswered { about: Question::Limit(_), .. } => {
            vec![ConditionChange::Settle(AlertKind::Budget, teller.execution.to_owned())]
        }
        Event::Held { .. } => vec![teller.raise(AlertKind::ExecutionHeld, teller.execution)],
        Event::HoldEnded { .. } => {
            vec![ConditionChange::Settle(AlertKind::ExecutionHeld, teller.execution.to_owned())]
        }
        Event::AgentSilent { agent, .. } => {
            let text = format!("execution {}: {}", teller.execution, teller.sentence());
            let condition = teller.condition(AlertKind::AgentSilent, teller.execution, text);
            vec![ConditionChange::Raise(ActiveCondition { agent: agent.clone(), ..condition })]
        }
        Event::HandedOver { .. } | Event::QuestionAnswered { about: Question::Silence, .. } => {
            vec![ConditionChange::Settle(AlertKind::AgentSilent, teller.execution.to_owned())]
        }
        Event::ToolDrifted { tool, .. } => {
            let condition = ActiveCondition {
                execution: None,
                text: teller.sentence(),
                members: vec![teller.execution.to_owned()],
                ..teller.condition(AlertKind::ToolChanged, tool.as_str(), String::new())
            };
            vec![ConditionChange::Raise(condition)]
        }
        Event::ToolRestored { tool, .. } | Event::ToolAccepted { tool, .. } => {
            vec![ConditionChange::Leave(Some(tool.to_string()), teller.execution.to_owned())]
        }
        Event::Replanned { .. } => vec![ConditionChange::Leave(None, teller.execution.to_owned())],
        Event::ExecutionsRemoved { executions, .. } => {
            executions.iter().map(|removed| ConditionChange::Forget(removed.execution.to_string())).collect()
        }
        _ => Vec::new(),
    }
}

struct ConditionReader<'a> {
    stored: &'a StoredRecord,
    execution: &'a str,
}

impl ConditionReader<'_> {
    fn ended(&self, outcome: ExecutionEnding) -> Vec<ConditionChange> {
        let mut effects = self.rest();
        let raised = match outcome {
            ExecutionEnding::Failed => Some(AlertKind::ExecutionFailed),
            ExecutionEnding::Partial => Some(AlertKind::ExecutionPartial),
            ExecutionEnding::Compensated => Some(AlertKind::ExecutionCompensated),
            ExecutionEnding::Completed | ExecutionEnding::Cancelled => None,
        };
        effects.extend(self.settle_ends(raised));
        effects.extend(raised.map(|kind| self.raise(kind, self.execution)));
        effects
    }

    /// An earlier end in another way is over.
    fn settle_ends(&self, except: Option<AlertKind>) -> impl Iterator<Item = ConditionChange> {
        let others = AlertKind::ENDS.into_iter().filter(move |kind| Some(*kind) != except);
        others.map(|kind| ConditionChange::Settle(kind, self.execution.to_owned()))
    }

    /// Conditions that end when the execution ends.
    fn rest(&self) -> Vec<ConditionChange> {
        let execution = self.execution.to_owned();
        let settle = |kind| ConditionChange::Settle(kind, execution.clone());
        let settled = [AlertKind::Budget, AlertKind::AgentSilent, AlertKind::ExecutionHeld].map(settle);
        settled.into_iter().chain([ConditionChange::Leave(None, execution.clone())]).collect()
    }

    fn attempt(&self, part: &PartId, side: CallSide, then: AttemptFollowUp) -> Vec<ConditionChange> {
        match (side, then) {
            (CallSide::Probe, _) => Vec::new(),
            (_, AttemptFollowUp::InDoubt) => vec![self.raise(AlertKind::InDoubt, &self.part(part))],
            (CallSide::Undo, AttemptFollowUp::GiveUp) => vec![self.not_undone(part)],
            _ => Vec::new(),
        }
    }

    fn not_undone(&self, part: &PartId) -> ConditionChange {
        self.raise(AlertKind::CompensationFailed, &self.part(part))
    }

    fn raise(&self, concern: AlertKind, subject: &str) -> ConditionChange {
        ConditionChange::Raise(self.condition(
            concern,
            subject,
            format!("execution {}: {}", self.execution, self.sentence()),
        ))
    }

    /// The event as a sentence.
    fn sentence(&self) -> String {
        let StoredRecord { event, actor, at, .. } = self.stored;
        describe(event).by(actor).at(*at).sentence_within(QUOTE_CHARS_MAX)
    }

    fn settle(&self, concern: AlertKind, part: &PartId) -> ConditionChange {
        ConditionChange::Settle(concern, self.part(part))
    }

    fn part(&self, part: &PartId) -> String {
        format!("{}/{part}", self.execution)
    }

    fn condition(&self, concern: AlertKind, subject: &str, text: String) -> ActiveCondition {
        ActiveCondition {
            concern,
            subject: subject.to_owned(),
            since: self.stored.at.into(),
            execution: Some(self.execution.to_owned()),
            plan: None,
            text: cut(&text, TEXT_CHARS_MAX),
            measure: 0,
            members: Vec::new(),
            agent: None,
        }
    }
}
