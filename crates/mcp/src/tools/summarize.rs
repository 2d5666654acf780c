//! `summarize`: an execution or a plan in words, from recorded facts only.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::plans::find_plan;
use rutter_app::principal::McpToolset;
use rutter_app::summary::{self, SummaryFormat, SummaryLength};
use rutter_app::terse::object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "summarize",
        title: "Summarize an execution or a plan",
        description: "Describe an execution or a plan in words, only from facts in the journal or the plan; no model. \
                      Use to report to the user. `focus`: words to rank by, or key_points, actionable_items, executive, \
                      comprehensive.",
        behavior: ToolBehavior::Reads,
        toolsets: &[McpToolset::Default],
    };
    McpToolDefinition::new::<SummarizeArguments, SummarizeResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SummarizeArguments {
    execution_id: Option<String>,
    plan_id: Option<String>,
    #[serde(default)]
    format: SummaryFormat,
    #[serde(default)]
    length: SummaryLength,
    focus: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SummarizeResult {
    summary: String,
    next: String,
    text: String,
    #[schemars(with = "String")]
    format: SummaryFormat,
    #[schemars(with = "String")]
    length: SummaryLength,
    // How many facts of each kind.
    #[schemars(schema_with = "object")]
    facts: BTreeMap<String, usize>,
    resource_uri: String,
}

async fn run(request: ToolRequest, input: SummarizeArguments) -> Result<ToolAnswer, AppError> {
    let app = &request.app;
    let account = match (&input.execution_id, &input.plan_id) {
        (Some(id), None) => {
            summary::execution::account(app, &request.reader(), &request.identity(id), input.length).await?
        }
        (None, Some(id)) => {
            let (saved, _) = find_plan(app, &request.principal.tenant, id).await?;
            summary::plan::account(app, &request.principal.tenant, &saved.summary.id, input.length).await?
        }
        _ => {
            return Err(AppError::new("server.arguments", "give either execution_id or plan_id")
                .hint("query_history finds executions, find_plans finds plans"));
        }
    };
    let text = summary::write(&account, input.format, input.length, input.focus.as_deref());
    ToolAnswer::done(&SummarizeResult {
        facts: account.counts(),
        summary: account.headline,
        next: account.next,
        text,
        format: input.format,
        length: input.length,
        resource_uri: account.uri,
    })
}
