//! One call of a tool, from its connection to its outcome.

use super::connection::{McpConnection, ProtocolEra};
use super::lifecycle::ServerLifecycle;
use super::listener::OpenCallGuard;
use super::questions::InputRound;
use super::{http, list, outcome, ticket};
use crate::connector::{ConnectorRequest, preparation};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientNotification, ClientRequest, CustomNotification, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// How many rounds of questions a tool may ask.
pub(super) const ROUNDS_MAX: usize = 3;

pub(super) async fn make(life: &Arc<ServerLifecycle>, request: ConnectorRequest) -> CallOutcome {
    let outcome = make_now(life, request).await;
    if let CallOutcome::NotDone(failure) | CallOutcome::Maybe(failure) = &outcome
        && matches!(failure.category, FailureCategory::Timeout | FailureCategory::Cancelled)
    {
        life.ping();
    }
    outcome
}

async fn make_now(life: &Arc<ServerLifecycle>, request: ConnectorRequest) -> CallOutcome {
    let (now, cancel) = (Instant::now(), request.cancel.clone());
    let end = CallDeadline { deadline: now + request.timeout, cancel: cancel.clone() };
    let preparing = CallDeadline { deadline: now + preparation(request.timeout), cancel };
    if let Some(ticket) = request.ticket.clone() {
        return ticket::follow(life, &ticket, &request, &end).await;
    }
    let mut params = CallToolRequestParams::new(request.tool.clone());
    match &*request.parameters {
        Value::Object(arguments) => params = params.with_arguments(arguments.clone()),
        Value::Null => {}
        _ => {
            return CallOutcome::NotDone(ToolFailure::new(
                FailureCategory::InvalidInput,
                "the parameters must be an object",
            ));
        }
    }
    let connection = tokio::select! {
        biased;
        early = preparing.comes() => return CallOutcome::NotDone(early.failure()),
        connection = life.connection() => match connection {
            Ok(connection) => connection,
            Err(failure) => return CallOutcome::NotDone(failure),
        },
    };
    if request.connection.is_some_and(|checked| checked != connection.number) {
        let message = "the server was restarted just before the call; its tools must be listed again first";
        return CallOutcome::NotDone(ToolFailure::new(FailureCategory::Unavailable, message));
    }
    if connection.must_list() {
        tokio::select! {
            biased;
            early = preparing.comes() => return CallOutcome::NotDone(early.failure()),
            // A server that cannot list its tools may still answer calls.
            _ = list::all(&connection, life.limits().list) => {}
        }
    }
    let entered = connection.calls.enter(request.reporter.clone());
    let mut open = match request.continuation.as_deref().map(InputRound::read) {
        Some(None) => return CallOutcome::Maybe(not_offered()),
        Some(round) => round,
        None => None,
    };
    for round in usize::from(open.is_some())..=ROUNDS_MAX {
        if let Some(asked) = open.take() {
            let answered = tokio::select! {
                biased;
                early = end.comes() => return CallOutcome::Maybe(early.failure()),
                answered = asked.answer_all(&*request.reporter) => answered,
            };
            let Some((answers, state)) = answered else { return CallOutcome::Maybe(not_offered()) };
            params.input_responses = (!answers.is_empty()).then_some(answers);
            params.request_state = state;
        }
        let answer = exchange(&connection, params.clone(), &request, &entered, &end, life.limits().cancel).await;
        let required = match answer {
            // The tool was already at work when it asked; a round that did not reach it does not undo that.
            Err(CallOutcome::NotDone(failure)) if round > 0 => return CallOutcome::Maybe(failure),
            Err(outcome) => return outcome,
            Ok(ServerResult::InputRequiredResult(required)) => required,
            Ok(ServerResult::CreateTaskResult(created)) => {
                let id = created.task.task_id;
                // Recorded before anything else, so that a crash does not lose the ticket.
                request.reporter.accepted(id.clone()).await;
                return ticket::follow(life, &id, &request, &end).await;
            }
            Ok(result) => {
                return serde_json::to_value(result).map_or_else(
                    |_| outcome::unreadable(),
                    |result| outcome::of_result(result, request.declares_output),
                );
            }
        };
        open = Some(InputRound::new(required));
    }
    let message = format!("the tool still asks for more after {ROUNDS_MAX} rounds of questions");
    CallOutcome::Maybe(ToolFailure::new(FailureCategory::Protocol, message))
}

pub(super) fn not_offered() -> ToolFailure {
    ToolFailure::new(FailureCategory::Protocol, "the tool asks for input that was not offered")
}

/// When a call ends whether or not it was answered.
pub(super) struct CallDeadline {
    deadline: Instant,
    cancel: CancellationToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlyEnd {
    Cancelled,
    TimedOut,
}

impl CallDeadline {
    pub(super) async fn comes(&self) -> EarlyEnd {
        tokio::select! {
            biased;
            _ = self.cancel.cancelled() => EarlyEnd::Cancelled,
            _ = sleep_until(self.deadline) => EarlyEnd::TimedOut,
        }
    }
}

impl EarlyEnd {
    pub(super) fn failure(self) -> ToolFailure {
        match self {
            EarlyEnd::Cancelled => ToolFailure::new(FailureCategory::Cancelled, "the call was cancelled"),
            EarlyEnd::TimedOut => ToolFailure::new(FailureCategory::Timeout, "the call was not answered in time"),
        }
    }
}

/// Sends the call once and waits for the response.
async fn exchange(
    connection: &McpConnection,
    params: CallToolRequestParams,
    call: &ConnectorRequest,
    entered: &OpenCallGuard,
    end: &CallDeadline,
    patience: Duration,
) -> Result<ServerResult, CallOutcome> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let sent = connection.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let Ok(mut handle) = sent else {
        // It was not even put into the queue.
        return Err(CallOutcome::NotDone(connection.end_reason().await));
    };
    entered.sent(handle.id.clone(), handle.progress_token.clone());
    if !connection.over_http {
        connection.wire.report_late(&handle.id, call.reporter.clone(), call.declares_output);
    }
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
    if connection.over_http && connection.era == ProtocolEra::Modern {
        // Closing the stream is the cancellation; nothing can come on it afterwards.
        _ = timeout(patience, handle.cancel(Some(early.failure().message))).await;
        return Err(CallOutcome::Maybe(early.failure()));
    }
    let id = handle.id.clone();
    let mut late = call_off(connection, &mut handle, early, patience).await;
    let never_sent = late.is_none() && !connection.over_http && connection.wire.never_sent(&id);
    let was_open = connection.wire.forget(&id);
    if late.is_none() && !connection.over_http && !never_sent && !was_open {
        // Its answer came at this very moment.
        late = timeout(patience, &mut handle.rx)
            .await
            .ok()
            .map(|answer| answer.unwrap_or(Err(ServiceError::TransportClosed)));
    }
    let outcome = match late {
        Some(Ok(result)) => return late_result(result, early),
        Some(Err(ServiceError::McpError(error))) => match outcome::of_error(&error) {
            CallOutcome::NotDone(failure) => CallOutcome::NotDone(failure),
            _ => CallOutcome::Maybe(early.failure()),
        },
        // No answer, and the request can no longer reach the server.
        _ if never_sent => CallOutcome::NotDone(early.failure()),
        _ => CallOutcome::Maybe(early.failure()),
    };
    Err(outcome)
}

async fn of_loss(connection: &McpConnection, id: &rmcp::model::RequestId, error: ServiceError) -> CallOutcome {
    // A session the server does not know any more is of no use to the next call either.
    let is_stale = matches!(&error, ServiceError::TransportSend(error) if http::is_stale(&*error.error));
    let outcome = outcome::of_loss(connection, id, error).await;
    connection.wire.forget(id);
    if is_stale {
        connection.discard();
    }
    outcome
}

/// A late result counts if it is a success. A late error may be what the cancellation made of a half-done call.
fn late_result(result: ServerResult, early: EarlyEnd) -> Result<ServerResult, CallOutcome> {
    match result {
        ServerResult::CallToolResult(result) if result.is_error == Some(true) => {
            Err(CallOutcome::Maybe(early.failure()))
        }
        ServerResult::CallToolResult(_) | ServerResult::CreateTaskResult(_) => Ok(result),
        _ => Err(CallOutcome::Maybe(early.failure())),
    }
}

/// Asks the server to stop, and waits briefly for its response.
async fn call_off(
    connection: &McpConnection,
    handle: &mut RequestHandle<RoleClient>,
    early: EarlyEnd,
    patience: Duration,
) -> Option<Result<ServerResult, ServiceError>> {
    let reason = early.failure().message;
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
