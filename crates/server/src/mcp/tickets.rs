//! Tickets for calls that go on: MCP's tasks, one for one the executions we keep anyway.
//!
//! A ticket is the execution's id, so it is good as long as the execution is kept, and after a restart too.

use crate::fault::Fault;
use crate::limits::TICKET_TTL;
use crate::mcp::ask;
use crate::mcp::tool::Answer;
use crate::mcp::tools::execute_plan::follow;
use crate::mcp::visit::Visit;
use crate::mcp::wait::settled;
use crate::words;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, InputResponses, JsonObject, Task as Ticket,
    TaskPayload as State,
};
use rutter_core::execution::Identity;
use rutter_core::execution::view::{Status, View};
use rutter_core::time::calendar::utc;
use rutter_engine::control::Control;
use serde_json::Value;
use std::time::Duration;

/// How often a client should ask.
const POLL_EVERY_MS: u64 = 2_000;

/// Waits a while, and gives a ticket for what has not ended by then. What the agent has to decide itself is told at
/// once instead: behind a ticket it would not hear of it.
pub(crate) async fn give(visit: &Visit, identity: &Identity, span: Duration) -> Result<Answer, Fault> {
    let view = settled(visit, identity, span).await?;
    let is_for_people = view.questions.is_empty() || (visit.can_ask && ask::only_people_may(&view));
    if view.status.has_ended() || !is_for_people {
        return stands(visit, identity).await;
    }
    let state = state(visit, identity, &view).await?;
    let ticket = DetailedTask::new(ticket(&view), state).task;
    Ok(Answer::Ticket(Box::new(CreateTaskResult::new(ticket))))
}

pub(crate) async fn look(visit: &Visit, id: &str) -> Result<DetailedTask, Fault> {
    let identity = visit.identity(id);
    let view = visit.desk.engine.view(&identity).await?;
    Ok(DetailedTask::new(ticket(&view), state(visit, &identity, &view).await?))
}

/// Passes on what the person at the client said. Answers to what is no longer asked are let go.
pub(crate) async fn update(visit: &Visit, id: &str, replies: &InputResponses) -> Result<(), Fault> {
    let identity = visit.identity(id);
    let view = visit.desk.engine.view(&identity).await?;
    if visit.can_ask {
        ask::take(visit, &identity, &view, replies.iter()).await?;
    }
    Ok(())
}

/// Ends it as its plan says. What has ended stays as it ended.
pub(crate) async fn cancel(visit: &Visit, id: &str) -> Result<(), Fault> {
    let identity = visit.identity(id);
    let engine = &visit.desk.engine;
    if engine.view(&identity).await?.status.has_ended() {
        return Ok(());
    }
    let reason = "the client cancelled its call".to_owned();
    let said = engine.control(&identity, visit.agent(), Control::Cancel { undo: None }, reason, None).await;
    match said {
        // It has ended, or is being cancelled, since it was looked at.
        Err(rutter_engine::Error::Refused(_)) => Ok(()),
        said => Ok(said?),
    }
}

/// What the call answers now, had it waited until now.
async fn stands(visit: &Visit, identity: &Identity) -> Result<Answer, Fault> {
    follow(visit, identity, Duration::ZERO, true).await
}

fn ticket(view: &View) -> Ticket {
    let message = match view.questions.is_empty() {
        true => words::summary(view),
        false => format!("{}; {}", words::summary(view), words::next(view)),
    };
    let status = rmcp::model::TaskStatus::Working;
    let ttl_ms = u64::try_from(TICKET_TTL.as_millis()).unwrap_or(u64::MAX);
    Ticket::new(view.execution.as_str(), status, utc(view.opened_at), utc(view.last_at))
        .with_status_message(message)
        .with_ttl_ms(ttl_ms)
        .with_poll_interval_ms(POLL_EVERY_MS)
}

/// An execution that ended badly has still answered the call; only a cancelled one has not.
async fn state(visit: &Visit, identity: &Identity, view: &View) -> Result<State, Fault> {
    if view.status == Status::Cancelled {
        return Ok(State::Cancelled);
    }
    if view.status.has_ended() {
        return Ok(State::Completed { result: result(stands(visit, identity).await?)? });
    }
    let input_requests = if visit.can_ask { ask::requests(view)? } else { Default::default() };
    Ok(match input_requests.is_empty() {
        true => State::Working,
        false => State::InputRequired { input_requests },
    })
}

fn result(answer: Answer) -> Result<JsonObject, Fault> {
    let internal = |message: String| Fault::new("server.internal", message);
    let Answer::Done(value) = answer else {
        return Err(internal("an execution that has ended asks nothing".to_owned()));
    };
    match serde_json::to_value(CallToolResult::structured(value)) {
        Ok(Value::Object(result)) => Ok(result),
        Ok(other) => Err(internal(format!("a result is an object, not {other}"))),
        Err(error) => Err(internal(error.to_string())),
    }
}
