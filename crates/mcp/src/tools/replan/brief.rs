//! What is needed to write another plan: what must stay, what failed and why, and alternative tools.

use crate::tool_request::ToolRequest;
use rutter_app::terse::{fitting, shortened};
use rutter_core::execution::view::{ExecutionSnapshot, StepSnapshot};
use rutter_core::plan::Plan;
use rutter_core::text::cut;
use serde_json::{Value, json};

const SOURCE_BYTES_MAX: usize = 3_200;
const LIST_BYTES_MAX: usize = 800;
const FAILED_MAX: usize = 5;
const WHY_CHARS_MAX: usize = 200;
/// Alternative tools per failed step.
const CANDIDATES_MAX: usize = 3;

pub(super) fn brief(request: &ToolRequest, plan: &Plan, view: &ExecutionSnapshot) -> Value {
    let with = |wanted: &dyn Fn(&StepSnapshot) -> bool| {
        let steps = view.steps.iter().filter(|step| wanted(step)).map(|step| json!(step.id));
        fitting(steps, LIST_BYTES_MAX)
    };
    let is_failed = |step: &StepSnapshot| step.failure.is_some() && step.status != "completed";
    let failed = view.steps.iter().filter(|step| is_failed(step)).take(FAILED_MAX);
    let failed: Vec<Value> = failed.map(|step| failure(request, plan, step)).collect();
    let source = String::from_utf8_lossy(&plan.source).into_owned();
    json!({
        "keep_as_they_are": with(&|step| step.status == "completed" || step.touched),
        "failed": failed,
        "free_to_change": with(&|step| step.status == "pending" && !step.touched),
        "rule": "a completed step keeps its id and call, or is left out (its undo stays); another call needs another id",
        "plan": shortened(&Value::String(source), SOURCE_BYTES_MAX),
    })
}

fn failure(request: &ToolRequest, plan: &Plan, step: &StepSnapshot) -> Value {
    let why = step.failure.as_ref().map(|failure| cut(&failure.to_string(), WHY_CHARS_MAX));
    let planned = plan.find(step.id.as_str()).map(|at| &plan.steps[at]);
    let words = planned.map(|planned| format!("{} {} {}", planned.name, planned.description, step.id));
    let words = format!("{} {}", words.unwrap_or_default(), step.tool.as_str().replace(['.', '_', '-'], " "));
    let found = request.app.search_tools(&words, CANDIDATES_MAX + 1);
    let instead: Vec<&str> = found
        .iter()
        .map(|tool| tool.as_str())
        .filter(|tool| *tool != step.tool.as_str())
        .take(CANDIDATES_MAX)
        .collect();
    json!({ "step": step.id, "tool": step.tool, "why": why, "touched": step.touched, "instead": instead })
}
