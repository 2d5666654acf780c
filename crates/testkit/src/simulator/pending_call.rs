//! Pending calls: their responses, tickets and questions.

use super::late::returned;
use super::simulated_run::SimulatedRun;
use super::world::{self, SimulatedAnswer, SimulatedReply};
use rutter_core::execution::input::{ExecutionInput, ToolCall};
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{CallOutcome, Elicitation, FailureCategory, ToolFailure};
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
            if let Some(input) = self.reason_not_to_call(call) {
                self.inbox.push(input);
                continue;
            }
            self.monitor.talk.called(call)?;
            self.tally.resumed += u64::from(call.is_resumed());
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
                    if let Some(late) = &mut self.world.late {
                        late.repeat_answer(call, &outcome, self.now, &mut self.chance);
                    }
                    self.inbox.push(returned(call, outcome));
                    continue;
                }
                SimulatedAnswer::Later(at, outcome) => (Some(at), Some(outcome), false),
                SimulatedAnswer::Never => (None, None, false),
                SimulatedAnswer::Asks(_) if let Some(answer) = self.early_answers.remove(&(part.clone(), attempt)) => {
                    // It was recorded before the resumed call could ask for it.
                    let outcome = self.world.answered(call, None, answer, self.now, &mut self.chance);
                    self.inbox.push(returned(call, outcome));
                    continue;
                }
                SimulatedAnswer::Asks(continuation) => {
                    let (message, schema) = ("which port?".into(), Arc::new(world::asked_for()));
                    let question = Elicitation { message, schema, continuation };
                    if !self.execution.is_asked(&part, side, attempt, &question) {
                        self.inbox.push(ExecutionInput::ToolAsks { part, side, attempt, question });
                    }
                    (None, None, true)
                }
            };
            let ticket = ticket.or_else(|| call.ticket.clone());
            self.pending_calls.push(PendingCall { call: call.clone(), at, outcome, asks, ticket });
        }
        Ok(true)
    }

    /// A later decision of the same append has closed the attempt of the call. Of a resumed call, which was sent before
    /// a crash, nothing new is known.
    fn withdraw(&mut self, call: &ToolCall) {
        self.tally.withdrawn += 1;
        if !call.is_resumed() {
            let failure = ToolFailure::new(FailureCategory::Cancelled, "closed before it was sent");
            self.inbox.push(returned(call, CallOutcome::NotDone(failure)));
        }
    }

    /// Why a call is not made in the end: its tool has changed, or the lease is over.
    fn reason_not_to_call(&mut self, call: &ToolCall) -> Option<ExecutionInput> {
        if !self.is_wild {
            return None;
        }
        self.world.change_a_tool(&mut self.chance);
        if let Some(found) = self.world.changed(call).filter(|_| !call.is_resumed()) {
            let (part, side, attempt, tool) = (call.part.clone(), call.side, call.attempt, call.tool.clone());
            return Some(ExecutionInput::Withdraw { part, side, attempt, tool, found });
        }
        let ended =
            || returned(call, call.not_made(ToolFailure::new(FailureCategory::Unavailable, "the lease has ended")));
        self.chance.percent(2).then(ended)
    }

    /// Passes recorded answers on to the tools that asked.
    pub(super) fn pass_on(&mut self, records: &[EventRecord]) {
        for record in records {
            let Event::ToolAnswered { part, side, attempt, answer, .. } = &record.event else { continue };
            let is_it = |pending: &&mut PendingCall| {
                let call = &pending.call;
                pending.asks && (&call.part, &call.side, &call.attempt) == (part, side, attempt)
            };
            let Some(pending) = self.pending_calls.iter_mut().find(is_it) else {
                self.early_answers.insert((part.clone(), *attempt), answer.is_some());
                continue;
            };
            let (call, ticket) = (&pending.call, pending.ticket.as_ref());
            let outcome = self.world.answered(call, ticket, answer.is_some(), self.now, &mut self.chance);
            pending.asks = false;
            pending.at = Some(self.now.plus(Millis(self.chance.below(20_000))));
            pending.outcome = Some(outcome);
        }
    }

    /// Delivers due responses; calls that are no longer wanted are cancelled.
    pub(super) fn deliver_next(&mut self) {
        let (now, execution) = (self.now, &self.execution);
        self.world.land(now);
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
        if let Some(late) = &mut self.world.late {
            self.inbox.extend(late.take_answers(now));
        }
    }
}
