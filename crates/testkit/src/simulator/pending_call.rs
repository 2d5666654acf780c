//! Pending calls: their responses, tickets and questions.

use super::simulated_run::SimulatedRun;
use super::world::{self, SimulatedAnswer, SimulatedReply};
use rutter_core::execution::input::{ExecutionInput, ToolCall};
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use std::sync::Arc;

/// A pending call: its response, and when it arrives.
#[derive(Clone, Debug)]
pub(super) struct PendingCall {
    pub call: ToolCall,
    pub at: Option<Timestamp>,
    pub outcome: Option<CallOutcome>,
    /// The tool continues only after its question was answered.
    pub asks: bool,
    ticket: Option<Arc<str>>,
}

impl SimulatedRun<'_> {
    /// Makes the calls; false if the process died during them.
    pub(super) fn call(&mut self, calls: &[ToolCall]) -> Result<bool, String> {
        for call in calls {
            if !self.execution.is_under_way(&call.part, call.side, call.attempt) {
                self.withdraw(call);
                continue;
            }
            if let Some(failure) = self.reason_not_to_call(call) {
                self.inbox.push(returned(call, call.not_made(failure)));
                continue;
            }
            self.monitor.talk.called(call)?;
            self.tally.resumed += u64::from(call.ticket.is_some());
            let SimulatedReply { ticket, answer } =
                self.world.call(call, self.now, self.failure_rates, &mut self.chance);
            if self.crashes() {
                self.crash()?;
                return Ok(false);
            }
            let (part, side, attempt) = (call.part.clone(), call.side, call.attempt);
            self.inbox.extend(ticket.as_ref().map(|ticket| ExecutionInput::Accepted {
                part: part.clone(),
                side,
                attempt,
                ticket: ticket.to_string(),
            }));
            let (at, outcome, asks) = match answer {
                SimulatedAnswer::Now(outcome) => {
                    self.inbox.push(returned(call, outcome));
                    continue;
                }
                SimulatedAnswer::Later(at, outcome) => (Some(at), Some(outcome), false),
                SimulatedAnswer::Never => (None, None, false),
                SimulatedAnswer::Asks => {
                    let (message, schema) = ("which port?".into(), Arc::new(world::asked_for()));
                    self.inbox.push(ExecutionInput::ToolAsks { part, side, attempt, message, schema });
                    (None, None, true)
                }
            };
            let ticket = ticket.or_else(|| call.ticket.clone());
            self.pending_calls.push(PendingCall { call: call.clone(), at, outcome, asks, ticket });
        }
        Ok(true)
    }

    /// A later decision of the same append has closed the attempt of the call. Of a call under a ticket, which was sent
    /// before a crash, nothing new is known.
    fn withdraw(&mut self, call: &ToolCall) {
        self.tally.withdrawn += 1;
        if call.ticket.is_none() {
            let failure = ToolFailure::new(FailureCategory::Cancelled, "closed before it was sent");
            self.inbox.push(returned(call, CallOutcome::NotDone(failure)));
        }
    }

    /// Why a call is not made in the end: its tool has changed, or the lease is over.
    fn reason_not_to_call(&mut self, call: &ToolCall) -> Option<ToolFailure> {
        if !self.is_wild {
            return None;
        }
        self.world.change_a_tool(&mut self.chance);
        let failure = |message| Some(ToolFailure::new(FailureCategory::Unavailable, message));
        if self.world.has_changed(call) && call.ticket.is_none() {
            return failure("no longer the tool the plan was checked with");
        }
        if self.chance.percent(2) { failure("the lease has ended") } else { None }
    }

    /// Passes recorded answers on to the tools that asked.
    pub(super) fn pass_on(&mut self, records: &[EventRecord]) {
        for record in records {
            let Event::ToolAnswered { part, side, attempt, answer, .. } = &record.event else { continue };
            let is_it = |pending: &&mut PendingCall| {
                let call = &pending.call;
                pending.asks && (&call.part, &call.side, &call.attempt) == (part, side, attempt)
            };
            let Some(pending) = self.pending_calls.iter_mut().find(is_it) else { continue };
            let (call, ticket) = (&pending.call, pending.ticket.as_ref());
            let outcome = self.world.answered(call, ticket, answer.is_some(), &mut self.chance);
            pending.asks = false;
            pending.at = Some(self.now.plus(Millis(self.chance.below(20_000))));
            pending.outcome = Some(outcome);
        }
    }

    /// Delivers due responses; calls that are no longer wanted are cancelled.
    pub(super) fn deliver_next(&mut self) {
        let (now, execution) = (self.now, &self.execution);
        let mut ended = Vec::new();
        let chance = &mut self.chance;
        self.pending_calls.retain(|call| {
            let unwanted = execution.is_unwanted(&call.call.part, call.call.side, call.call.attempt);
            let lands = call.at.is_some_and(|at| at <= now) || (unwanted && chance.percent(50));
            if lands && let Some(outcome) = &call.outcome {
                ended.push(returned(&call.call, outcome.clone()));
            }
            !lands
        });
        self.inbox.extend(ended);
    }
}

fn returned(call: &ToolCall, outcome: CallOutcome) -> ExecutionInput {
    ExecutionInput::Returned { part: call.part.clone(), side: call.side, attempt: call.attempt, outcome }
}
