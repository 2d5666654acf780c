//! `preview`: what a plan would do, what can be undone, what each failure leads to; for an execution also what undoing
//! it now would do.

use crate::execution_answer::inspect_execution;
use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::forecast;
use rutter_app::limits::ANSWER_BYTES;
use rutter_app::optimize;
use rutter_app::plans::{DriverChoice, SamePlanInput, preview_plan, saved_plan};
use rutter_app::principal::McpToolset;
use rutter_app::rollback::Rollback;
use rutter_app::terse::{bytes, fitting, object, rows, shortened};
use rutter_app::view::{PreviewView, RollbackView, StepPreviewView};
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::view::ExecutionSnapshot;
use rutter_core::plan::Plan;
use rutter_core::preview::PlanPreview;
use rutter_core::text::cut;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

const REASON_CHARS_MAX: usize = 120;
/// Size limits of the rollback, and of the details of one step.
const ROLLBACK_BYTES_MAX: usize = 2_500;
const STEP_BYTES_MAX: usize = 3_000;
/// The size of the rules of one step in a list.
const POLICY_BYTES_MAX: usize = 1_000;
const SUGGESTIONS_BYTES_MAX: usize = 2_500;
/// The size of the plan with all fixes. A larger one is had over HTTP, or by carrying out the fixes.
const DOCUMENT_BYTES_MAX: usize = 3_000;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "preview",
        title: "Preview a plan or an undo",
        description: "Before it happens: per step what can be undone, how often its effect can happen, what its \
                      failure leads to; the point of no return; probability, duration and riskiest step from past \
                      executions. For an execution also what undoing it now would do.",
        behavior: ToolBehavior::Reads,
        toolsets: &[McpToolset::Default],
    };
    McpToolDefinition::new::<PreviewArguments, PreviewResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewArguments {
    /// One of plan, plan_id, execution_id.
    plan: Option<SamePlanInput>,
    plan_id: Option<String>,
    revision: Option<u32>,
    execution_id: Option<String>,
    /// Details of what happens if this step fails.
    step: Option<String>,
    #[serde(default)]
    driver: DriverChoice,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PreviewResult {
    summary: String,
    next: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "object")]
    point_of_no_return: Value,
    #[schemars(schema_with = "rows")]
    steps: Vec<Value>,
    // How many steps are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    more: Option<usize>,
    // What undoing the execution now would do.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "object")]
    rollback: Value,
    // Absent for an execution that makes no more forward steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    forecast: Option<forecast::ForecastJson>,
    // What would improve a plan; each with its reason, and a fix where it is certain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    suggestions: Vec<Value>,
    // The plan with every fix, where it is short enough.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(skip)]
    document: Value,
}

/// What is previewed.
struct PreviewSubject {
    plan: Arc<Plan>,
    /// For an execution.
    standing: Option<(Rollback, ExecutionSnapshot)>,
    /// Who has a say in its calls.
    principals: Option<Vec<Actor>>,
    next: String,
}

async fn run(request: ToolRequest, input: PreviewArguments) -> Result<ToolAnswer, AppError> {
    let subject = subject(&request, &input).await?;
    let forecast = match &subject.standing {
        Some((_, view)) => forecast::of_execution(&request.app, &subject.plan, view),
        None => Some(forecast::of_plan(&request.app, &subject.plan)),
    };
    let rollback = subject.standing.as_ref().map(|(rollback, _)| rollback);
    let tenant = &request.principal.tenant;
    let plan_preview = preview_plan(&request.app, &subject.plan, tenant, subject.principals.as_deref());
    let preview = PreviewView::of(&plan_preview, rollback, forecast);
    let mut output = PreviewResult {
        summary: summary(&subject, &plan_preview),
        next: subject.next,
        point_of_no_return: json!(preview.point_of_no_return),
        steps: Vec::new(),
        more: None,
        rollback: preview.rollback.as_ref().map_or(Value::Null, rollback_json),
        forecast: preview.forecast,
        suggestions: Vec::new(),
        document: Value::Null,
    };
    if subject.standing.is_none() && input.step.is_none() {
        let driver = input.driver.into();
        let mut found = optimize::suggestions(&request.app, &request.principal, &subject.plan, driver).await?;
        // The fix says it all.
        found.suggestions.iter_mut().for_each(|one| one.diff.clear());
        output.suggestions = fitting(found.suggestions.iter().map(|one| json!(one)), SUGGESTIONS_BYTES_MAX);
        output.document = found.document.filter(|document| bytes(document) <= DOCUMENT_BYTES_MAX).unwrap_or_default();
    }
    match &input.step {
        Some(id) => {
            let missing = || AppError::new("server.arguments", format!("the plan has no step {id:?}"));
            let step = preview.steps.iter().find(|step| step.step == *id).ok_or_else(missing)?;
            output.steps = vec![whole(step)];
        }
        None => {
            let room = ANSWER_BYTES.saturating_sub(bytes(&output) + r#","more":1000"#.len());
            output.steps = fitting(preview.steps.iter().map(row), room);
            output.more = Some(preview.steps.len() - output.steps.len()).filter(|more| *more > 0);
        }
    }
    ToolAnswer::done(&output)
}

async fn subject(request: &ToolRequest, input: &PreviewArguments) -> Result<PreviewSubject, AppError> {
    let app = &request.app;
    match (&input.plan, &input.plan_id, &input.execution_id) {
        (Some(plan), None, None) => {
            let text = plan.0.text(&request.principal.tenant, input.driver.into())?;
            let plan = app.check(&text).await?.plan;
            let next = "save_plan".to_owned();
            Ok(PreviewSubject { plan, standing: None, principals: None, next })
        }
        (None, Some(id), None) => {
            let saved = saved_plan(app, &request.principal.tenant, id, input.revision).await?;
            let next = format!("execute_plan {}", json!({ "plan_id": saved.summary.id }));
            let plan = saved.plan;
            Ok(PreviewSubject { plan, standing: None, principals: None, next })
        }
        (None, None, Some(id)) => {
            let identity = request.identity(id);
            let look = |execution: &Execution| {
                let (plan, principals) = (Arc::clone(execution.plan()), execution.principals().to_vec());
                (plan, principals, Rollback::of(execution), execution.view())
            };
            let (plan, principals, rollback, view) = inspect_execution(request, &identity, look).await?;
            let next = match rollback.parts.is_empty() {
                true => format!("status {}", json!({ "execution_id": id })),
                false => {
                    let arguments = json!({ "execution_id": id, "action": "undo", "reason": "…" });
                    format!("control {arguments} to undo")
                }
            };
            Ok(PreviewSubject { plan, standing: Some((rollback, view)), principals: Some(principals), next })
        }
        _ => Err(AppError::new("server.arguments", "give one of plan, plan_id and execution_id")),
    }
}

fn summary(subject: &PreviewSubject, preview: &PlanPreview) -> String {
    let steps = preview.steps.len();
    let covered = preview.steps.iter().filter(|step| !step.undo.coverage.leaves_something()).count();
    let mut text = format!("{covered} of {steps} steps can be undone or leave no effect");
    match &preview.point_of_no_return {
        Some(point) => text.push_str(&format!("; point of no return: the start of {}", point.step)),
        None => text.push_str("; everything can be undone until the end"),
    }
    if let Some((rollback, _)) = &subject.standing {
        text.push_str(&format!("; an undo now would undo {} effects", rollback.parts.len()));
    }
    text
}

/// A step in a list: of its failure only how the execution ends.
fn row(step: &StepPreviewView) -> Value {
    let mut row = json!({
        "step": step.step,
        "undo": step.undo,
        "why": cut(&step.why, REASON_CHARS_MAX),
        "guarantee": step.guarantee,
        "in_doubt": cut(&step.in_doubt, REASON_CHARS_MAX),
        "what_if": { "ends": step.what_if.ends },
    });
    if !step.policy.is_empty() {
        row["policy"] = json!(fitting(step.policy.iter().map(|rule| json!(rule)), POLICY_BYTES_MAX));
    }
    row
}

/// One step. Each list of a large plan is cut separately, so that all of them appear.
fn whole(step: &StepPreviewView) -> Value {
    let mut value = json!(step);
    if !step.policy.is_empty() {
        value["policy"] = json!(fitting(step.policy.iter().map(|rule| json!(rule)), STEP_BYTES_MAX));
    }
    let Some(Value::Object(fields)) = value.get_mut("what_if") else { return value };
    fields.retain(|_, field| field.as_array().is_none_or(|list| !list.is_empty()));
    let each = STEP_BYTES_MAX / fields.len().max(1);
    for field in fields.values_mut() {
        let Value::Array(list) = field else { continue };
        let stored = fitting(list.iter().cloned(), each);
        let left_out = list.len() - stored.len();
        *list = stored;
        if left_out > 0 {
            list.push(json!(format!("and {left_out} more")));
        }
    }
    value
}

fn rollback_json(rollback: &RollbackView) -> Value {
    let undone = fitting(rollback.in_order.iter().map(|call| json!(call)), ROLLBACK_BYTES_MAX);
    let mut value = json!({ "count": rollback.count, "in_order": undone });
    for (name, parts) in [("stays", &rollback.stays), ("under_way", &rollback.under_way)] {
        if !parts.is_empty() {
            value[name] = shortened(&json!(parts), ROLLBACK_BYTES_MAX / 4);
        }
    }
    value
}
