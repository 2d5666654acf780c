//! `create_execution_plan`: drafts a plan from selected tools by fixed rules, and checks it like any other.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::draft::{DraftRequest, draft, refuse, unknown};
use rutter_app::error::AppError;
use rutter_app::executions::PlanText;
use rutter_app::plans::{drafted_before, remember_draft, save_plan};
use rutter_app::principal::McpToolset;
use rutter_app::terse::{fitting, object, rows};
use rutter_app::view::StepRulesView;
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::port::tools::{CatalogSnapshot, ServerSelection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// A larger plan is left to its resource.
const PLAN_BYTES_MAX: usize = 5 << 10;
/// The size of each list of parameters; the summary counts all of them.
const LIST_BYTES_MAX: usize = 900;
/// A suggested call whose inputs are larger is shown without them.
const CALL_BYTES_MAX: usize = 600;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "create_execution_plan",
        title: "Draft a plan from tools",
        description: "Draft and save a plan of selected tools, one step each in that order. Deterministic, no model: \
                      parameters come from `context`, earlier results or schemas; unknown ones become inputs, see \
                      `missing`. No compensation is invented. For other plans use save_plan.",
        behavior: ToolBehavior::Keeps,
        toolsets: &[McpToolset::Default],
    };
    McpToolDefinition::new::<CreatePlanArguments, CreatePlanResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreatePlanArguments {
    /// In the user's words.
    request: String,
    /// server.tool, in order.
    selected_tools: Vec<String>,
    /// Values by name; `tool.name` and `server.name` win.
    #[serde(default)]
    context: Map<String, Value>,
    name: Option<String>,
    /// Default true.
    save: Option<bool>,
    request_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CreatePlanResult {
    summary: String,
    next: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u32>,
    // Omitted when it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object")]
    plan: Option<Value>,
    #[schemars(schema_with = "rows")]
    filled: Vec<Value>,
    // Inputs to give when it is executed.
    #[schemars(schema_with = "rows")]
    missing: Vec<Value>,
    // Steps to which a rule of the operator's policy will or may apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    policy: Vec<Value>,
}

async fn run(tool_request: ToolRequest, input: CreatePlanArguments) -> Result<ToolAnswer, AppError> {
    let (caller, key) = (tool_request.principal(), input.request_id.as_deref());
    let keeps = input.save.unwrap_or(true);
    let arguments = json!({ "request": input.request, "selected_tools": input.selected_tools,
        "context": input.context, "name": input.name });
    // Before the tools are asked for: they may be down, changed or gone since.
    if let Some(answer) = drafted_before(&tool_request.app, &caller, &arguments, key.filter(|_| keeps)).await? {
        return ToolAnswer::done(&answer);
    }
    let wanted = DraftRequest {
        request: &input.request,
        name: input.name.as_deref(),
        tools: &input.selected_tools,
        context: &input.context,
    };
    let catalog = catalog(&tool_request, &wanted).await?;
    refuse(&wanted, &catalog.tools, &|words| tool_request.app.search_tools(words, 3)).map_err(|mut error| {
        if let (Some(details), false) = (&mut error.details, catalog.absent.is_empty()) {
            let absent = catalog.absent.iter();
            let absent: Vec<Value> =
                absent.map(|(server, why)| json!({ "server": server, "why": why.to_string() })).collect();
            details["servers_not_reached"] = json!(absent);
        }
        error
    })?;
    let drafted = draft(&wanted, &catalog.tools);
    let text = PlanText {
        tenant: tool_request.principal.tenant.clone(),
        source: drafted.plan.to_string().into_bytes(),
        format: DocumentFormat::Json,
        driver: Driver::Server,
    };
    let (saved, policy) = match keeps {
        true => {
            let submitted = save_plan(&tool_request.app, &caller, text, None, None, None).await?;
            (Some((submitted.id, submitted.saved.revision())), submitted.accepted.policy)
        }
        false => (None, tool_request.app.check(&text).await?.policy),
    };
    let (id, revision) = (saved.as_ref().map(|(id, _)| id.to_string()), saved.as_ref().map(|(_, revision)| *revision));
    let (filled, missing) = (drafted.filled.len(), drafted.missing.len());
    let steps = input.selected_tools.len();
    let state = if id.is_some() { "saved" } else { "checked, not saved" };
    let summary = format!(
        "drafted without a model and {state}: steps {steps}, parameters filled {filled}, inputs missing {missing}"
    );
    let is_visible = drafted.plan.to_string().len() <= PLAN_BYTES_MAX;
    let answer = json!(CreatePlanResult {
        summary,
        next: next(id.as_deref(), &drafted.inputs),
        plan_id: id,
        revision,
        plan: is_visible.then_some(drafted.plan),
        filled: fitting(drafted.filled.iter().map(|filled| json!(filled)), LIST_BYTES_MAX),
        missing: fitting(drafted.missing.iter().map(|missing| json!(missing)), LIST_BYTES_MAX),
        policy: fitting(StepRulesView::all(&policy).iter().map(|step| json!(step)), LIST_BYTES_MAX),
    });
    if let (Some((id, revision)), Some(_)) = (&saved, key) {
        remember_draft(&tool_request.app, &caller, &arguments, key, (id, *revision), answer.clone()).await?;
    }
    ToolAnswer::done(&answer)
}

/// How long all servers together may take to list what could have been meant.
const SUGGESTIONS_WAIT: Duration = Duration::from_secs(5);

/// The tools of the named servers, or of all when one is unknown, so that a similar name can be suggested. Of a server that
/// cannot be reached no other server knows better.
async fn catalog(request: &ToolRequest, wanted: &DraftRequest<'_>) -> Result<CatalogSnapshot, AppError> {
    let began = Instant::now();
    let servers = wanted.tools.iter().filter_map(|tool| tool.split_once('.'));
    let servers = servers.map(|(server, _)| server.to_owned()).collect();
    let catalog = request.app.catalog(&request.principal, ServerSelection::Named(servers)).await?;
    let is_unreachable = |tool: &&str| catalog.tools.is_unreachable(tool);
    match unknown(wanted, &catalog.tools).iter().all(is_unreachable) {
        true => Ok(catalog),
        false => {
            // A suggestion is not worth waiting for a server that hangs.
            let asking = request.app.catalog(&request.principal, ServerSelection::All);
            let left = SUGGESTIONS_WAIT.saturating_sub(began.elapsed());
            tokio::time::timeout(left, asking).await.unwrap_or(Ok(catalog))
        }
    }
}

fn next(plan: Option<&str>, inputs: &Map<String, Value>) -> String {
    let Some(plan) = plan else {
        return "create_execution_plan without save: false, or save_plan".to_owned();
    };
    let call = match inputs.is_empty() {
        true => json!({ "plan_id": plan }),
        false => json!({ "plan_id": plan, "inputs": inputs }),
    };
    let undo = "no step declares a compensation; find_tools may have one, and save_plan with plan_id adds it";
    let call = call.to_string();
    match call.len() <= CALL_BYTES_MAX {
        true => format!("execute_plan {call}; {undo}"),
        false => format!("execute_plan {} with the inputs in `missing`; {undo}", json!({ "plan_id": plan })),
    }
}
