//! MCP tasks for long calls, each backed by an execution.
//!
//! The task id is the execution's id, so it stays valid across restarts and as long as the execution exists.

use crate::ask;
use crate::follow::follow;
use crate::tool::ToolAnswer;
use crate::tool_request::ToolRequest;
use crate::wait::settled;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, InputResponses, JsonObject, Task as Ticket, TaskPayload as State,
};
use rutter_app::command::{Command, CommandArguments};
use rutter_app::error::AppError;
use rutter_app::limits::TICKET_TTL;
use rutter_app::verb::Verb;
use rutter_app::wording;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus};
use rutter_core::time::calendar::utc;
use serde_json::Value;
use std::time::Duration;

/// The suggested polling interval.
const POLL_EVERY_MS: u64 = 2_000;

/// Waits, and returns a task if the execution has not ended by then. A question for the agent is returned at once
/// instead: the agent does not see a task's questions.
pub(crate) async fn give(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    span: Duration,
) -> Result<ToolAnswer, AppError> {
    let view = settled(request, identity, span).await?;
    let is_for_people = view.questions.is_empty() || ask::only_people_may(request, &view);
    if view.status.has_ended() || !is_for_people {
        return stands(request, identity).await;
    }
    let state = state(request, identity, &view).await?;
    let ticket = DetailedTask::new(ticket(request, &view), state).task;
    Ok(ToolAnswer::Ticket(Box::new(CreateTaskResult::new(ticket))))
}

pub(crate) async fn look(request: &ToolRequest, id: &str) -> Result<DetailedTask, AppError> {
    let identity = request.identity(id);
    request.app.notice_agent(&request.principal(), &identity).await;
    let view = request.app.view(&identity).await?;
    Ok(DetailedTask::new(ticket(request, &view), state(request, &identity, &view).await?))
}

/// Sends the user's answers to the execution. Answers to questions that are no longer open are ignored.
pub(crate) async fn update(request: &ToolRequest, id: &str, replies: &InputResponses) -> Result<(), AppError> {
    let identity = request.identity(id);
    request.app.notice_agent(&request.principal(), &identity).await;
    let view = request.app.view(&identity).await?;
    if request.can_ask {
        // An answer that does not count is refused by the execution's rights, and recorded.
        ask::apply_replies(request, &identity, &view, replies.iter()).await?;
    }
    Ok(())
}

/// Cancels the execution. Does nothing if it has ended.
pub(crate) async fn cancel(request: &ToolRequest, id: &str) -> Result<(), AppError> {
    let identity = request.identity(id);
    let app = &request.app;
    if app.view(&identity).await?.status.has_ended() {
        return Ok(());
    }
    let reason = "the client cancelled its call".to_owned();
    let cancelled = app.perform(Command {
        principal: request.principal(),
        execution: identity.execution,
        verb: Verb::Cancel,
        arguments: CommandArguments::default(),
        reason: Some(reason),
        request_key: None,
        if_match: None,
    });
    match cancelled.await {
        // It ended or was cancelled in the meantime.
        Err(error) if error.code.starts_with("execution.") => Ok(()),
        cancelled => cancelled,
    }
}

/// The result that the call would return now.
async fn stands(request: &ToolRequest, identity: &ExecutionIdentity) -> Result<ToolAnswer, AppError> {
    follow(request, identity, Duration::ZERO, true).await
}

fn ticket(request: &ToolRequest, view: &ExecutionSnapshot) -> Ticket {
    let message = match view.questions.is_empty() {
        true => wording::summary(view),
        false => format!("{}; {}", wording::summary(view), wording::next(view, &request.reader())),
    };
    let status = rmcp::model::TaskStatus::Working;
    let ttl_ms = u64::try_from(TICKET_TTL.as_millis()).unwrap_or(u64::MAX);
    Ticket::new(view.execution.as_str(), status, utc(view.opened_at), utc(view.last_at))
        .with_status_message(message)
        .with_ttl_ms(ttl_ms)
        .with_poll_interval_ms(POLL_EVERY_MS)
}

/// A failed execution is a completed task with a result; only a cancelled one has none.
async fn state(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    view: &ExecutionSnapshot,
) -> Result<State, AppError> {
    if view.status == ExecutionStatus::Cancelled {
        return Ok(State::Cancelled);
    }
    if view.status.has_ended() {
        return Ok(State::Completed { result: result(stands(request, identity).await?)? });
    }
    let input_requests = ask::requests(request, view)?;
    Ok(match input_requests.is_empty() {
        true => State::Working,
        false => State::InputRequired { input_requests },
    })
}

fn result(answer: ToolAnswer) -> Result<JsonObject, AppError> {
    let internal = |message: String| AppError::new("server.internal", message);
    let ToolAnswer::Done(value) = answer else {
        return Err(internal("an execution that has ended has no questions".to_owned()));
    };
    match serde_json::to_value(CallToolResult::structured(value)) {
        Ok(Value::Object(result)) => Ok(result),
        Ok(other) => Err(internal(format!("a result is an object, not {other}"))),
        Err(error) => Err(internal(error.to_string())),
    }
}
