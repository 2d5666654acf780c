//! `record_decision`: records what the agent decided about an execution, and why.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use crate::tools::recording::RecordedAnswer;
use rutter_app::error::AppError;
use rutter_app::principal::McpToolset;
use rutter_app::records::RecordDetails;
use rutter_app::records::decision::{DecisionAction, DecisionRecord, record};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "record_decision",
        title: "Record a decision",
        description: "Record what you decided and why. `stop` cancels the execution; `continue` also answers a \
                      failed step or a limit that waits for a decision; `end` says that you are finished.",
        behavior: ToolBehavior::Steers,
        toolsets: &[McpToolset::Default, McpToolset::Journal],
    };
    McpToolDefinition::new::<RecordDecisionArguments, RecordedAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordDecisionArguments {
    execution_id: String,
    action: DecisionAction,
    #[schemars(required)]
    reason: Option<String>,
    details: Option<RecordDetails>,
    step_id: Option<String>,
    request_id: Option<String>,
}

async fn run(request: ToolRequest, input: RecordDecisionArguments) -> Result<ToolAnswer, AppError> {
    let identity = request.identity(&input.execution_id);
    let RecordDecisionArguments { action, reason, details, step_id, .. } = input;
    let decision = DecisionRecord { action, reason, details, step_id };
    let word = record(&request.app, &request.principal(), &identity, decision, input.request_id).await?;
    let what = format!("recorded the decision to {word}");
    ToolAnswer::done(&RecordedAnswer::of(&request, &identity, &what).await?)
}
