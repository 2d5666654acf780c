//! `save_plan`: checks a plan like a compiler and saves it.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::plans::{DriverChoice, PlanInput, save_plan};
use rutter_app::principal::McpToolset;
use rutter_app::terse::{fitting, object, rows};
use rutter_app::view::SavedPlanView;
use rutter_core::preview::{StepPreview, preview};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Size limits of a result; `preview` returns everything.
const WARNINGS_BYTES_MAX: usize = 4 << 10;
const GUARANTEES_BYTES_MAX: usize = 2 << 10;
const POLICY_BYTES_MAX: usize = 2 << 10;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "save_plan",
        title: "Save a plan",
        description: "Check a plan of tool calls and save it under its name. Use before execute_plan. Reports all \
                      mistakes at once, with pointers and fixes. `dry_run` only checks. `plan_id`: save \
                      as that plan's next revision.",
        behavior: ToolBehavior::Keeps,
        toolsets: &[McpToolset::Default],
    };
    McpToolDefinition::new::<SavePlanArguments, SavePlanResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SavePlanArguments {
    plan: PlanInput,
    plan_id: Option<String>,
    /// Refused if there is a newer one.
    expected_revision: Option<u32>,
    #[serde(default)]
    driver: DriverChoice,
    /// Idempotency key.
    request_id: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SavePlanResult {
    summary: String,
    next: String,
    // Absent after a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u32>,
    #[schemars(skip)]
    steps_count: usize,
    // Warnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rows")]
    warnings: Vec<Value>,
    // What can be undone, and from which step on not.
    #[schemars(schema_with = "object")]
    undo: Value,
    // Steps to which a rule of the operator's policy will or may apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    policy: Vec<Value>,
}

async fn run(tool_request: ToolRequest, input: SavePlanArguments) -> Result<ToolAnswer, AppError> {
    let text = input.plan.text(&tool_request.principal.tenant, input.driver.into())?;
    let app = &tool_request.app;
    let (accepted, view) = match input.dry_run {
        true => {
            let accepted = app.check(&text).await?;
            let view = SavedPlanView::checked(&accepted);
            (accepted, view)
        }
        false => {
            let request = input.request_id.as_deref();
            let submitted = save_plan(
                app,
                &tool_request.principal(),
                text,
                input.plan_id.as_deref(),
                input.expected_revision,
                request,
            )
            .await?;
            let view = SavedPlanView::of(&submitted);
            (submitted.accepted, view)
        }
    };
    let preview = preview(&accepted.plan);
    ToolAnswer::done(&SavePlanResult {
        next: match &view.plan_id {
            None => "save_plan without dry_run".to_owned(),
            Some(id) => format!("execute_plan {}", json!({ "plan_id": id })),
        },
        summary: view.summary,
        plan_id: view.plan_id,
        revision: view.revision,
        steps_count: view.steps_count,
        warnings: fitting(view.warnings.iter().map(|found| json!(found)), WARNINGS_BYTES_MAX),
        undo: json!({
            "point_of_no_return": view.point_of_no_return,
            "guarantees": fitting(preview.steps.iter().map(card), GUARANTEES_BYTES_MAX),
        }),
        policy: fitting(view.policy.iter().map(|step| json!(step)), POLICY_BYTES_MAX),
    })
}

fn card(step: &StepPreview) -> Value {
    json!({ "step": step.step, "undo": step.undo.coverage, "guarantee": step.guarantee.kind })
}
