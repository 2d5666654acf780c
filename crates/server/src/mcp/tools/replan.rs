//! `replan`: another plan for an execution under way, as a diff; without one, what is needed to write it.

mod brief;

use crate::deed::plan::SamePlanInput;
use crate::deed::replan::{carry_out, propose};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::execution::looked;
use crate::mcp::tools::terse::text;
use crate::mcp::visit::Visit;
use crate::words::{self, cut};
use rutter_core::execution::view::View;
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::plan::Plan;
use rutter_core::port::query::{ExecutionFilter, History, Page};
use rutter_engine::Signal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const DIFF_LINES_MAX: usize = 60;
const LINE_CHARS_MAX: usize = 100;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "replan",
        title: "Change a plan under way",
        description: "Give an execution under way another plan: finished steps and their undo stay, the rest follows \
                      the new plan. Shows the diff; `dry_run` only shows it. Without `plan`: what you need to write \
                      one.",
        nature: Nature::Steers,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    execution_id: Option<String>,
    /// Instead of execution_id.
    plan_id: Option<String>,
    plan: Option<SamePlanInput>,
    reason: String,
    #[serde(default)]
    dry_run: bool,
    /// Checked against the journal.
    #[serde(default)]
    completed_steps: Vec<Named>,
    #[serde(default)]
    failed_steps: Vec<Named>,
    /// Kept as context.
    #[serde(default)]
    execution_state: Map<String, Value>,
    #[serde(default)]
    #[schemars(schema_with = "text")]
    new_information: Value,
    /// Makes asking twice safe.
    request_id: Option<String>,
}

/// A step by its id, or by its number where steps are numbered.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Named {
    Number(u32),
    Id(String),
}

impl JsonSchema for Named {
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

impl Named {
    fn id(&self) -> String {
        match self {
            Named::Number(number) => format!("step_{number}"),
            Named::Id(id) => id.clone(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
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
    // Where the journal says something else than you.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contradictions: Vec<String>,
    // What is done, what failed and why, what could replace it, and the plan as it is.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(skip)]
    brief: Value,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    if input.reason.trim().is_empty() {
        return Err(Fault::new("server.arguments", "a new plan needs a reason; it stands in the journal"));
    }
    let identity =
        Identity { tenant: visit.guest.tenant.clone(), execution: execution(&visit, &input).await? };
    let look = |execution: &Execution| (Arc::clone(execution.plan()), execution.view());
    let (plan, view) = looked(&visit, &identity, look).await?;
    let contradictions = contradictions(&input, &view)?;
    match &input.plan {
        Some(new) => change(&visit, &identity, &input, new, (&plan, &view), contradictions).await,
        None => {
            let brief = brief::brief(&visit, &plan, &view);
            let arguments = json!({ "execution_id": identity.execution, "plan": {}, "reason": "…" });
            Answer::done(&Output {
                summary: format!("nothing is changed yet; {}", words::summary(&view)),
                next: format!(
                    "write the new plan and call replan {arguments}; `dry_run` shows the diff first"
                ),
                execution_id: identity.execution.to_string(),
                status: view.status.as_str().to_owned(),
                is_applied: false,
                revision: None,
                diff: Vec::new(),
                contradictions,
                brief,
            })
        }
    }
}

/// The one that is meant.
async fn execution(visit: &Visit, input: &Input) -> Result<ExecutionId, Fault> {
    let plan = match (&input.execution_id, &input.plan_id) {
        (Some(id), _) => return Ok(ExecutionId::new(id)),
        (None, Some(plan)) => PlanId::new(plan),
        (None, None) => return Err(Fault::new("server.arguments", "give execution_id, or plan_id")),
    };
    let filter = ExecutionFilter { plan: Some(plan.clone()), ..History::Incomplete.filter() };
    let found = visit.desk.query.executions(&visit.guest.tenant, filter, Page::first(5)).await?.items;
    match found.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => Err(Fault::missing("execution under way of plan", plan.as_str())
            .hint("execute_plan starts one; save_plan with plan_id changes the plan itself")),
        several => {
            let ids: Vec<&str> = several.iter().map(|execution| execution.id.as_str()).collect();
            let message = format!("plan {plan} has several executions under way: {}", ids.join(", "));
            Err(Fault::new("server.arguments", message).hint("name one with execution_id"))
        }
    }
}

/// Where what was said of steps is not what the journal says.
fn contradictions(input: &Input, view: &View) -> Result<Vec<String>, Fault> {
    let failed: Vec<String> = input.failed_steps.iter().map(Named::id).collect();
    let completed: Vec<String> = input.completed_steps.iter().map(Named::id).collect();
    if let Some(both) = completed.iter().find(|step| failed.contains(step)) {
        let message = format!("{both:?} stands in completed_steps and in failed_steps");
        return Err(Fault::new("server.arguments", message));
    }
    let is_failed =
        |status: &str| matches!(status, "failed" | "waiting" | "in_doubt" | "compensation_failed");
    let mut found = Vec::new();
    for (said, steps) in [("completed", &completed), ("failed", &failed)] {
        for id in steps {
            let step = view.steps.iter().find(|step| step.id.as_str() == id);
            match step.map(|step| step.status) {
                None => found.push(format!("the plan has no step {id:?}")),
                Some("completed") if said == "completed" => {}
                Some(status) if said == "failed" && is_failed(status) => {}
                Some(status) => found.push(format!("you say {id} is {said}, the journal says {status}")),
            }
        }
    }
    Ok(found)
}

async fn change(
    visit: &Visit,
    identity: &Identity,
    input: &Input,
    new: &SamePlanInput,
    (old, view): (&Plan, &View),
    contradictions: Vec<String>,
) -> Result<Answer, Fault> {
    let (caller, key) = (visit.caller(), input.request_id.as_deref());
    let proposal = propose(&caller, identity, (old, view.driver), &new.0, &input.reason, key).await?;
    let lines = &proposal.lines;
    let mut shown: Vec<String> =
        lines.iter().take(DIFF_LINES_MAX).map(|line| cut(line, LINE_CHARS_MAX)).collect();
    if lines.len() > shown.len() {
        shown.push(format!("and {} more changes", lines.len() - shown.len()));
    }
    let mut output = Output {
        summary: format!("the new plan makes {} changes; nothing is changed yet", lines.len()),
        next: "replan without dry_run".to_owned(),
        execution_id: identity.execution.to_string(),
        status: view.status.as_str().to_owned(),
        is_applied: false,
        revision: None,
        diff: shown,
        contradictions,
        brief: Value::Null,
    };
    if input.dry_run {
        return Answer::done(&output);
    }
    remember(visit, identity, input).await?;
    let (reason, key) = (input.reason.clone(), input.request_id.clone());
    let revision = carry_out(&caller, identity, proposal, reason, key, None).await?;
    let view = visit.desk.engine.view(identity).await?;
    output.summary = format!("it follows revision {revision} now; {}", words::summary(&view));
    output.next = words::next(&view);
    output.status = view.status.as_str().to_owned();
    (output.is_applied, output.revision) = (true, Some(revision));
    Answer::done(&output)
}

/// Keeps what was learnt where whoever goes on finds it.
async fn remember(visit: &Visit, identity: &Identity, input: &Input) -> Result<(), Fault> {
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
    Ok(visit.desk.engine.signal(identity, visit.agent(), Signal::SaveContext { values }, request).await?)
}
