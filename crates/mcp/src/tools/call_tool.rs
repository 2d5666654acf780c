//! `call_tool`: one call, executed and journaled as a plan of one step.

use crate::ask;
use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::limits::{ANSWER_BYTES, WAIT_MAX};
use rutter_app::principal::McpToolset;
use rutter_app::terse::{bytes, shortened};
use rutter_app::tool_calls::{NewToolCall, STEP, begin};
use rutter_app::wording;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionSnapshot;
use rutter_core::text::cut;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "call_tool",
        title: "Call one tool",
        description: "Call one tool now, journaled as a plan of one step, and return its result. For trying out a \
                      tool; write a plan for calls that belong together.",
        behavior: ToolBehavior::Acts,
        toolsets: &[McpToolset::Admin],
    };
    McpToolDefinition::new::<CallToolArguments, ToolCallResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallToolArguments {
    /// server.tool
    tool: String,
    #[serde(default)]
    parameters: Map<String, Value>,
    #[schemars(required)]
    reason: Option<String>,
    /// Idempotency key.
    request_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ToolCallResult {
    summary: String,
    next: String,
    execution_id: String,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    result: Option<Value>,
}

async fn run(request: ToolRequest, input: CallToolArguments) -> Result<ToolAnswer, AppError> {
    if let Some(heard) = ask::read_replies(&request).await? {
        return end(&request, &heard.identity, heard.declined).await;
    }
    let caller = request.principal();
    let new = NewToolCall { tool: input.tool, parameters: input.parameters, reason: input.reason };
    let identity = begin(&request.app, &caller, new, input.request_id).await?;
    end(&request, &identity, false).await
}

async fn end(request: &ToolRequest, identity: &ExecutionIdentity, declined: bool) -> Result<ToolAnswer, AppError> {
    let settled = match declined {
        true => ask::SettledOrAsking::View(Box::new(request.app.view(identity).await?)),
        false => ask::settle(request, identity, WAIT_MAX).await?,
    };
    match settled {
        ask::SettledOrAsking::Ask(required) => Ok(ToolAnswer::Ask(*required)),
        ask::SettledOrAsking::View(view) => call_answer(request, identity, &view).await,
    }
}

async fn call_answer(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    view: &ExecutionSnapshot,
) -> Result<ToolAnswer, AppError> {
    let result = request.app.look(identity, |execution| execution.result_of(STEP).cloned()).await?;
    let failure = view.steps.first().and_then(|step| step.failure.as_ref());
    let mut output = ToolCallResult {
        summary: match failure {
            Some(failure) => format!("the call failed: {}", cut(&failure.to_string(), 1_000)),
            None => wording::summary(view),
        },
        next: wording::next(view, &request.reader()),
        execution_id: identity.execution.to_string(),
        status: view.status.as_str().to_owned(),
        result: None,
    };
    let room = ANSWER_BYTES.saturating_sub(bytes(&output) + r#","result":"#.len());
    output.result = result.map(|result| shortened(&result, room));
    ToolAnswer::done(&output)
}
