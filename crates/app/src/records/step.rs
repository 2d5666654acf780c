//! The result of a call that the agent made itself.

use crate::app::App;
use crate::command::part;
use crate::error::AppError;
use crate::principal::Principal;
use crate::records::{full_name, part_of, send_record};
use crate::rights::Operation;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::part::PartState;
use rutter_core::execution::step::StepStage;
use rutter_core::execution::view::DeviationSnapshot;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::{PartId, ToolName};
use rutter_core::journal::event::Deviation;
use rutter_core::plan::Driver;
use rutter_core::text::spelled;
use rutter_core::tool::{FailureCategory, ToolFailure};
use schemars::{JsonSchema, Schema, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A call the agent made for a step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepRecord {
    /// `step` or `step[item]`.
    pub step_id: String,
    pub status: StepStatus,
    #[serde(default)]
    pub result: Option<Value>,
    pub error: Option<StepError>,
    /// If not the plan's.
    pub tool: Option<String>,
    /// If not the plan's.
    pub parameters: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Started,
    Completed,
    Failed,
    InDoubt,
}

impl StepStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            StepStatus::Started => "started",
            StepStatus::Completed => "completed",
            StepStatus::Failed => "failed",
            StepStatus::InDoubt => "in_doubt",
        }
    }
}

/// A failure, with or without its category.
#[derive(Clone, Debug)]
pub struct StepError(ToolFailure);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepErrorFields {
    category: Option<FailureCategory>,
    message: String,
}

impl<'de> Deserialize<'de> for StepError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StepError, D::Error> {
        let (category, message) = match Value::deserialize(deserializer)? {
            Value::String(message) => (None, message),
            value @ Value::Object(_) => {
                let fields: StepErrorFields = serde_json::from_value(value).map_err(D::Error::custom)?;
                (fields.category, fields.message)
            }
            _ => return Err(D::Error::custom("expected text, or an object with category and message")),
        };
        Ok(StepError(ToolFailure::new(category.unwrap_or(FailureCategory::ToolError), message)))
    }
}

impl JsonSchema for StepError {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Trouble".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        let categories: Vec<&str> = FailureCategory::ALL.into_iter().map(FailureCategory::as_str).collect();
        let what = format!("Text, or {{category, message}}; categories: {}", categories.join(" "));
        json_schema!({ "type": "string", "description": what })
    }
}

/// The state of the step before the call is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepPosition {
    /// The plan has no such step, and the agent drives.
    Unplanned,
    /// It can start now.
    ToBegin,
    Other,
}

/// Records the call and returns its part.
pub async fn record(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    input: &StepRecord,
    key: Option<String>,
) -> Result<PartId, AppError> {
    app.require(caller, Operation::Record)?;
    let part = part(&input.step_id)?;
    let end = end(input, &part)?;
    let tool = input.tool.as_deref().map(|tool| ToolName::new(&full_name(tool)));
    let parameters = input.parameters.clone().map(|fields| Arc::new(Value::Object(fields)));
    let looked = part.clone();
    let look = move |execution: &Execution| (position_of(execution, &looked), strays(execution, &looked).len());
    let (place, strays_before) = app.engine.inspect(identity, look).await?;
    let is_described = tool.is_some() || parameters.is_some();
    let has_ended = end.is_some();
    let start = ExecutionInput::RecordStarted { part: part.clone(), tool, parameters };
    match (place, end) {
        (StepPosition::Unplanned, _) => {
            send_record(app, caller, identity, as_action("undeclared", input, &part), key.clone()).await?;
        }
        (_, None) => send_record(app, caller, identity, start, key.clone()).await?,
        (place, Some(end)) => {
            // The end alone starts the step as planned; a different call must be recorded first.
            if is_described && place == StepPosition::ToBegin {
                send_record(app, caller, identity, start, part_of(key.as_deref(), "start")).await?;
            }
            send_record(app, caller, identity, end, key.clone()).await?;
        }
    }
    let looked = part.clone();
    let strays = app.engine.inspect(identity, move |execution| strays(execution, &looked)).await?;
    let stray = strays.get(strays_before..).and_then(<[Deviation]>::last);
    // The start of an undeclared call, and a call of a step that the plan does not have, are on record as a whole.
    if let Some(kind) =
        stray.filter(|kind| **kind == Deviation::Duplicate || (has_ended && place != StepPosition::Unplanned))
    {
        // The step takes nothing over from it, but what the agent said must not be lost.
        let details = as_action(&spelled(kind), input, &part);
        send_record(app, caller, identity, details, part_of(key.as_deref(), "details")).await?;
    }
    Ok(part)
}

/// The records of the step that no attempt of it took over.
fn strays(execution: &Execution, part: &PartId) -> Vec<Deviation> {
    let deviations = execution.view().deviations.into_iter();
    let of_step = deviations.filter(|deviation: &DeviationSnapshot| deviation.step.as_ref() == Some(&part.step));
    let kinds = of_step.map(|deviation| deviation.kind);
    kinds.filter(|kind| matches!(kind, Deviation::Duplicate | Deviation::Undeclared)).collect()
}

/// The input for the end of the step, if it ended.
fn end(input: &StepRecord, part: &PartId) -> Result<Option<ExecutionInput>, AppError> {
    let wrong = |message: &str| Err(AppError::new("server.arguments", message));
    let part = part.clone();
    match (input.status, &input.error) {
        (StepStatus::Started | StepStatus::Completed, Some(_)) => {
            wrong("error belongs to the status failed or in_doubt")
        }
        (StepStatus::Failed | StepStatus::InDoubt, None) => wrong("describe the failure in error"),
        (StepStatus::Started | StepStatus::Failed | StepStatus::InDoubt, _) if input.result.is_some() => {
            wrong("result belongs to the status completed")
        }
        (StepStatus::Started, None) => Ok(None),
        (StepStatus::Completed, None) => {
            let result = Arc::new(input.result.clone().unwrap_or(Value::Null));
            Ok(Some(ExecutionInput::RecordFinished { part, result }))
        }
        (status, Some(StepError(failure))) => {
            // After a timeout it is unknown whether the call took effect.
            let maybe = status == StepStatus::InDoubt || failure.category == FailureCategory::Timeout;
            Ok(Some(ExecutionInput::RecordFailed { part, failure: failure.clone(), maybe }))
        }
    }
}

fn position_of(execution: &Execution, part: &PartId) -> StepPosition {
    let is_agents = execution.driver() == Driver::Agent && execution.outcome().is_none();
    let stage = execution.stages().find(|(step, _)| **step == part.step).map(|(_, stage)| stage);
    match execution.part(part).map(|part| &part.state) {
        _ if is_agents && stage.is_none() => StepPosition::Unplanned,
        // Starting a step that waits for a decision is a decision too.
        Some(PartState::Failed { .. }) if stage == Some(StepStage::Held) => StepPosition::ToBegin,
        Some(
            PartState::Pending | PartState::Asking { .. } | PartState::Approved { .. } | PartState::BackingOff { .. },
        ) => StepPosition::ToBegin,
        _ => StepPosition::Other,
    }
}

/// A call that fits no step of the plan, or that its step did not need, as an action with all details.
fn as_action(kind: &str, input: &StepRecord, part: &PartId) -> ExecutionInput {
    let json = json!({
        "status": input.status.as_str(),
        "tool": input.tool,
        "parameters": input.parameters,
        "result": input.result,
        "error": input.error.as_ref().map(|StepError(failure)| failure),
    });
    let filter = json.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let details: Map<String, Value> = filter.map(|(key, value)| (key.clone(), value.clone())).collect();
    let description = match &input.tool {
        Some(tool) => format!("{part}: called {tool}"),
        None => part.to_string(),
    };
    ExecutionInput::RecordAction {
        step: Some(part.step.clone()),
        kind: kind.to_owned(),
        description,
        details: Some(Arc::new(Value::Object(details))),
    }
}
