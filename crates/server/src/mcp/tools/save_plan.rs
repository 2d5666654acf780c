//! `save_plan`: checks a plan like a compiler and keeps it.

use crate::deed::plan::{Drives, PlanInput, keep};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::terse::{fitting, object, rows};
use crate::mcp::visit::Visit;
use rutter_core::id::PlanId;
use rutter_core::plan::preview::{StepPreview, preview};
use rutter_core::port::journal::Saved;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Of an answer; `preview` says all of it.
const WARNINGS_BYTES_MAX: usize = 4 << 10;
const GUARANTEES_BYTES_MAX: usize = 2 << 10;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "save_plan",
        title: "Save a plan",
        description: "Check a plan of tool calls and keep it. Use before execute_plan. All mistakes come at once, \
                      with pointers and fixes. `dry_run` only checks. `plan_id`: save as its next revision.",
        nature: Nature::Keeps,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    plan: PlanInput,
    plan_id: Option<String>,
    /// Refused if there is a newer one.
    expected_revision: Option<u32>,
    #[serde(default)]
    driver: Drives,
    /// Makes asking twice safe.
    request_id: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    summary: String,
    next: String,
    // Absent after a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u32>,
    #[schemars(skip)]
    steps_count: usize,
    // What is doubtful.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rows")]
    warnings: Vec<Value>,
    // What can be undone, and from where on it cannot.
    #[schemars(schema_with = "object")]
    undo: Value,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let text = input.plan.text(&visit.guest.tenant, input.driver.into())?;
    let engine = &visit.desk.engine;
    let (accepted, id, saved) = match input.dry_run {
        true => (engine.check(&text).await?, None, None),
        false => {
            let id = input.plan_id.as_deref().map(PlanId::new);
            let request = input.request_id.as_deref();
            let submitted = keep(&visit.caller(), text, id, input.expected_revision, request).await?;
            (submitted.accepted, Some(submitted.id), Some(submitted.saved))
        }
    };
    let warnings = fitting(accepted.found.iter().map(|found| json!(found)), WARNINGS_BYTES_MAX);
    let preview = preview(&accepted.plan);
    let name = &accepted.plan.name;
    let summary = match saved {
        None => {
            format!("the plan {name:?} has no mistakes, {} warnings; nothing was saved", accepted.found.len())
        }
        Some(Saved::New { revision }) => format!("saved {name:?} as revision {revision}"),
        Some(Saved::Already { revision }) => format!("{name:?} is already saved as revision {revision}"),
    };
    let next = match &id {
        None => "save_plan without dry_run".to_owned(),
        Some(id) => format!("execute_plan {}", json!({ "plan_id": id })),
    };
    Answer::done(&Output {
        summary,
        next,
        plan_id: id.map(|id| id.to_string()),
        revision: saved.map(Saved::revision),
        steps_count: accepted.plan.steps.len(),
        warnings,
        undo: json!({
            "point_of_no_return": preview.point_of_no_return,
            "guarantees": fitting(preview.steps.iter().map(card), GUARANTEES_BYTES_MAX),
        }),
    })
}

fn card(step: &StepPreview) -> Value {
    json!({ "step": step.step, "undo": step.undo.coverage, "guarantee": step.guarantee.kind })
}
