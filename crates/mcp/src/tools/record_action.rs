//! `record_action`: records what the agent did outside the steps of the plan.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use crate::tools::recording::RecordedAnswer;
use rutter_app::error::AppError;
use rutter_app::principal::McpToolset;
use rutter_app::records::RecordDetails;
use rutter_app::records::action::{ActionRecord, ActionType, record};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "record_action",
        title: "Record an action",
        description: "Record something you did by hand around an execution: stopped, cleaned up, notified, rolled back. \
                      Changes no step: use record_step for the plan's calls, record_compensation for what you undid.",
        behavior: ToolBehavior::Records,
        toolsets: &[McpToolset::Default, McpToolset::Journal],
    };
    McpToolDefinition::new::<RecordActionArguments, RecordedAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordActionArguments {
    execution_id: String,
    step_id: Option<String>,
    action_type: ActionType,
    description: String,
    details: Option<RecordDetails>,
    request_id: Option<String>,
}

async fn run(request: ToolRequest, input: RecordActionArguments) -> Result<ToolAnswer, AppError> {
    let identity = request.identity(&input.execution_id);
    let RecordActionArguments { step_id, action_type, description, details, .. } = input;
    let action = ActionRecord { step_id, action_type, description, details };
    let kind = record(&request.app, &request.principal(), &identity, action, input.request_id).await?;
    ToolAnswer::done(&RecordedAnswer::of(&request, &identity, &format!("recorded the action {kind}")).await?)
}
