//! `record_compensation`: records what the agent undid by hand.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use crate::tools::recording::RecordedAnswer;
use rutter_app::error::AppError;
use rutter_app::principal::McpToolset;
use rutter_app::records::RecordDetails;
use rutter_app::records::compensation::{CompensationRecord, record};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "record_compensation",
        title: "Record a compensation",
        description: "Record that you have undone the effect of a step by hand, after you did. The step is then \
                      compensated and will not be undone again. Refused if nothing took effect, or while it is in \
                      doubt.",
        behavior: ToolBehavior::Records,
        toolsets: &[McpToolset::Default, McpToolset::Journal],
    };
    McpToolDefinition::new::<RecordCompensationArguments, RecordedAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordCompensationArguments {
    execution_id: String,
    step_id: String,
    #[schemars(required)]
    reason: Option<String>,
    action_taken: String,
    details: Option<RecordDetails>,
    request_id: Option<String>,
}

async fn run(request: ToolRequest, input: RecordCompensationArguments) -> Result<ToolAnswer, AppError> {
    let identity = request.identity(&input.execution_id);
    let RecordCompensationArguments { step_id, reason, action_taken, details, .. } = input;
    let undone = CompensationRecord { step_id, reason, action_taken, details };
    let part = record(&request.app, &request.principal(), &identity, undone, input.request_id).await?;
    let what = format!("recorded that {part} was undone by hand");
    ToolAnswer::done(&RecordedAnswer::of(&request, &identity, &what).await?)
}
