//! The result of a call that the agent made itself.

use crate::app::App;
use crate::command::part;
use crate::error::AppError;
use crate::principal::Principal;
use crate::records::{answered, full_name};
use crate::request_key::RequestKey;
use crate::rights::Operation;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{PartId, ToolName};
use rutter_core::tool::{FailureCategory, ToolFailure};
use rutter_engine::report::{AgentReport, ReportedEnd, StepReport};
use schemars::{JsonSchema, Schema, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value};
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

/// Records the call as one command, and returns its part.
pub async fn record(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    input: &StepRecord,
    key: Option<String>,
) -> Result<PartId, AppError> {
    app.require(caller, Operation::Record)?;
    let part = part(&input.step_id)?;
    let report = StepReport {
        part: part.clone(),
        status: input.status.as_str().to_owned(),
        tool: input.tool.as_deref().map(|tool| ToolName::new(&full_name(tool))),
        named: input.tool.clone(),
        parameters: input.parameters.clone().map(|fields| Arc::new(Value::Object(fields))),
        end: end(input)?,
    };
    let key = RequestKey::of(caller, key.as_deref())?;
    let recorded = app.engine.report(identity, caller.actor(), AgentReport::Step(report), key.stored.clone()).await;
    answered(app, caller, identity, key, recorded).await?;
    Ok(part)
}

/// How the call ended, if it has.
fn end(input: &StepRecord) -> Result<Option<ReportedEnd>, AppError> {
    let wrong = |message: &str| Err(AppError::new("server.arguments", message));
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
            Ok(Some(ReportedEnd::Done { result, is_silent: input.result.is_none() }))
        }
        (status, Some(StepError(failure))) => {
            // After a timeout it is unknown whether the call took effect.
            let maybe = status == StepStatus::InDoubt || failure.category == FailureCategory::Timeout;
            Ok(Some(ReportedEnd::Failed { failure: failure.clone(), maybe }))
        }
    }
}
