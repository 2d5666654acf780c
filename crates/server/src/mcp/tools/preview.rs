//! `preview`: what a plan would do, what can be undone, what each failure leads to; of an execution also what
//! undoing it now would do.

use crate::deed::forecast;
use crate::deed::plan::{Drives, SamePlanInput, no_plan};
use crate::deed::rollback::Rollback;
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::limits::ANSWER_BYTES;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::execution::looked;
use crate::mcp::tools::terse::{bytes, fitting, object, rows, shortened};
use crate::mcp::visit::Visit;
use crate::words::cut;
use rutter_core::execution::Execution;
use rutter_core::execution::view::View;
use rutter_core::id::PlanId;
use rutter_core::plan::Plan;
use rutter_core::plan::preview::{Preview, StepPreview, WhatIf, preview};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

const REASON_CHARS_MAX: usize = 120;
/// What undoing would do, and the whole story of one step.
const ROLLBACK_BYTES_MAX: usize = 2_500;
const STEP_BYTES_MAX: usize = 3_000;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "preview",
        title: "Preview a plan or an undo",
        description: "Before it happens: per step what can be undone, how often its effect can happen, what its \
                      failure leads to; the point of no return; chance, time and riskiest step by what history \
                      has. Of an execution also what undoing it now would do.",
        nature: Nature::Reads,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// One of plan, plan_id, execution_id.
    plan: Option<SamePlanInput>,
    plan_id: Option<String>,
    revision: Option<u32>,
    execution_id: Option<String>,
    /// What if this one fails, in full.
    step: Option<String>,
    #[serde(default)]
    driver: Drives,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    summary: String,
    next: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "object")]
    point_of_no_return: Value,
    #[schemars(schema_with = "rows")]
    steps: Vec<Value>,
    // Steps that are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    more: Option<usize>,
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(skip)]
    what_if: Value,
    // What undoing the execution now would do.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "object")]
    rollback: Value,
    // Of an execution that goes forward no more there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    forecast: Option<forecast::Told>,
}

/// What is to be looked at.
struct Subject {
    plan: Arc<Plan>,
    /// Of an execution.
    standing: Option<(Rollback, View)>,
    next: String,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let subject = subject(&visit, &input).await?;
    let preview = preview(&subject.plan);
    let forecast = match &subject.standing {
        Some((_, view)) => forecast::of_execution(&visit.desk, &subject.plan, view),
        None => Some(forecast::of_plan(&visit.desk, &subject.plan)),
    };
    let mut output = Output {
        summary: summary(&subject, &preview),
        next: subject.next,
        point_of_no_return: json!(preview.point_of_no_return),
        steps: Vec::new(),
        more: None,
        what_if: Value::Null,
        rollback: subject.standing.as_ref().map_or(Value::Null, |(rollback, _)| rollback_json(rollback)),
        forecast,
    };
    let cards = preview.steps.iter().zip(&preview.what_if);
    match &input.step {
        Some(step) => {
            let missing = || Fault::new("server.arguments", format!("the plan has no step {step:?}"));
            let (card, what_if) =
                cards.into_iter().find(|(card, _)| card.step.as_str() == step).ok_or_else(missing)?;
            output.steps = vec![whole(card)];
            output.what_if = what_if_whole(what_if);
        }
        None => {
            let room = ANSWER_BYTES.saturating_sub(bytes(&output) + r#","more":1000"#.len());
            output.steps = fitting(cards.map(|(card, what_if)| row(card, what_if)), room);
            output.more = Some(preview.steps.len() - output.steps.len()).filter(|more| *more > 0);
        }
    }
    Answer::done(&output)
}

async fn subject(visit: &Visit, input: &Input) -> Result<Subject, Fault> {
    let engine = &visit.desk.engine;
    match (&input.plan, &input.plan_id, &input.execution_id) {
        (Some(plan), None, None) => {
            let text = plan.0.text(&visit.guest.tenant, input.driver.into())?;
            let plan = engine.check(&text).await?.plan;
            let next = "save_plan".to_owned();
            Ok(Subject { plan, standing: None, next })
        }
        (None, Some(id), None) => {
            let id = PlanId::new(id);
            let saved = visit.desk.query.plan(&visit.guest.tenant, &id, input.revision).await?;
            let plan = saved.ok_or_else(|| no_plan(&id))?.plan;
            let next = format!("execute_plan {}", json!({ "plan_id": id }));
            Ok(Subject { plan, standing: None, next })
        }
        (None, None, Some(id)) => {
            let identity = visit.identity(id);
            let look = |execution: &Execution| {
                (Arc::clone(execution.plan()), Rollback::of(execution), execution.view())
            };
            let (plan, rollback, view) = looked(visit, &identity, look).await?;
            let next = match rollback.parts.is_empty() {
                true => format!("status {}", json!({ "execution_id": id })),
                false => {
                    let arguments = json!({ "execution_id": id, "action": "compensate", "reason": "…" });
                    format!("control {arguments} to undo")
                }
            };
            Ok(Subject { plan, standing: Some((rollback, view)), next })
        }
        _ => Err(Fault::new("server.arguments", "give one of plan, plan_id and execution_id")),
    }
}

fn summary(subject: &Subject, preview: &Preview) -> String {
    let steps = preview.steps.len();
    let covered = preview.steps.iter().filter(|step| !step.undo.coverage.leaves_something()).count();
    let mut text = format!("{covered} of {steps} steps leave nothing that cannot be undone");
    match &preview.point_of_no_return {
        Some(point) => text.push_str(&format!("; no way back after {} begins", point.step)),
        None => text.push_str("; everything can be undone to the end"),
    }
    if let Some((rollback, _)) = &subject.standing {
        text.push_str(&format!("; undoing now would undo {} effects", rollback.parts.len()));
    }
    text
}

fn row(card: &StepPreview, what_if: &WhatIf) -> Value {
    json!({
        "step": card.step,
        "undo": card.undo.coverage,
        "why": cut(&card.undo.reason, REASON_CHARS_MAX),
        "guarantee": card.guarantee.kind,
        "in_doubt": cut(&card.guarantee.in_doubt, REASON_CHARS_MAX),
        "if_it_fails": what_if.ends,
    })
}

fn whole(card: &StepPreview) -> Value {
    json!({
        "step": card.step,
        "undo": card.undo.coverage,
        "why": card.undo.reason,
        "guarantee": card.guarantee.kind,
        "guarantee_why": card.guarantee.reason,
        "in_doubt": card.guarantee.in_doubt,
    })
}

/// Lists of a large plan are cut, each by itself, so that none hides another.
fn what_if_whole(what_if: &WhatIf) -> Value {
    let mut value = json!(what_if);
    let Value::Object(fields) = &mut value else { return value };
    fields.retain(|_, field| field.as_array().is_none_or(|list| !list.is_empty()));
    let each = STEP_BYTES_MAX / fields.len().max(1);
    for field in fields.values_mut() {
        let Value::Array(list) = field else { continue };
        let kept = fitting(list.iter().cloned(), each);
        let left_out = list.len() - kept.len();
        *list = kept;
        if left_out > 0 {
            list.push(json!(format!("and {left_out} more")));
        }
    }
    value
}

fn rollback_json(rollback: &Rollback) -> Value {
    let undone: Vec<Value> =
        rollback.parts.iter().map(|(part, tool)| json!({ "step": part, "tool": tool })).collect();
    let count = undone.len();
    let undone = fitting(undone, ROLLBACK_BYTES_MAX);
    let mut value = json!({ "count": count, "in_order": undone });
    for (name, parts) in [("stays", &rollback.stays), ("under_way", &rollback.under_way)] {
        if !parts.is_empty() {
            value[name] = shortened(&json!(parts), ROLLBACK_BYTES_MAX / 4);
        }
    }
    value
}
