//! What a journal record means, as a line a person reads.

use super::teller::{Progress, Sign};
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{DoubtSource, Event, Record, Side, Then};
use rutter_core::journal::payload::Payload;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Remembers which call an attempt made, since its end names only the attempt.
#[derive(Debug, Default)]
pub(crate) struct Narrator {
    calls: BTreeMap<(PartId, Side), String>,
}

impl Narrator {
    /// The line for a record, if there is anything to say.
    pub(crate) fn line(&mut self, record: &Record) -> Option<Progress> {
        let (sign, who, words) = match &record.event {
            Event::AttemptStarted { part, side, tool, parameters, .. } => {
                let call = match side {
                    Side::Undo => format!("{tool}({})", first(parameters)),
                    Side::Do | Side::Fallback | Side::Probe => tool.to_string(),
                };
                self.calls.insert((part.clone(), *side), call);
                return None;
            }
            Event::AttemptSucceeded { part, side, result, .. } => {
                let words = format!("{} answered {}", self.call(part, *side), first(result));
                let sign = match side {
                    Side::Do | Side::Fallback => Sign::Done,
                    Side::Undo => Sign::Undone,
                    Side::Probe => Sign::Doubt,
                };
                (sign, part.to_string(), words)
            }
            Event::AttemptFailed { part, side, failure, then, .. } => {
                let then = match then {
                    Then::RetryAt(when) => format!("; again in {}", when.since(record.at)),
                    Then::InDoubt => "; in doubt".to_owned(),
                    Then::FallBack => "; falls back".to_owned(),
                    Then::GiveUp => String::new(),
                };
                (Sign::Failed, part.to_string(), format!("{}: {failure}{then}", self.call(part, *side)))
            }
            Event::AttemptLost { part, side, then, .. } => {
                let then = match then {
                    Then::InDoubt => "it is in doubt, and not repeated",
                    _ => "it may be repeated",
                };
                let words = format!("{} was sent and has no answer: {then}", self.call(part, *side));
                (Sign::Doubt, part.to_string(), words)
            }
            Event::DoubtSettled { part, happened, source, reason, .. } => {
                let who = match source {
                    DoubtSource::Probe => "the probe".to_owned(),
                    DoubtSource::LateAnswer => "a late answer".to_owned(),
                    DoubtSource::Person => format!("{} ({reason})", record.actor),
                };
                let what = if *happened { "it happened" } else { "it did not happen" };
                let sign = if *happened { Sign::Done } else { Sign::Failed };
                (sign, part.to_string(), format!("{what}, says {who}"))
            }
            Event::ApprovalRequested { part, tool, parameters, .. } => {
                let words = format!("{tool}({}) needs a person's yes", first(parameters));
                (Sign::Doubt, part.to_string(), words)
            }
            Event::ApprovalGranted { part, call, .. } => {
                (Sign::Done, part.to_string(), format!("{} approves call {}", record.actor, call.short()))
            }
            Event::FailureHandled { step, action, cancelled, .. } => {
                let cancelled = match names(cancelled).as_str() {
                    "" => String::new(),
                    names => format!(": {names} cancelled"),
                };
                (
                    Sign::Note,
                    step.to_string(),
                    format!("failed for good; its policy: {}{cancelled}", word(action)),
                )
            }
            Event::DeviationFound { kind, step, description } => {
                let who = step.as_ref().map(ToString::to_string).unwrap_or_default();
                (Sign::Failed, who, format!("not as planned, {}: {description}", word(kind)))
            }
            Event::HandedOver { to, reason } => (Sign::Note, word(to), format!("takes over: {reason}")),
            _ => return None,
        };
        Some(Progress { sign, who, words })
    }

    fn call(&self, part: &PartId, side: Side) -> &str {
        self.calls.get(&(part.clone(), side)).map_or("the call", String::as_str)
    }
}

/// The first field of a payload, which for these tools is the one that matters.
fn first(payload: &Payload) -> String {
    let value = payload.value().map_or(&Value::Null, |value| value);
    match value.as_object().and_then(|fields| fields.iter().next()) {
        Some((name, Value::String(text))) => format!("{name}: {text}"),
        Some((name, value)) => format!("{name}: {value}"),
        None => value.to_string(),
    }
}

fn names(steps: &[StepId]) -> String {
    steps.iter().map(StepId::as_str).collect::<Vec<_>>().join(", ")
}

/// A word as journals spell it, with spaces.
fn word(word: &impl serde::Serialize) -> String {
    json!(word).as_str().unwrap_or_default().replace('_', " ")
}
