//! A call the server works on elsewhere: it gave a ticket, and is asked under it until the work is over.
//!
//! Asking has no effect, so a lost connection is made anew and the asking goes on until the call's own time is up.

use super::call::{Early, End, ROUNDS_MAX, answer_all, not_offered};
use super::connection::Connection;
use super::life::Life;
use super::outcome;
use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, DetailedTask, ErrorCode, ErrorData, GetTaskParams,
    GetTaskRequest, InputRequests, ServerResult, TaskPayload, UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::ServiceError;
use rutter_core::port::tools::Reporter;
use rutter_core::tool::{Category, Failure, Outcome};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);
const PAUSE_USUAL: Duration = Duration::from_secs(1);

pub(super) async fn follow(
    life: &Arc<Life>,
    ticket: &str,
    reporter: &Arc<dyn Reporter>,
    end: &End,
) -> Outcome {
    let early = tokio::select! {
        biased;
        outcome = until_over(life, ticket, &**reporter) => return outcome,
        early = end.comes() => early,
    };
    let patience = life.patience().cancel;
    match timeout(patience, call_off(life, ticket, early)).await {
        Ok(Some(outcome)) => outcome,
        _ => Outcome::Maybe(early.failure()),
    }
}

async fn until_over(life: &Arc<Life>, ticket: &str, reporter: &dyn Reporter) -> Outcome {
    let mut rounds = 0;
    loop {
        let pause = match look(life, ticket).await {
            Err(Looked::Unknown) => return unknown(ticket),
            Err(Looked::Nothing) => PAUSE_USUAL,
            Ok(task) => {
                let pause = task.task.poll_interval_ms.map_or(PAUSE_USUAL, Duration::from_millis);
                match task.payload {
                    TaskPayload::InputRequired { input_requests } => {
                        rounds += 1;
                        if rounds > ROUNDS_MAX {
                            let message = format!(
                                "the tool still asks for more after {ROUNDS_MAX} rounds of questions"
                            );
                            return Outcome::Maybe(Failure::new(Category::Protocol, message));
                        }
                        if !reply(life, ticket, &input_requests, reporter).await {
                            return Outcome::Maybe(not_offered());
                        }
                    }
                    payload => {
                        if let Some(outcome) = of_payload(payload, Early::Cancelled) {
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

/// Asks the server to stop, and looks whether it did, or was done before.
async fn call_off(life: &Arc<Life>, ticket: &str, early: Early) -> Option<Outcome> {
    let connection = life.connection().await.ok()?;
    let request = CancelTaskRequest::new(CancelTaskParams::new(ticket));
    _ = connection.peer.send_request(ClientRequest::CancelTaskRequest(request)).await;
    loop {
        if let Ok(task) = look(life, ticket).await
            && let Some(outcome) = of_payload(task.payload, early)
        {
            return Some(outcome);
        }
        tokio::time::sleep(PAUSE_MIN).await;
    }
}

/// How the work ended; `None` while it goes on.
fn of_payload(payload: TaskPayload, cancelled: Early) -> Option<Outcome> {
    match payload {
        TaskPayload::Completed { result } => Some(outcome::of_result(Value::Object(result))),
        TaskPayload::Failed { error } => {
            Some(match serde_json::from_value::<ErrorData>(Value::Object(error)) {
                Ok(error) => outcome::of_error(&error),
                Err(_) => outcome::unreadable(),
            })
        }
        // Stopped, which says nothing about what it had done by then.
        TaskPayload::Cancelled => Some(Outcome::Maybe(cancelled.failure())),
        _ => None,
    }
}

enum Looked {
    /// The server has no such ticket.
    Unknown,
    /// Nothing was learnt.
    Nothing,
}

async fn look(life: &Arc<Life>, ticket: &str) -> Result<DetailedTask, Looked> {
    let connection = reconnected(life).await.ok_or(Looked::Nothing)?;
    let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(ticket)));
    match connection.peer.send_request(request).await {
        Ok(ServerResult::GetTaskResult(result)) => Ok(result.task),
        Err(ServiceError::McpError(ErrorData { code, .. })) if says_unknown(code) => Err(Looked::Unknown),
        _ => Err(Looked::Nothing),
    }
}

fn says_unknown(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::INVALID_PARAMS | ErrorCode::RESOURCE_NOT_FOUND | ErrorCode::METHOD_NOT_FOUND)
}

fn unknown(ticket: &str) -> Outcome {
    let message = format!("the server does not know the ticket {ticket:?} any more, nor how the call ended");
    Outcome::Maybe(Failure::new(Category::NotFound, message))
}

async fn reconnected(life: &Arc<Life>) -> Option<Arc<Connection>> {
    match life.connection().await {
        Ok(connection) => Some(connection),
        Err(failure) => {
            let pause = failure.retry_after.map_or(PAUSE_USUAL, |pause| Duration::from_millis(pause.0));
            tokio::time::sleep(pause.min(PAUSE_MAX)).await;
            None
        }
    }
}

/// Answers what the server asks in the middle of its work; `false` when it wants something that was never offered.
async fn reply(life: &Arc<Life>, ticket: &str, asked: &InputRequests, reporter: &dyn Reporter) -> bool {
    let Some(answers) = answer_all(asked, reporter).await else { return false };
    if let Ok(connection) = life.connection().await {
        let request = UpdateTaskRequest::new(UpdateTaskParams::new(ticket, answers));
        _ = connection.peer.send_request(ClientRequest::UpdateTaskRequest(request)).await;
    }
    true
}
