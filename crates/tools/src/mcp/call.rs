//! One call of a tool, from the connection it needs to the outcome it has.

use super::connection::{Connection, Era};
use super::life::Life;
use super::listener::{self, Entered};
use super::{http, list, outcome, ticket};
use crate::connector::Request;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientNotification, ClientRequest, CustomNotification,
    InputRequest, InputRequests, InputResponses, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use rutter_core::port::tools::Reporter;
use rutter_core::tool::{Category, Failure, Outcome};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// How often a tool may come back with questions before it is given up.
pub(super) const ROUNDS_MAX: usize = 3;

pub(super) async fn make(life: &Arc<Life>, request: Request) -> Outcome {
    let end = End { deadline: Instant::now() + request.timeout, cancel: request.cancel.clone() };
    if let Some(ticket) = request.ticket {
        return ticket::follow(life, &ticket, &request.reporter, &end).await;
    }
    let mut params = CallToolRequestParams::new(request.tool);
    match &*request.parameters {
        Value::Object(arguments) => params = params.with_arguments(arguments.clone()),
        Value::Null => {}
        _ => {
            return Outcome::NotDone(Failure::new(
                Category::InvalidInput,
                "the parameters must be an object",
            ));
        }
    }
    let connection = tokio::select! {
        biased;
        early = end.comes() => return Outcome::NotDone(early.failure()),
        connection = life.connection() => match connection {
            Ok(connection) => connection,
            Err(failure) => return Outcome::NotDone(failure),
        },
    };
    if connection.must_list() {
        tokio::select! {
            biased;
            early = end.comes() => return Outcome::NotDone(early.failure()),
            // A server that cannot list its tools may still answer calls.
            _ = list::all(&connection, life.patience().list) => {}
        }
    }
    let entered = connection.calls.enter(request.reporter.clone());
    for round in 0..=ROUNDS_MAX {
        let answer = exchange(&connection, params.clone(), &entered, &end, life.patience().cancel).await;
        let required = match answer {
            // The tool was at work already when it asked; that this round did not reach it does not undo that.
            Err(Outcome::NotDone(failure)) if round > 0 => return Outcome::Maybe(failure),
            Err(outcome) => return outcome,
            Ok(ServerResult::InputRequiredResult(required)) => required,
            Ok(ServerResult::CreateTaskResult(created)) => {
                let id = created.task.task_id;
                // On record before anything else, so that a crash does not lose what can be asked about.
                request.reporter.accepted(id.clone()).await;
                return ticket::follow(life, &id, &request.reporter, &end).await;
            }
            Ok(result) => {
                return serde_json::to_value(result)
                    .map_or_else(|_| outcome::unreadable(), outcome::of_result);
            }
        };
        let asked = required.input_requests.unwrap_or_default();
        let answers = tokio::select! {
            biased;
            early = end.comes() => return Outcome::Maybe(early.failure()),
            answers = answer_all(&asked, &*request.reporter) => match answers {
                Some(answers) => answers,
                None => return Outcome::Maybe(not_offered()),
            },
        };
        params.input_responses = (!answers.is_empty()).then_some(answers);
        params.request_state = required.request_state;
    }
    let message = format!("the tool still asks for more after {ROUNDS_MAX} rounds of questions");
    Outcome::Maybe(Failure::new(Category::Protocol, message))
}

pub(super) fn not_offered() -> Failure {
    Failure::new(Category::Protocol, "the tool asks for something that was not offered to it")
}

/// The answers to all questions of one round; `None` when something else than an answer is wanted.
pub(super) async fn answer_all(asked: &InputRequests, reporter: &dyn Reporter) -> Option<InputResponses> {
    let mut answers = InputResponses::new();
    for (key, request) in asked {
        let InputRequest::Elicitation(question) = request else { return None };
        let answer = listener::answer(&question.params, reporter).await;
        answers.insert(key.clone(), serde_json::to_value(answer).ok()?);
    }
    Some(answers)
}

/// When a call ends whether or not it was answered.
pub(super) struct End {
    deadline: Instant,
    cancel: CancellationToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    Cancelled,
    TimedOut,
}

impl End {
    pub(super) async fn comes(&self) -> Early {
        tokio::select! {
            biased;
            _ = self.cancel.cancelled() => Early::Cancelled,
            _ = sleep_until(self.deadline) => Early::TimedOut,
        }
    }
}

impl Early {
    pub(super) fn failure(self) -> Failure {
        match self {
            Early::Cancelled => Failure::new(Category::Cancelled, "the call was cancelled"),
            Early::TimedOut => Failure::new(Category::Timeout, "the call was not answered in time"),
        }
    }
}

/// Sends the call once and waits for what comes back.
async fn exchange(
    connection: &Connection,
    params: CallToolRequestParams,
    entered: &Entered,
    end: &End,
    patience: Duration,
) -> Result<ServerResult, Outcome> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let sent = connection.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let Ok(mut handle) = sent else {
        // It was not even put into the queue.
        return Err(Outcome::NotDone(connection.obituary().await));
    };
    entered.sent(handle.id.clone(), handle.progress_token.clone());
    let early = tokio::select! {
        biased;
        answer = &mut handle.rx => {
            let id = &handle.id;
            return match answer.unwrap_or(Err(ServiceError::TransportClosed)) {
                Ok(result) => Ok(result),
                Err(error) => Err(of_loss(connection, id, error).await),
            };
        }
        early = end.comes() => early,
    };
    let id = handle.id.clone();
    let late = call_off(connection, handle, early, patience).await;
    let outcome = match late {
        Some(Ok(result)) => return late_result(result, early),
        Some(Err(ServiceError::McpError(error))) => match outcome::of_error(&error) {
            Outcome::NotDone(failure) => Outcome::NotDone(failure),
            _ => Outcome::Maybe(early.failure()),
        },
        // Neither an answer nor a way left for the request to reach the server.
        _ if !connection.over_http && connection.wire.never_sent(&id) => Outcome::NotDone(early.failure()),
        _ => Outcome::Maybe(early.failure()),
    };
    connection.wire.forget(&id);
    Err(outcome)
}

async fn of_loss(connection: &Connection, id: &rmcp::model::RequestId, error: ServiceError) -> Outcome {
    // A session the server does not know any more is of no use to the next call either.
    let is_stale = matches!(&error, ServiceError::TransportSend(error) if http::is_stale(&*error.error));
    let outcome = outcome::of_loss(connection, id, error).await;
    connection.wire.forget(id);
    if is_stale {
        connection.discard();
    }
    outcome
}

/// A result that came after the call was called off counts when it is one. An error may be what the cancellation made of
/// a call that was half done.
fn late_result(result: ServerResult, early: Early) -> Result<ServerResult, Outcome> {
    match result {
        ServerResult::CallToolResult(result) if result.is_error == Some(true) => {
            Err(Outcome::Maybe(early.failure()))
        }
        ServerResult::CallToolResult(_) | ServerResult::CreateTaskResult(_) => Ok(result),
        _ => Err(Outcome::Maybe(early.failure())),
    }
}

/// Asks the server to stop, and waits a little for what it says to that.
async fn call_off(
    connection: &Connection,
    mut handle: RequestHandle<RoleClient>,
    early: Early,
    patience: Duration,
) -> Option<Result<ServerResult, ServiceError>> {
    let reason = early.failure().message;
    if connection.over_http && connection.era == Era::Modern {
        // Closing the stream is the cancellation; nothing can come on it afterwards.
        _ = timeout(patience, handle.cancel(Some(reason))).await;
        return None;
    }
    // Sent as a notification of our own, because the library would stop listening for the answer with its own.
    let params = json!({"requestId": handle.id.clone().into_json_value(), "reason": reason});
    let notification = CustomNotification::new("notifications/cancelled", Some(params));
    let peer = connection.peer.clone();
    let until = Instant::now() + patience;
    _ = timeout(patience, peer.send_notification(ClientNotification::CustomNotification(notification))).await;
    match tokio::time::timeout_at(until, &mut handle.rx).await {
        Ok(answer) => Some(answer.unwrap_or(Err(ServiceError::TransportClosed))),
        Err(_) => None,
    }
}
