//! Calls on their way: what comes back from them, when, and what is said until then.

use super::voyage::Voyage;
use super::world::{self, Answer, Reply};
use rutter_core::execution::input::{Input, ToolCall};
use rutter_core::journal::event::{Event, Record};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::Outcome;
use std::sync::Arc;

/// A call on its way: what will be answered, and when.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub call: ToolCall,
    pub at: Option<Timestamp>,
    pub outcome: Option<Outcome>,
    /// The tool goes on only after it was answered.
    pub asks: bool,
    ticket: Option<Arc<str>>,
}

impl Voyage<'_> {
    /// Makes the calls; false if the process died among them.
    pub(super) fn call(&mut self, calls: &[ToolCall]) -> Result<bool, String> {
        for call in calls {
            self.monitor.talk.called(call)?;
            self.tally.resumed += u64::from(call.ticket.is_some());
            let Reply { ticket, answer } = self.world.call(call, self.now, self.weather, &mut self.chance);
            if self.crashes() {
                self.crash()?;
                return Ok(false);
            }
            let (part, side, attempt) = (call.part.clone(), call.side, call.attempt);
            self.inbox.extend(ticket.as_ref().map(|ticket| Input::Accepted {
                part: part.clone(),
                side,
                attempt,
                ticket: ticket.to_string(),
            }));
            let (at, outcome, asks) = match answer {
                Answer::Now(outcome) => {
                    self.inbox.push(returned(call, outcome));
                    continue;
                }
                Answer::Later(at, outcome) => (Some(at), Some(outcome), false),
                Answer::Never => (None, None, false),
                Answer::Asks => {
                    let (message, schema) = ("which port?".into(), Arc::new(world::asked_for()));
                    self.inbox.push(Input::ToolAsks { part, side, attempt, message, schema });
                    (None, None, true)
                }
            };
            let ticket = ticket.or_else(|| call.ticket.clone());
            self.flights.push(Flight { call: call.clone(), at, outcome, asks, ticket });
        }
        Ok(true)
    }

    /// Tells tools that asked what was said, now that it is on record.
    pub(super) fn pass_on(&mut self, records: &[Record]) {
        for record in records {
            let Event::ToolAnswered { part, side, attempt, answer, .. } = &record.event else { continue };
            let is_it = |flight: &&mut Flight| {
                let call = &flight.call;
                flight.asks && (&call.part, &call.side, &call.attempt) == (part, side, attempt)
            };
            let Some(flight) = self.flights.iter_mut().find(is_it) else { continue };
            let (call, ticket) = (&flight.call, flight.ticket.as_ref());
            let outcome = self.world.answered(call, ticket, answer.is_some(), &mut self.chance);
            flight.asks = false;
            flight.at = Some(self.now.plus(Millis(self.chance.below(20_000))));
            flight.outcome = Some(outcome);
        }
    }

    /// Answers whose time has come; calls nobody wants any more are cancelled.
    pub(super) fn land(&mut self) {
        let (now, execution) = (self.now, &self.execution);
        let mut landed = Vec::new();
        let chance = &mut self.chance;
        self.flights.retain(|flight| {
            let unwanted = execution.is_unwanted(&flight.call.part, flight.call.side, flight.call.attempt);
            let lands = flight.at.is_some_and(|at| at <= now) || (unwanted && chance.percent(50));
            if lands && let Some(outcome) = &flight.outcome {
                landed.push(returned(&flight.call, outcome.clone()));
            }
            !lands
        });
        self.inbox.extend(landed);
    }
}

fn returned(call: &ToolCall, outcome: Outcome) -> Input {
    Input::Returned { part: call.part.clone(), side: call.side, attempt: call.attempt, outcome }
}
