//! The promises about tools during calls: tickets and questions.

use rutter_core::actor::ActorKind;
use rutter_core::execution::input::ToolCall;
use rutter_core::id::PartId;
use rutter_core::journal::event::{CallSide, Event, EventRecord};
use rutter_core::plan::Plan;
use serde_json::Value;
use std::collections::BTreeMap;

/// Which calls may be made, and how; which questions are open, and who may answer them.
#[derive(Clone, Debug, Default)]
pub struct CallMonitor {
    /// Running attempts, with whether the call itself was made.
    running: BTreeMap<PartId, (CallSide, u32, bool)>,
    tickets: BTreeMap<PartId, String>,
    /// Open questions, with what continues their calls, if anything does.
    asking: BTreeMap<PartId, Option<Value>>,
    /// What continues a call from its newest question, also once that is answered.
    continuations: BTreeMap<PartId, Value>,
}

impl CallMonitor {
    /// A call is about to be made: a new one only once, and never after a ticket was given or a question was asked.
    pub fn called(&mut self, call: &ToolCall) -> Result<(), String> {
        let part = &call.part;
        let Some((_, _, made)) =
            self.running.get_mut(part).filter(|(side, attempt, _)| (*side, *attempt) == (call.side, call.attempt))
        else {
            return Err(format!("attempt {} of {part} was called without a record", call.attempt));
        };
        if let Some(used) = call.continuation.as_deref() {
            let is_given = self.continuations.get(part) == Some(used);
            return is_given
                .then_some(())
                .ok_or_else(|| format!("{part} was continued with {used}, which it was not given"));
        }
        match (self.tickets.get(part), call.ticket.as_deref()) {
            (None, None) if !*made => {
                *made = true;
                Ok(())
            }
            (Some(given), Some(used)) if given == used => Ok(()),
            (Some(_), None) => Err(format!("{part} was called again without its ticket")),
            (given, used) => Err(format!("{part} was called again, with ticket {used:?} for {given:?}")),
        }
    }

    /// After a crash every call with a ticket or a kept question is resumed.
    pub fn gone_on_with(&self, calls: &[ToolCall]) -> Result<(), String> {
        let is_called = |part: &PartId| calls.iter().any(|call| call.part == *part);
        let kept = self.asking.iter().filter(|(_, continuation)| continuation.is_some()).map(|(part, _)| part);
        match self.tickets.keys().chain(kept).find(|part| !is_called(part)) {
            Some(part) => Err(format!("{part} has a ticket or a kept question and is not resumed")),
            None => Ok(()),
        }
    }

    pub fn observe(&mut self, record: &EventRecord, plan: &Plan) -> Result<(), String> {
        match &record.event {
            Event::AttemptStarted { part, side, attempt, .. } => {
                self.close(part);
                self.running.insert(part.clone(), (*side, *attempt, false));
            }
            Event::AttemptAccepted { part, ticket, .. } => {
                if !self.running.contains_key(part) {
                    return Err(format!("{part} got a ticket and is not running"));
                }
                if self.tickets.insert(part.clone(), ticket.clone()).is_some() {
                    return Err(format!("{part} got a second ticket"));
                }
            }
            Event::ToolAsked { part, continuation, .. } => {
                let continuation = continuation.as_ref().and_then(|kept| kept.value()).map(|kept| (**kept).clone());
                self.continuations.remove(part);
                self.continuations.extend(continuation.clone().map(|continuation| (part.clone(), continuation)));
                let is_first = self.asking.insert(part.clone(), continuation).is_none();
                if !self.running.contains_key(part) || !is_first {
                    return Err(format!("the tool of {part} asks while it is not called, or twice at once"));
                }
            }
            Event::ToolAnswered { part, answer, .. } => {
                if self.asking.remove(part).is_none() {
                    return Err(format!("the tool of {part} was answered and did not ask"));
                }
                let step = plan.find(part.step.as_str()).map(|step| &plan.steps[step]);
                let approved = step.is_some_and(|step| step.approval.is_some());
                if approved && record.actor.party == ActorKind::Agent {
                    return Err(format!("an agent answered the tool of {part}, which needs approval"));
                }
                let fits = |answer: &rutter_core::journal::payload::EventPayload| {
                    answer.value().is_some_and(|answer| answer["port"].is_u64())
                };
                if answer.as_ref().is_some_and(|answer| !fits(answer)) {
                    return Err(format!("the tool of {part} was answered what it did not ask for"));
                }
            }
            Event::AttemptLost { part, .. } if self.tickets.contains_key(part) => {
                return Err(format!("{part} was given up as lost although it has a ticket"));
            }
            Event::AttemptLost { part, .. } if self.asking.get(part).is_some_and(Option::is_some) => {
                return Err(format!("{part} was given up as lost although its question can still be answered"));
            }
            Event::AttemptSucceeded { part, .. }
            | Event::AttemptFailed { part, .. }
            | Event::AttemptLost { part, .. }
            | Event::DoubtSettled { part, .. } => self.close(part),
            Event::Killed { .. } => *self = CallMonitor::default(),
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, part: &PartId) {
        self.running.remove(part);
        self.tickets.remove(part);
        self.asking.remove(part);
        self.continuations.remove(part);
    }
}
