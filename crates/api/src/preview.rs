//! Previews: what can be undone, what each failure leads to, a forecast, and what undoing an execution now would do.

use crate::executions::inspect_execution;
use crate::plans::saved;
use crate::reply::ApiReply;
use crate::request::ApiRequest;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::forecast::{self, ForecastJson};
use rutter_app::rollback::Rollback;
use rutter_core::execution::Execution;
use rutter_core::id::{PartId, StepId};
use rutter_core::plan::Plan;
use rutter_core::plan::preview::{StepPreview, WhatIfScenario, preview};
use rutter_core::text::spelled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::new(
            RouteSpec::get(
                "/plans/{id}/preview",
                "previewPlan",
                "Preview a plan: what can be undone, what each failure leads to, and a forecast",
            ),
            of_plan,
        ),
        ApiRoute::new(
            RouteSpec::get(
                "/executions/{id}/preview",
                "previewExecution",
                "Preview undoing an execution now, with a forecast of its rest",
            ),
            of_execution,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewQuery {
    /// Default: the newest.
    #[schemars(range(min = 1))]
    revision: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Preview")]
struct PreviewAnswer {
    /// The first step after whose start not everything can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    point_of_no_return: Option<NoReturnJson>,
    /// The longest chain of steps that must follow each other.
    critical_path: Vec<String>,
    /// In the order they run when nothing fails.
    steps: Vec<StepPreviewJson>,
    /// For an execution: what undoing it now would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollback: Option<RollbackJson>,
    /// The forecast from history; absent for an execution that makes no more forward steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    forecast: Option<ForecastJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct NoReturnJson {
    step: String,
    reason: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StepPreviewJson {
    step: String,
    undo: String,
    why: String,
    guarantee: String,
    guarantee_why: String,
    /// What happens when it is unknown whether the step took effect.
    in_doubt: String,
    what_if: WhatIfJson,
}

/// The step fails permanently, without effect.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WhatIf")]
struct WhatIfJson {
    action: String,
    ends: String,
    completed: Vec<String>,
    continue_with: Vec<String>,
    held: Vec<String>,
    cancelled: Vec<String>,
    skipped: Vec<String>,
    undone: Vec<String>,
    undoable: Vec<String>,
    remains: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Rollback")]
struct RollbackJson {
    count: usize,
    in_order: Vec<UndoCallJson>,
    /// Steps with an effect and no compensation.
    stays: Vec<String>,
    /// Running steps, which finish first and are then undone if possible.
    under_way: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct UndoCallJson {
    step: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
}

async fn of_plan(call: ApiRequest, query: PreviewQuery) -> Result<ApiReply<PreviewAnswer>, AppError> {
    let plan = saved(&call, query.revision).await?.plan;
    let forecast = forecast::of_plan(call.app(), &plan);
    Ok(ApiReply::ok(PreviewAnswer::of(&plan, None, Some(forecast))))
}

async fn of_execution(call: ApiRequest, _: NoParameters) -> Result<ApiReply<PreviewAnswer>, AppError> {
    let identity = call.identity();
    let look = |execution: &Execution| (Arc::clone(execution.plan()), Rollback::of(execution), execution.view());
    let (plan, rollback, view) = inspect_execution(&call, &identity, look).await?;
    let forecast = forecast::of_execution(call.app(), &plan, &view);
    Ok(ApiReply::ok(PreviewAnswer::of(&plan, Some(&rollback), forecast)))
}

impl PreviewAnswer {
    fn of(plan: &Plan, rollback: Option<&Rollback>, forecast: Option<ForecastJson>) -> PreviewAnswer {
        let preview = preview(plan);
        let cards = preview.steps.iter().zip(&preview.what_if);
        PreviewAnswer {
            point_of_no_return: preview
                .point_of_no_return
                .as_ref()
                .map(|point| NoReturnJson { step: point.step.to_string(), reason: point.reason.clone() }),
            critical_path: names(&preview.critical_path),
            steps: cards.map(|(card, what_if)| StepPreviewJson::of(card, what_if)).collect(),
            rollback: rollback.map(RollbackJson::of),
            forecast,
        }
    }
}

impl StepPreviewJson {
    fn of(card: &StepPreview, what_if: &WhatIfScenario) -> StepPreviewJson {
        StepPreviewJson {
            step: card.step.to_string(),
            undo: spelled(&card.undo.coverage),
            why: card.undo.reason.clone(),
            guarantee: spelled(&card.guarantee.kind),
            guarantee_why: card.guarantee.reason.clone(),
            in_doubt: card.guarantee.in_doubt.clone(),
            what_if: WhatIfJson {
                action: spelled(&what_if.action),
                ends: spelled(&what_if.ends),
                completed: names(&what_if.completed),
                continue_with: names(&what_if.continue_with),
                held: names(&what_if.held),
                cancelled: names(&what_if.cancelled),
                skipped: names(&what_if.skipped),
                undone: names(&what_if.undone),
                undoable: names(&what_if.undoable),
                remains: names(&what_if.remains),
            },
        }
    }
}

impl RollbackJson {
    fn of(rollback: &Rollback) -> RollbackJson {
        let names = |parts: &[PartId]| parts.iter().map(ToString::to_string).collect();
        let undoing = |(part, tool): &(PartId, Option<rutter_core::id::ToolName>)| UndoCallJson {
            step: part.to_string(),
            tool: tool.as_ref().map(ToString::to_string),
        };
        RollbackJson {
            count: rollback.parts.len(),
            in_order: rollback.parts.iter().map(undoing).collect(),
            stays: names(&rollback.stays),
            under_way: names(&rollback.under_way),
        }
    }
}

fn names(steps: &[StepId]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}
