//! The facts of a plan: what it does, what can be undone, and how its executions went.

use super::{FactKind, SummaryContent, SummaryFact, SummaryLength, because, quote};
use crate::app::App;
use crate::error::AppError;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::plan::{Plan, Step};
use rutter_core::port::query::{ExecutionFilter, ExecutionSummary, Pagination, PlanSummary};
use rutter_core::preview::{PlanPreview, StepPreview, preview};
use rutter_core::text::spelled;
use rutter_core::time::calendar::utc_seconds;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most executions counted; the summary says if there are more.
const EXECUTIONS_MAX: u32 = 200;

pub async fn account(
    app: &App,
    tenant: &TenantId,
    id: &PlanId,
    length: SummaryLength,
) -> Result<SummaryContent, AppError> {
    let saved = app.query.plan(tenant, id, None).await?;
    let saved = saved.ok_or_else(|| AppError::missing("plan", id.as_str()))?;
    let filter = ExecutionFilter { plan: Some(id.clone()), ..ExecutionFilter::default() };
    let executions = app.query.executions(tenant, filter, Pagination::first(EXECUTIONS_MAX)).await?;
    let preview = preview(&saved.plan);
    let mut facts = of_plan(&saved.plan, &saved.summary, length);
    facts.push(history(&executions.items, executions.next.is_some()));
    facts.push(undo(&preview, length));
    let steps = saved.plan.steps.iter();
    facts.extend(steps.map(|step| of_step(&saved.plan, step, &preview)));
    let approvals = saved.plan.steps.iter().filter(|step| step.approval.is_some());
    facts.extend(approvals.map(|step| {
        SummaryFact::new(
            FactKind::Approval,
            None,
            format!("a person must approve step {} ({})", step.id, step.call.tool),
        )
    }));
    let inputs = required(&saved.plan);
    let next = match inputs.is_empty() {
        true => format!("execute_plan {}", json!({ "plan_id": id })),
        false => format!("execute_plan {} with the inputs {}", json!({ "plan_id": id }), inputs.join(", ")),
    };
    let headline = format!(
        "{} revision {}: {} steps, executed {} times",
        quote(&saved.summary.name, SummaryLength::Brief),
        saved.summary.revision,
        saved.plan.steps.len(),
        count(executions.items.len(), executions.next.is_some())
    );
    Ok(SummaryContent { headline, facts, next, uri: format!("rutter://plans/{id}") })
}

fn of_plan(plan: &Plan, summary: &PlanSummary, length: SummaryLength) -> Vec<SummaryFact> {
    let text = format!(
        "plan {}, revision {}, has {} steps, at most {} at a time; saved by {} on {}",
        quote(&plan.name, length),
        summary.revision,
        plan.steps.len(),
        plan.max_parallel,
        summary.actor,
        utc_seconds(summary.saved_at)
    );
    let mut facts = vec![SummaryFact::new(FactKind::Outcome, None, text)];
    let items = [
        ("the goal is", &plan.goal),
        ("the request was", &plan.about.request),
        ("described as", &plan.about.description),
        ("the author's reasoning:", &plan.about.reasoning),
    ];
    let filter = items.into_iter().filter(|(_, text)| !text.trim().is_empty());
    facts.extend(
        filter.map(|(what, text)| SummaryFact::new(FactKind::Plan, None, format!("{what} {}", quote(text, length)))),
    );
    let inputs = required(plan);
    if !inputs.is_empty() {
        facts.push(SummaryFact::new(FactKind::Question, None, format!("inputs it needs: {}", inputs.join(", "))));
    }
    let mut bounds = format!("deadline {}", plan.deadline);
    if let Some(calls) = plan.budget.calls {
        bounds.push_str(&format!(", at most {calls} calls"));
    }
    if let Some(time) = plan.budget.time {
        bounds.push_str(&format!(", at most {time}"));
    }
    facts.push(SummaryFact::new(FactKind::Spent, None, bounds));
    let action = spelled(&plan.on_failure);
    facts.push(SummaryFact::new(
        FactKind::Plan,
        None,
        format!("when a step fails for good: {action}, unless it says otherwise"),
    ));
    facts
}

fn history(executions: &[ExecutionSummary], more: bool) -> SummaryFact {
    let mut statuses: BTreeMap<&str, usize> = BTreeMap::new();
    executions.iter().for_each(|execution| *statuses.entry(execution.row.status.as_str()).or_default() += 1);
    let parts: Vec<String> = statuses.iter().map(|(status, count)| format!("{status} {count}")).collect();
    let text = match parts.is_empty() {
        true => "never executed".to_owned(),
        false => format!("executed {} times: {}", count(executions.len(), more), parts.join(", ")),
    };
    SummaryFact::new(FactKind::Outcome, executions.first().map(|execution| execution.row.last_at), text)
}

fn count(executions: usize, more: bool) -> String {
    if more { format!("more than {executions}") } else { executions.to_string() }
}

fn undo(preview: &PlanPreview, length: SummaryLength) -> SummaryFact {
    let text = match &preview.point_of_no_return {
        Some(point) => {
            format!("from step {} on not everything can be undone{}", point.step, because(&point.reason, length))
        }
        None => "everything can be undone until the end".to_owned(),
    };
    SummaryFact::new(FactKind::Compensation, None, text)
}

fn of_step(plan: &Plan, step: &Step, preview: &PlanPreview) -> SummaryFact {
    let mut text = format!("step {} calls {} ({})", step.id, step.call.tool, step.call.safety.as_str());
    let needs = plan.find(step.id.as_str()).map(|at| &plan.graph.needs[at]);
    let needs: Vec<String> =
        needs.into_iter().flatten().map(|need| plan.steps[need.step].id.to_string()).take(5).collect();
    if !needs.is_empty() {
        text.push_str(&format!(", after {}", needs.join(", ")));
    }
    let of: Option<&StepPreview> = preview.steps.iter().find(|of| of.step == step.id);
    if let Some(of) = of {
        text.push_str(&format!(", undo {}, {}", spelled(&of.undo.coverage), spelled(&of.guarantee.kind)));
    }
    SummaryFact::new(FactKind::Step, None, text)
}

fn required(plan: &Plan) -> Vec<String> {
    let inputs = plan.inputs.as_ref().and_then(|schema| schema.get("required")).and_then(Value::as_array);
    inputs.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
