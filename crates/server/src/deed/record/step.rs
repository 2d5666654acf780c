//! What became of a call the agent made itself.

use crate::deed::Caller;
use crate::deed::record::{full_name, part_of, say};
use crate::fault::Fault;
use rutter_core::execution::part::PartState;
use rutter_core::execution::step::Stage;
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::{PartId, ToolName};
use rutter_core::plan::Driver;
use rutter_core::tool::{Category, Failure};
use rutter_engine::Signal;
use schemars::{JsonSchema, Schema, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A call the agent made for a step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepRecord {
    /// `step` or `step[item]`.
    pub(crate) step_id: String,
    pub(crate) status: StepStatus,
    #[serde(default)]
    pub(crate) result: Option<Value>,
    pub(crate) error: Option<Trouble>,
    /// If not the plan's.
    pub(crate) tool: Option<String>,
    /// If not the plan's.
    pub(crate) parameters: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepStatus {
    Started,
    Completed,
    Failed,
    InDoubt,
}

impl StepStatus {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            StepStatus::Started => "started",
            StepStatus::Completed => "completed",
            StepStatus::Failed => "failed",
            StepStatus::InDoubt => "in_doubt",
        }
    }
}

/// What went wrong, with or without its kind.
#[derive(Clone, Debug)]
pub(crate) struct Trouble(Failure);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TroubleFields {
    category: Option<Category>,
    message: String,
}

impl<'de> Deserialize<'de> for Trouble {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Trouble, D::Error> {
        let (category, message) = match Value::deserialize(deserializer)? {
            Value::String(message) => (None, message),
            value @ Value::Object(_) => {
                let fields: TroubleFields = serde_json::from_value(value).map_err(D::Error::custom)?;
                (fields.category, fields.message)
            }
            _ => return Err(D::Error::custom("expected text, or an object with category and message")),
        };
        Ok(Trouble(Failure::new(category.unwrap_or(Category::ToolError), message)))
    }
}

impl JsonSchema for Trouble {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Trouble".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        let categories: Vec<&str> = Category::ALL.into_iter().map(Category::as_str).collect();
        let what = format!("Text, or {{category, message}}; categories: {}", categories.join(" "));
        json_schema!({ "type": "string", "description": what })
    }
}

/// Where the step stands before the deed is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The plan has no such step, and the agent may act.
    Unplanned,
    /// It could begin now.
    ToBegin,
    Other,
}

/// Puts it on record, and says of which part it is.
pub(crate) async fn record(
    caller: &Caller,
    identity: &Identity,
    input: &StepRecord,
    key: Option<String>,
) -> Result<PartId, Fault> {
    let missing =
        || Fault::new("server.arguments", "step_id is the id of a step, or step[item] of a fan-out");
    let part = PartId::parse(&input.step_id).ok_or_else(missing)?;
    let end = end(input, &part)?;
    let tool = input.tool.as_deref().map(|tool| ToolName::new(&full_name(tool)));
    let parameters = input.parameters.clone().map(|fields| Arc::new(Value::Object(fields)));
    let looked = part.clone();
    let place = caller.desk.engine.look(identity, move |execution| place(execution, &looked)).await?;
    let is_told = tool.is_some() || parameters.is_some();
    let start = Signal::RecordStarted { part: part.clone(), tool, parameters };
    match (place, end) {
        (Place::Unplanned, _) => say(caller, identity, undeclared(input, &part), key).await?,
        (_, None) => say(caller, identity, start, key).await?,
        (place, Some(end)) => {
            // The end alone begins the step as the plan says; what was called otherwise must be said first.
            if is_told && place == Place::ToBegin {
                say(caller, identity, start, part_of(key.as_deref(), "start")).await?;
            }
            say(caller, identity, end, key).await?;
        }
    }
    Ok(part)
}

/// How the step ended, if it did.
fn end(input: &StepRecord, part: &PartId) -> Result<Option<Signal>, Fault> {
    let wrong = |message: &str| Err(Fault::new("server.arguments", message));
    let part = part.clone();
    match (input.status, &input.error) {
        (StepStatus::Started | StepStatus::Completed, Some(_)) => {
            wrong("error belongs to the status failed or in_doubt")
        }
        (StepStatus::Failed | StepStatus::InDoubt, None) => wrong("say in error what went wrong"),
        (StepStatus::Started | StepStatus::Failed | StepStatus::InDoubt, _) if input.result.is_some() => {
            wrong("result belongs to the status completed")
        }
        (StepStatus::Started, None) => Ok(None),
        (StepStatus::Completed, None) => {
            let result = Arc::new(input.result.clone().unwrap_or(Value::Null));
            Ok(Some(Signal::RecordFinished { part, result }))
        }
        (status, Some(Trouble(failure))) => {
            // Whoever gave up waiting does not know what happened.
            let maybe = status == StepStatus::InDoubt || failure.category == Category::Timeout;
            Ok(Some(Signal::RecordFailed { part, failure: failure.clone(), maybe }))
        }
    }
}

fn place(execution: &Execution, part: &PartId) -> Place {
    let is_agents = execution.driver() == Driver::Agent && execution.outcome().is_none();
    let stage = execution.stages().find(|(step, _)| **step == part.step).map(|(_, stage)| stage);
    match execution.part(part).map(|part| &part.state) {
        _ if is_agents && stage.is_none() => Place::Unplanned,
        // Going on with a step that waits for a decision is a decision too.
        Some(PartState::Failed { .. }) if stage == Some(Stage::Held) => Place::ToBegin,
        Some(
            PartState::Pending
            | PartState::Asking { .. }
            | PartState::Approved { .. }
            | PartState::BackingOff { .. },
        ) => Place::ToBegin,
        _ => Place::Other,
    }
}

/// Something the plan does not have is kept whole, as an action: it happened.
fn undeclared(input: &StepRecord, part: &PartId) -> Signal {
    let said = json!({
        "status": input.status.as_str(),
        "tool": input.tool,
        "parameters": input.parameters,
        "result": input.result,
        "error": input.error.as_ref().map(|Trouble(failure)| failure),
    });
    let said = said.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let details: Map<String, Value> = said.map(|(key, value)| (key.clone(), value.clone())).collect();
    let description = match &input.tool {
        Some(tool) => format!("{part}: called {tool}"),
        None => part.to_string(),
    };
    Signal::RecordAction {
        step: Some(part.step.clone()),
        kind: "undeclared".to_owned(),
        description,
        details: Some(Arc::new(Value::Object(details))),
    }
}
