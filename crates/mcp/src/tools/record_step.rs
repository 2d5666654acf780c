//! `record_step`: records the outcome of a call the agent made itself.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use crate::tools::recording::RecordedAnswer;
use rutter_app::error::AppError;
use rutter_app::principal::McpToolset;
use rutter_app::records::step::{StepError, StepRecord, StepStatus, record};
use rutter_app::terse::object;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "record_step",
        title: "Record a step",
        description: "Record a call you made for a step of an execution you drive: `started` before it, `completed` or \
                      `failed` after. `in_doubt`: it may have happened (timeout, lost answer); do not repeat it. \
                      Returns what is next and any deviation from the plan.",
        behavior: ToolBehavior::Records,
        toolsets: &[McpToolset::Default, McpToolset::Journal],
    };
    McpToolDefinition::new::<RecordStepArguments, RecordedAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordStepArguments {
    execution_id: String,
    step_id: String,
    status: StepStatus,
    // Accepts any value; some clients cannot read a schema without a type.
    #[serde(default)]
    #[schemars(schema_with = "object")]
    result: Option<Value>,
    error: Option<StepError>,
    /// If not the plan's.
    tool: Option<String>,
    /// If not the plan's.
    parameters: Option<Map<String, Value>>,
    /// Idempotency key.
    request_id: Option<String>,
}

async fn run(request: ToolRequest, input: RecordStepArguments) -> Result<ToolAnswer, AppError> {
    let identity = request.identity(&input.execution_id);
    let RecordStepArguments { step_id, status, result, error, tool, parameters, .. } = input;
    let step_record = StepRecord { step_id, status, result, error, tool, parameters };
    let part = record(&request.app, &request.principal(), &identity, &step_record, input.request_id).await?;
    let what = format!("recorded {part} as {}", status.as_str());
    ToolAnswer::done(&RecordedAnswer::of_step(&request, &identity, &part.step, &what).await?)
}
