//! Recording what an agent did itself: steps, decisions, actions, compensations.

pub(crate) mod action;
pub(crate) mod compensation;
pub(crate) mod decision;
pub(crate) mod step;

use crate::deed::Caller;
use crate::fault::Fault;
use rutter_core::execution::Identity;
use rutter_core::hash::Hash;
use rutter_engine::Signal;
use schemars::{JsonSchema, Schema, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The server that the agent's own tools are said to be of, when it names none.
pub(crate) const OWN: &str = "agent.";

/// The full name of a tool that only the agent may know.
pub(crate) fn full_name(tool: &str) -> String {
    match tool.contains('.') {
        true => tool.to_owned(),
        false => format!("{OWN}{tool}"),
    }
}

/// Says something to an execution in the caller's name.
pub(crate) async fn say(
    caller: &Caller,
    identity: &Identity,
    signal: Signal,
    request: Option<String>,
) -> Result<(), Fault> {
    Ok(caller.desk.engine.signal(identity, caller.actor.clone(), signal, request).await?)
}

/// The key of one of several things a request leads to, so that each of them happens once.
pub(crate) fn part_of(request: Option<&str>, part: &str) -> Option<String> {
    let fields = |key: &str| Hash::of_fields("rutter/part-of-request/v1", &[key.as_bytes(), part.as_bytes()]);
    request.map(|key| fields(key).to_string())
}

/// What belongs to what is recorded. Some agents send an object, some its text.
#[derive(Clone, Debug)]
pub(crate) struct Details(pub(crate) Arc<Value>);

impl<'de> Deserialize<'de> for Details {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Details, D::Error> {
        let value = match Value::deserialize(deserializer)? {
            Value::Object(fields) => Value::Object(fields),
            Value::String(text) => match serde_json::from_str::<Map<String, Value>>(&text) {
                Ok(fields) => Value::Object(fields),
                Err(_) => Value::String(text),
            },
            _ => return Err(D::Error::custom("expected an object or text")),
        };
        Ok(Details(Arc::new(value)))
    }
}

impl JsonSchema for Details {
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
