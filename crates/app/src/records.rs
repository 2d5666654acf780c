//! Records what an agent did itself: steps, decisions, actions, compensations.

pub mod action;
pub mod compensation;
pub mod decision;
pub mod step;

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::request_key::RequestKey;
use crate::rights::Operation;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::hash::Hash;
use rutter_core::plan::document::read_exact;
use schemars::{JsonSchema, Schema, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The server of the agent's own tools, if it names none.
pub const AGENT_PREFIX: &str = "agent.";

/// The full name of a tool that may be known to the agent only.
pub fn full_name(tool: &str) -> String {
    match tool.contains('.') {
        true => tool.to_owned(),
        false => format!("{AGENT_PREFIX}{tool}"),
    }
}

/// Sends a record to an execution as the caller.
pub(crate) async fn send_record(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    input: ExecutionInput,
    request: Option<String>,
) -> Result<(), AppError> {
    app.require(caller, Operation::Record)?;
    let key = RequestKey::of(caller, request.as_deref())?;
    let recorded = app.engine.command(identity, caller.actor(), input, key.stored.clone()).await;
    answered(app, caller, identity, key, recorded).await
}

/// What the caller is told of a record.
async fn answered(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    key: RequestKey,
    recorded: Result<(), rutter_engine::Error>,
) -> Result<(), AppError> {
    let Err(error) = recorded else { return Ok(()) };
    let error = key.error(app, &caller.tenant, error).await;
    Err(app.refusals.noting(caller, "record", &identity.execution, error))
}

/// Saves values with an execution, for the agent that takes it over.
pub async fn save_context(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    values: Map<String, Value>,
    request: Option<String>,
) -> Result<(), AppError> {
    send_record(app, caller, identity, ExecutionInput::SaveContext { values }, request).await
}

/// The key of one part of a request, so that each part is performed once.
pub fn part_of(request: Option<&str>, part: &str) -> Option<String> {
    let fields = |key: &str| Hash::of_fields("rutter/part-of-request/v1", &[key.as_bytes(), part.as_bytes()]);
    request.map(|key| fields(key).to_string())
}

/// Details of a record. Some agents send an object, some its text.
#[derive(Clone, Debug)]
pub struct RecordDetails(pub Arc<Value>);

impl<'de> Deserialize<'de> for RecordDetails {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RecordDetails, D::Error> {
        let value = match Value::deserialize(deserializer)? {
            Value::Object(fields) => Value::Object(fields),
            Value::String(text) => match serde_json::from_str::<Map<String, Value>>(&text) {
                Ok(_) => read_exact(text.as_bytes()).map_err(D::Error::custom)?,
                Err(_) => Value::String(text),
            },
            _ => return Err(D::Error::custom("expected an object or text")),
        };
        Ok(RecordDetails(Arc::new(value)))
    }
}

impl JsonSchema for RecordDetails {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Details".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "description": "Or text" })
    }
}
