//! One tool call in flight: sent if it still may be, and its outcome returned to the loop.

use crate::active_executions::{CallMessage, CallReport, LoopMessage};
use crate::command::{CommandBody, CommandEnvelope, LateReturn};
use crate::shared::EngineShared;
use crate::update::{ExecutionUpdate, UpdateContent};
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::ToolCall;
use rutter_core::id::{PartId, ToolName};
use rutter_core::journal::event::CallSide;
use rutter_core::port;
use rutter_core::port::journal::NewCommand;
use rutter_core::port::tools::{
    CallPermit, CallReporter, CallReturn, PortFuture, ToolCallId, ToolCallRequest, ToolProgress,
};
use rutter_core::tool::Elicitation;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::Value;
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

pub(crate) struct CallEnded {
    pub(crate) part: PartId,
    pub(crate) side: CallSide,
    pub(crate) attempt: u32,
    pub(crate) tool: ToolName,
    pub(crate) returned: CallReturn,
}

pub(crate) async fn run_call(
    shared: Arc<EngineShared>,
    identity: ExecutionIdentity,
    call: ToolCall,
    permit: CallPermit,
) -> CallEnded {
    let now = shared.clock.now();
    let execution = identity.execution.clone();
    let not_made = reason_not_to_send(&shared, call.deadline.since(now).0).map(|failure| call.not_made(failure));
    let ToolCall { part, side, attempt, tool, definition, parameters, key, deadline, ticket, continuation } = call;
    let returned = match not_made {
        Some(outcome) => CallReturn::Outcome(outcome),
        None => {
            let id = ToolCallId { identity, part: part.clone(), side, attempt };
            let reporter = Arc::new(LoopReporter { shared: Arc::downgrade(&shared), call: id.clone() });
            let call = ToolCallRequest {
                id,
                tool: tool.clone(),
                definition,
                parameters,
                key,
                timeout: deadline.since(now),
                now,
                ticket: ticket.map(|ticket| ticket.to_string()),
                continuation,
                reporter,
            };
            shared.tools.call(call, permit).await
        }
    };
    let elapsed_ms = shared.clock.now().since(now).0;
    let (outcome, code) = match &returned {
        CallReturn::Outcome(CallOutcome::Done { .. }) => ("done", None),
        CallReturn::Outcome(CallOutcome::NotDone(failure)) => ("not done", Some(failure.category.as_str())),
        CallReturn::Outcome(CallOutcome::Maybe(failure)) => ("maybe", Some(failure.category.as_str())),
        CallReturn::Drifted { .. } => ("drifted", None),
    };
    let worker = &shared.options.worker;
    tracing::info!(
        %execution, step = %part, attempt, side = ?side, %tool, %worker, elapsed_ms, outcome, error.code = code,
        "attempt"
    );
    CallEnded { part, side, attempt, tool, returned }
}

/// A call that was decided but not made: a later decision of the same append closed its attempt.
pub(crate) fn withdrawn(call: ToolCall) -> CallEnded {
    let failure = ToolFailure::new(FailureCategory::Cancelled, "it was closed before it could be sent");
    let returned = CallReturn::Outcome(call.not_made(failure));
    let ToolCall { part, side, attempt, tool, .. } = call;
    CallEnded { part, side, attempt, tool, returned }
}

/// Why the call must not be sent. Checked at the last moment: the process may have been suspended.
fn reason_not_to_send(shared: &EngineShared, left_ms: u64) -> Option<ToolFailure> {
    if shared.lease_has_ended() {
        let message = "the lease ended before the call could be sent";
        return Some(ToolFailure::new(FailureCategory::Unavailable, message));
    }
    let message = "its deadline passed before it could be sent";
    (left_ms == 0).then(|| ToolFailure::new(FailureCategory::Timeout, message))
}

/// Forwards the reports of a tool to the loop of its execution. A connection keeps it for as long as a late answer may
/// come, which must not keep the engine alive.
struct LoopReporter {
    shared: Weak<EngineShared>,
    call: ToolCallId,
}

impl LoopReporter {
    /// Returns the report if the execution is not in memory. Then a reply channel closes, and the waiting tool notices.
    fn send(&self, call_message: CallMessage) -> Option<(Arc<EngineShared>, CallReport)> {
        let shared = self.shared.upgrade()?;
        let ToolCallId { identity, part, side, attempt } = self.call.clone();
        let report = LoopMessage::Report(CallReport { part, side, attempt, message: call_message });
        match shared.active_executions.send(&identity, report) {
            Err(LoopMessage::Report(report)) => Some((shared, report)),
            _ => None,
        }
    }
}

/// Stores a late answer of an execution that is not in memory as a command of the engine itself.
async fn store_late(shared: Arc<EngineShared>, identity: ExecutionIdentity, answer: LateReturn) {
    let execution = identity.execution.clone();
    let envelope = CommandEnvelope { key: None, seen: None, proof: None, body: CommandBody::Late(answer) };
    let stored = match serde_json::to_vec(&envelope) {
        Ok(bytes) => {
            let (actor, at) = (Actor::rutter(), shared.clock.now());
            shared.journal.enqueue(NewCommand { identity, request: None, actor, at, bytes }).await.map(drop)
        }
        Err(error) => Err(port::Error::Invalid(error.to_string())),
    };
    match stored {
        Ok(()) => shared.recheck.notify_one(),
        Err(error) => tracing::warn!(%execution, "a late answer of a tool could not be stored: {error}"),
    }
}

impl CallReporter for LoopReporter {
    fn accepted(&self, ticket: String) -> PortFuture<'_, ()> {
        let (recorded, done) = oneshot::channel();
        drop(self.send(CallMessage::Accepted { ticket, recorded }));
        Box::pin(async move { done.await.unwrap_or_default() })
    }

    fn ask(&self, question: Elicitation) -> PortFuture<'_, Option<Value>> {
        let (answer, answered) = oneshot::channel();
        drop(self.send(CallMessage::Asked { question, answer }));
        Box::pin(async move { answered.await.unwrap_or_default() })
    }

    fn progress(&self, progress: ToolProgress) {
        let live = UpdateContent::Progress { part: self.call.part.clone(), progress };
        if let Some(shared) = self.shared.upgrade() {
            shared.publish(ExecutionUpdate { identity: self.call.identity.clone(), content: live });
        }
    }

    fn late(&self, outcome: CallOutcome) {
        let Some((shared, CallReport { part, side, attempt, message })) = self.send(CallMessage::Late(outcome)) else {
            return;
        };
        if let CallMessage::Late(outcome) = message {
            let late = LateReturn::new(part, side, attempt, outcome);
            let (runtime, loops) = (shared.runtime.clone(), shared.loops.clone());
            loops.spawn_on(store_late(shared, self.call.identity.clone(), late), &runtime);
        }
    }
}
