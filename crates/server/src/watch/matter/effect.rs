//! What an entry of the ledger means for the matters there are.

use super::{Concern, Matter};
use crate::words::cut;
use rutter_core::journal::codec::Stored;
use rutter_core::journal::event::{EndedAs, Event, Question, Side, Then};
use rutter_core::tool::Failure;

const TEXT_CHARS_MAX: usize = 300;

#[derive(Debug, PartialEq)]
pub(in crate::watch) enum Effect {
    Raise(Matter),
    Settle(Concern, String),
    /// A tool that changed, or any that did, concerns this execution no longer.
    Leave(Option<String>, String),
    /// The execution is gone.
    Forget(String),
}

pub(in crate::watch) fn effects(stored: &Stored) -> Vec<Effect> {
    let teller = Teller { stored, execution: stored.execution.as_str() };
    match &stored.event {
        Event::ExecutionEnded { outcome, reason, .. } => teller.ended(*outcome, reason),
        Event::Killed { .. } => teller.rest(),
        Event::AttemptFailed { part, side, failure, then, .. } => {
            teller.attempt(part, *side, *then, &failure.to_string())
        }
        Event::AttemptLost { part, side, then, .. } => {
            teller.attempt(part, *side, *then, "nobody is left who could say how it ended")
        }
        Event::PreparationFailed { part, side: Side::Undo, failure }
        | Event::RetryAbandoned { part, side: Side::Undo, failure } => vec![teller.not_undone(part, failure)],
        Event::DoubtSettled { part, side, happened, reason, then, .. } => {
            let mut effects = vec![teller.settle(Concern::InDoubt, part)];
            match (side, happened, then) {
                (Side::Undo, false, Then::GiveUp) => effects.push(teller.raise_undo(part, reason)),
                (Side::Undo, true, _) => effects.push(teller.settle(Concern::CompensationFailed, part)),
                _ => {}
            }
            effects
        }
        Event::AttemptStarted { part, side: Side::Undo, .. }
        | Event::AttemptSucceeded { part, side: Side::Undo, .. }
        | Event::CompensationRecorded { part, .. }
        | Event::QuestionAnswered { about: Question::Compensation(part), .. } => {
            vec![teller.settle(Concern::CompensationFailed, part)]
        }
        Event::LimitReached { limit, .. } => {
            let limit = serde_json::to_value(limit).unwrap_or_default();
            let text = format!("reached its limit of {}", limit.as_str().unwrap_or("something"));
            vec![teller.raise(Concern::Budget, teller.execution, &text)]
        }
        Event::QuestionAnswered { about: Question::Limit(_), .. } => {
            vec![Effect::Settle(Concern::Budget, teller.execution.to_owned())]
        }
        Event::ToolDrifted { tool, .. } => {
            let matter = Matter {
                execution: None,
                text: format!("the tool {tool} is not the one plans were checked with"),
                members: vec![teller.execution.to_owned()],
                ..teller.matter(Concern::ToolChanged, tool.as_str(), "")
            };
            vec![Effect::Raise(matter)]
        }
        Event::ToolAccepted { tool, .. } => {
            vec![Effect::Leave(Some(tool.to_string()), teller.execution.to_owned())]
        }
        Event::Replanned { .. } => vec![Effect::Leave(None, teller.execution.to_owned())],
        Event::ExecutionsRemoved { executions, .. } => {
            executions.iter().map(|removed| Effect::Forget(removed.execution.to_string())).collect()
        }
        _ => Vec::new(),
    }
}

struct Teller<'a> {
    stored: &'a Stored,
    execution: &'a str,
}

impl Teller<'_> {
    fn ended(&self, outcome: EndedAs, reason: &str) -> Vec<Effect> {
        let mut effects = self.rest();
        effects.push(match outcome {
            EndedAs::Failed => {
                let reason =
                    if reason.is_empty() { "failed".to_owned() } else { format!("failed: {reason}") };
                self.raise(Concern::ExecutionFailed, self.execution, &reason)
            }
            EndedAs::Completed | EndedAs::Partial | EndedAs::Cancelled | EndedAs::Compensated => {
                Effect::Settle(Concern::ExecutionFailed, self.execution.to_owned())
            }
        });
        effects
    }

    /// What no longer matters once an execution has come to rest.
    fn rest(&self) -> Vec<Effect> {
        let execution = self.execution.to_owned();
        vec![Effect::Settle(Concern::Budget, execution.clone()), Effect::Leave(None, execution)]
    }

    fn attempt(&self, part: &impl ToString, side: Side, then: Then, why: &str) -> Vec<Effect> {
        match (side, then) {
            (Side::Probe, _) => Vec::new(),
            (_, Then::InDoubt) => {
                let text = format!("nobody knows whether step {} took effect: {why}", part.to_string());
                vec![self.raise(Concern::InDoubt, &self.part(part), &text)]
            }
            (Side::Undo, Then::GiveUp) => vec![self.raise_undo(part, why)],
            _ => Vec::new(),
        }
    }

    fn not_undone(&self, part: &impl ToString, failure: &Failure) -> Effect {
        self.raise_undo(part, &failure.to_string())
    }

    fn raise_undo(&self, part: &impl ToString, why: &str) -> Effect {
        let text = format!("step {} could not be undone: {why}", part.to_string());
        self.raise(Concern::CompensationFailed, &self.part(part), &text)
    }

    fn raise(&self, concern: Concern, subject: &str, text: &str) -> Effect {
        Effect::Raise(self.matter(concern, subject, &format!("execution {}: {text}", self.execution)))
    }

    fn settle(&self, concern: Concern, part: &impl ToString) -> Effect {
        Effect::Settle(concern, self.part(part))
    }

    fn part(&self, part: &impl ToString) -> String {
        format!("{}/{}", self.execution, part.to_string())
    }

    fn matter(&self, concern: Concern, subject: &str, text: &str) -> Matter {
        Matter {
            concern,
            subject: subject.to_owned(),
            since: self.stored.at.into(),
            execution: Some(self.execution.to_owned()),
            plan: None,
            text: cut(text, TEXT_CHARS_MAX),
            measure: 0,
            members: Vec::new(),
        }
    }
}
