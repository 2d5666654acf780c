//! `replan`: gives an unfinished execution another plan and returns the diff; without one, what is needed to write it.

mod brief;

use crate::execution_answer::{ITEMS_MAX, inspect_execution};
use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::plans::{SamePlanInput, find_plan};
use rutter_app::principal::McpToolset;
use rutter_app::records::save_context;
use rutter_app::replan::{ReplanOutcome, carry_out, propose, repeated};
use rutter_app::terse::text;
use rutter_app::view::{DeliveryView, ExecutionView};
use rutter_app::wording;
use rutter_core::execution::view::ExecutionSnapshot;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::ExecutionId;
use rutter_core::plan::Plan;
use rutter_core::port::query::{ExecutionFilter, HistoryFilter, Pagination};
use rutter_core::text::cut;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const DIFF_LINES_MAX: usize = 60;
const LINE_CHARS_MAX: usize = 100;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "replan",
        title: "Replan an execution",
        description: "Give an execution another plan, also after its end: finished steps and their undo stay, the rest \
                      follows the new plan. Shows the diff; `dry_run` only shows it. Without `plan`: what you need to write \
                      one.",
        behavior: ToolBehavior::Steers,
        toolsets: &[McpToolset::Default],
    };
    McpToolDefinition::new::<ReplanArguments, ReplanResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplanArguments {
    execution_id: Option<String>,
    /// Instead of execution_id.
    plan_id: Option<String>,
    plan: Option<SamePlanInput>,
    #[schemars(required)]
    reason: Option<String>,
    #[serde(default)]
    dry_run: bool,
    /// Checked against the journal.
    #[serde(default)]
    completed_steps: Vec<StepReference>,
    #[serde(default)]
    failed_steps: Vec<StepReference>,
    /// Recorded as context.
    #[serde(default)]
    execution_state: Map<String, Value>,
    #[serde(default)]
    #[schemars(schema_with = "text")]
    new_information: Value,
    /// Idempotency key.
    request_id: Option<String>,
}

/// A step by its id, or by its number in numbered plans.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum StepReference {
    Number(u32),
    Id(String),
}

impl JsonSchema for StepReference {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Step".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] })
    }
}

impl StepReference {
    fn id(&self) -> String {
        match self {
            StepReference::Number(number) => format!("step_{number}"),
            StepReference::Id(id) => id.clone(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReplanResult {
    summary: String,
    next: String,
    execution_id: String,
    status: String,
    is_applied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    revision: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diff: Vec<String>,
    // Where the journal contradicts the arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contradictions: Vec<String>,
    // Completed and failed steps, reasons, alternative tools, and the present plan.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(skip)]
    brief: Value,
    #[serde(flatten)]
    #[schemars(skip)]
    delivery: DeliveryView,
}

impl ReplanResult {
    fn unchanged(
        identity: &ExecutionIdentity,
        view: &ExecutionSnapshot,
        diff: Vec<String>,
        contradictions: Vec<String>,
    ) -> ReplanResult {
        ReplanResult {
            summary: String::new(),
            next: "replan without dry_run".to_owned(),
            execution_id: identity.execution.to_string(),
            status: view.status.as_str().to_owned(),
            is_applied: false,
            revision: None,
            diff,
            contradictions,
            brief: Value::Null,
            delivery: DeliveryView::default(),
        }
    }
}

async fn run(request: ToolRequest, input: ReplanArguments) -> Result<ToolAnswer, AppError> {
    let identity =
        ExecutionIdentity { tenant: request.principal.tenant.clone(), execution: execution(&request, &input).await? };
    let look = |execution: &Execution| (Arc::clone(execution.plan()), execution.view());
    let (plan, view) = inspect_execution(&request, &identity, look).await?;
    let contradictions = contradictions(&input, &view)?;
    match &input.plan {
        Some(new) => change(&request, &identity, &input, new, (&plan, &view), contradictions).await,
        None => {
            let brief = brief::brief(&request, &plan, &view);
            let arguments = json!({ "execution_id": identity.execution, "plan": {}, "reason": "…" });
            ToolAnswer::done(&ReplanResult {
                summary: format!("nothing has changed yet; {}", wording::summary(&view)),
                next: format!("write the new plan and call replan {arguments}; `dry_run` shows the diff first"),
                execution_id: identity.execution.to_string(),
                status: view.status.as_str().to_owned(),
                is_applied: false,
                revision: None,
                diff: Vec::new(),
                contradictions,
                brief,
                delivery: DeliveryView::default(),
            })
        }
    }
}

/// The execution that the arguments name.
async fn execution(request: &ToolRequest, input: &ReplanArguments) -> Result<ExecutionId, AppError> {
    let plan = match (&input.execution_id, &input.plan_id) {
        (Some(id), _) => return Ok(ExecutionId::new(id)),
        (None, Some(plan)) => find_plan(&request.app, &request.principal.tenant, plan).await?.0.summary.id,
        (None, None) => return Err(AppError::new("server.arguments", "give execution_id, or plan_id")),
    };
    let filter = ExecutionFilter { plan: Some(plan.clone()), ..HistoryFilter::Incomplete.filter() };
    let found = request.app.query.executions(&request.principal.tenant, filter, Pagination::first(5)).await?.items;
    match found.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => Err(AppError::missing("execution under way of plan", plan.as_str())
            .hint("execute_plan starts one; save_plan with plan_id changes the plan itself")),
        several => {
            let ids: Vec<&str> = several.iter().map(|execution| execution.id.as_str()).collect();
            let message = format!("plan {plan} has several unfinished executions: {}", ids.join(", "));
            Err(AppError::new("server.arguments", message).hint("name one with execution_id"))
        }
    }
}

/// Compares the arguments about steps with the journal.
fn contradictions(input: &ReplanArguments, view: &ExecutionSnapshot) -> Result<Vec<String>, AppError> {
    let failed: Vec<String> = input.failed_steps.iter().map(StepReference::id).collect();
    let completed: Vec<String> = input.completed_steps.iter().map(StepReference::id).collect();
    if let Some(both) = completed.iter().find(|step| failed.contains(step)) {
        let message = format!("{both:?} is in completed_steps and in failed_steps");
        return Err(AppError::new("server.arguments", message));
    }
    let is_failed = |status: &str| matches!(status, "failed" | "waiting" | "in_doubt" | "compensation_failed");
    let mut found = Vec::new();
    for (statement, steps) in [("completed", &completed), ("failed", &failed)] {
        for id in steps {
            let step = view.steps.iter().find(|step| step.id.as_str() == id);
            match step.map(|step| step.status) {
                None => found.push(format!("the plan has no step {id:?}")),
                Some("completed") if statement == "completed" => {}
                Some(status) if statement == "failed" && is_failed(status) => {}
                Some(status) => found.push(format!("you say {id} is {statement}, the journal says {status}")),
            }
        }
    }
    Ok(found)
}

async fn change(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    input: &ReplanArguments,
    new: &SamePlanInput,
    (old, view): (&Plan, &ExecutionSnapshot),
    contradictions: Vec<String>,
) -> Result<ToolAnswer, AppError> {
    let (caller, key) = (request.principal(), input.request_id.as_deref().filter(|_| !input.dry_run));
    if let Some(outcome) = repeated(&request.app, &caller, identity, &new.0, input.reason.as_deref(), key).await? {
        let texts = Vec::new();
        let output = ReplanResult::unchanged(identity, view, texts, contradictions);
        return followed(request, identity, output, outcome).await;
    }
    let proposal = propose(&request.app, &caller, identity, (old, view.driver), &new.0, input.reason.clone()).await?;
    let lines = &proposal.lines;
    let mut texts: Vec<String> = lines.iter().take(DIFF_LINES_MAX).map(|line| cut(line, LINE_CHARS_MAX)).collect();
    if lines.len() > texts.len() {
        texts.push(format!("and {} more changes", lines.len() - texts.len()));
    }
    let summary = format!("the new plan makes {} changes; nothing has changed yet", lines.len());
    let output = ReplanResult { summary, ..ReplanResult::unchanged(identity, view, texts, contradictions) };
    if input.dry_run {
        return ToolAnswer::done(&output);
    }
    remember(request, identity, input).await?;
    let key = input.request_id.clone();
    let outcome = carry_out(&request.app, &caller, identity, proposal, key, None).await?;
    followed(request, identity, output, outcome).await
}

/// The answer about an execution that follows the new plan, or waits for a person's yes to it.
async fn followed(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    mut output: ReplanResult,
    outcome: ReplanOutcome,
) -> Result<ToolAnswer, AppError> {
    let revision = outcome.revision;
    let view = request.app.view(identity).await?;
    let what = if outcome.is_applied { "it now follows" } else { "a person must approve" };
    output.summary = format!("{what} revision {revision}; {}", wording::summary(&view));
    output.next = wording::next(&view, &request.reader());
    output.status = view.status.as_str().to_owned();
    output.delivery = ExecutionView::of(None, &view, &request.reader()).short(ITEMS_MAX).delivery();
    (output.is_applied, output.revision) = (outcome.is_applied, Some(revision));
    ToolAnswer::done(&output)
}

/// Records the context of the change in the journal, for whichever client continues the execution.
async fn remember(
    tool_request: &ToolRequest,
    identity: &ExecutionIdentity,
    input: &ReplanArguments,
) -> Result<(), AppError> {
    let mut values = Map::new();
    if !input.execution_state.is_empty() {
        values.insert("execution_state".to_owned(), Value::Object(input.execution_state.clone()));
    }
    if !input.new_information.is_null() {
        values.insert("new_information".to_owned(), input.new_information.clone());
    }
    if values.is_empty() {
        return Ok(());
    }
    let request = input.request_id.as_ref().map(|id| format!("{id}/context"));
    save_context(&tool_request.app, &tool_request.principal(), identity, values, request).await
}
