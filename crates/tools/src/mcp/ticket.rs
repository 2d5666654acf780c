//! A call that continues on the server under a ticket, polled until the work has ended.
//!
//! Polling has no effect, so after a lost connection it continues on a new one, until the call's deadline.

use super::call::{CallDeadline, EarlyEnd, ROUNDS_MAX, not_offered};
use super::connection::McpConnection;
use super::lifecycle::ServerLifecycle;
use super::outcome;
use super::questions;
use crate::connector::ConnectorRequest;
use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, DetailedTask, ErrorCode, ErrorData, GetTaskParams,
    GetTaskRequest, InputRequests, InputResponses, ServerResult, TaskPayload, UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::ServiceError;
use rutter_core::port::tools::CallReporter;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);
const PAUSE_USUAL: Duration = Duration::from_secs(1);

pub(super) async fn follow(
    life: &Arc<ServerLifecycle>,
    ticket: &str,
    request: &ConnectorRequest,
    end: &CallDeadline,
) -> CallOutcome {
    let early = tokio::select! {
        biased;
        outcome = until_over(life, ticket, request) => return outcome,
        early = end.comes() => early,
    };
    let patience = life.limits().cancel;
    match timeout(patience, call_off(life, ticket, early, request.declares_output)).await {
        Ok(Some(outcome)) => outcome,
        _ => CallOutcome::Maybe(early.failure()),
    }
}

async fn until_over(life: &Arc<ServerLifecycle>, ticket: &str, request: &ConnectorRequest) -> CallOutcome {
    let mut rounds = 0;
    loop {
        let pause = match look(life, ticket).await {
            Err(TicketLookup::Unknown) => return unknown(ticket),
            Err(TicketLookup::Nothing) => PAUSE_USUAL,
            Ok(task) => {
                let pause = task.task.poll_interval_ms.map_or(PAUSE_USUAL, Duration::from_millis);
                match task.payload {
                    TaskPayload::InputRequired { input_requests } => {
                        rounds += 1;
                        if rounds > ROUNDS_MAX {
                            let message =
                                format!("the tool still asks for more after {ROUNDS_MAX} rounds of questions");
                            return CallOutcome::Maybe(ToolFailure::new(FailureCategory::Protocol, message));
                        }
                        if !reply(life, ticket, &input_requests, &*request.reporter).await {
                            return CallOutcome::Maybe(not_offered());
                        }
                    }
                    payload => {
                        if let Some(outcome) = of_payload(payload, EarlyEnd::Cancelled, request.declares_output) {
                            return outcome;
                        }
                    }
                }
                pause
            }
        };
        tokio::time::sleep(pause.clamp(PAUSE_MIN, PAUSE_MAX)).await;
    }
}

/// Asks the server to stop, and checks whether it did, or had finished before.
async fn call_off(
    life: &Arc<ServerLifecycle>,
    ticket: &str,
    early: EarlyEnd,
    declares_output: bool,
) -> Option<CallOutcome> {
    let connection = life.connection().await.ok()?;
    let request = CancelTaskRequest::new(CancelTaskParams::new(ticket));
    _ = connection.peer.send_request(ClientRequest::CancelTaskRequest(request)).await;
    loop {
        if let Ok(task) = look(life, ticket).await
            && let Some(outcome) = of_payload(task.payload, early, declares_output)
        {
            return Some(outcome);
        }
        tokio::time::sleep(PAUSE_MIN).await;
    }
}

/// How the work ended; `None` while it goes on.
fn of_payload(payload: TaskPayload, cancelled: EarlyEnd, declares_output: bool) -> Option<CallOutcome> {
    match payload {
        TaskPayload::Completed { result } => Some(outcome::of_result(Value::Object(result), declares_output)),
        TaskPayload::Failed { error } => Some(match serde_json::from_value::<ErrorData>(Value::Object(error)) {
            Ok(error) => outcome::of_error(&error),
            Err(_) => outcome::unreadable(),
        }),
        // Stopped, which says nothing about what it had done by then.
        TaskPayload::Cancelled => Some(CallOutcome::Maybe(cancelled.failure())),
        _ => None,
    }
}

enum TicketLookup {
    /// The server has no such ticket.
    Unknown,
    /// The lookup failed.
    Nothing,
}

async fn look(life: &Arc<ServerLifecycle>, ticket: &str) -> Result<DetailedTask, TicketLookup> {
    let connection = reconnected(life).await.ok_or(TicketLookup::Nothing)?;
    let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(ticket)));
    match connection.peer.send_request(request).await {
        Ok(ServerResult::GetTaskResult(result)) => Ok(result.task),
        Err(ServiceError::McpError(ErrorData { code, .. })) if says_unknown(code) => Err(TicketLookup::Unknown),
        _ => Err(TicketLookup::Nothing),
    }
}

fn says_unknown(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::INVALID_PARAMS | ErrorCode::RESOURCE_NOT_FOUND | ErrorCode::METHOD_NOT_FOUND)
}

fn unknown(ticket: &str) -> CallOutcome {
    let message = format!("the server does not know the ticket {ticket:?} any more, nor how the call ended");
    CallOutcome::Maybe(ToolFailure::new(FailureCategory::NotFound, message))
}

async fn reconnected(life: &Arc<ServerLifecycle>) -> Option<Arc<McpConnection>> {
    match life.connection().await {
        Ok(connection) => Some(connection),
        Err(failure) => {
            let pause = failure.retry_after.map_or(PAUSE_USUAL, |pause| Duration::from_millis(pause.0));
            tokio::time::sleep(pause.min(PAUSE_MAX)).await;
            None
        }
    }
}

/// Answers the server's questions during its work; `false` when it wants something that was never offered.
async fn reply(life: &Arc<ServerLifecycle>, ticket: &str, asked: &InputRequests, reporter: &dyn CallReporter) -> bool {
    let mut answers = InputResponses::new();
    for (key, request) in asked {
        // The ticket continues the call, so nothing else has to be kept.
        let Some(answer) = questions::answer(request, None, reporter).await else { return false };
        answers.insert(key.clone(), answer);
    }
    if let Ok(connection) = life.connection().await {
        let request = UpdateTaskRequest::new(UpdateTaskParams::new(ticket, answers));
        _ = connection.peer.send_request(ClientRequest::UpdateTaskRequest(request)).await;
    }
    true
}
