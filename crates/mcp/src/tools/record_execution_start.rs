//! `record_execution_start`: starts an execution whose calls the agent makes itself.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use crate::tools::recording::RecordedAnswer;
use rutter_app::error::AppError;
use rutter_app::principal::McpToolset;
use rutter_app::records::decision::note_start;
use rutter_app::start::NewExecution;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::Refusal;
use rutter_core::id::PlanId;
use rutter_core::limits::REASON_BYTES_MAX;
use rutter_core::plan::Driver;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "record_execution_start",
        title: "Record the start of an execution",
        description: "Start an execution of a recorded plan: you make the calls, Rutter keeps the journal. Returns what \
                      to call first, and with what. Then record_step after each call.",
        behavior: ToolBehavior::Records,
        toolsets: &[McpToolset::Journal],
    };
    McpToolDefinition::new::<RecordStartArguments, RecordedAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordStartArguments {
    plan_id: String,
    /// Why now, for whom; recorded in the journal.
    notes: Option<String>,
    #[serde(default)]
    inputs: Map<String, Value>,
    request_id: Option<String>,
}

async fn run(tool_request: ToolRequest, input: RecordStartArguments) -> Result<ToolAnswer, AppError> {
    let RecordStartArguments { plan_id, notes, inputs, request_id } = input;
    // Checked here, because the execution is already open when core would refuse it.
    if notes.as_ref().is_some_and(|notes| notes.len() > REASON_BYTES_MAX) {
        let message = format!("notes have at most {REASON_BYTES_MAX} bytes");
        return Err(Refusal::new("execution.text_too_long", message).into());
    }
    let new = NewExecution {
        plan: PlanId::new(&plan_id),
        revision: None,
        inputs: Arc::new(Value::Object(inputs)),
        driver: Driver::Agent,
        request_key: request_id.clone(),
    };
    let started = tool_request.app.start(&tool_request.principal(), new).await?;
    let identity = ExecutionIdentity { tenant: tool_request.principal.tenant.clone(), execution: started.execution };
    if let Some(reason) = notes.filter(|notes| !notes.is_empty()) {
        note_start(&tool_request.app, &tool_request.principal(), &identity, reason, request_id.as_deref()).await?;
    }
    ToolAnswer::done(&RecordedAnswer::of(&tool_request, &identity, "the start is recorded").await?)
}
