//! Before it happens: what can be undone, what each failure leads to, what is likely, what undoing an execution now would
//! do.

use crate::api::call::Call;
use crate::api::execution::word;
use crate::api::executions::looked;
use crate::api::plans::saved;
use crate::api::reply::Reply;
use crate::api::route::{About, Nothing, Route};
use crate::deed::forecast::{self, Told};
use crate::deed::rollback::Rollback;
use crate::fault::Fault;
use rutter_core::execution::Execution;
use rutter_core::id::{PartId, StepId};
use rutter_core::plan::Plan;
use rutter_core::plan::preview::{StepPreview, WhatIf, preview};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            About::get(
                "/plans/{id}/preview",
                "previewPlan",
                "What can be undone, what each failure leads to, and what is likely",
            ),
            of_plan,
        ),
        Route::new(
            About::get(
                "/executions/{id}/preview",
                "previewExecution",
                "What undoing it now would do, and what is likely if it goes on",
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
    point_of_no_return: Option<NoReturn>,
    /// The longest chain of steps that must follow each other.
    critical_path: Vec<String>,
    /// In the order they are done when nothing fails.
    steps: Vec<Card>,
    /// Of an execution: what undoing it now would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollback: Option<ToldRollback>,
    /// What history says of it; of an execution that goes forward no more, nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    forecast: Option<Told>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct NoReturn {
    step: String,
    reason: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Card {
    step: String,
    undo: String,
    why: String,
    guarantee: String,
    guarantee_why: String,
    /// What follows when nobody can tell whether it happened.
    in_doubt: String,
    what_if: ToldWhatIf,
}

/// The step fails for good, having done nothing.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WhatIf")]
struct ToldWhatIf {
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
struct ToldRollback {
    count: usize,
    in_order: Vec<Undoing>,
    /// With an effect, and nothing to undo it with.
    stays: Vec<String>,
    /// Come to rest first, and are then undone if they can be.
    under_way: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Undoing {
    step: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
}

async fn of_plan(call: Call, query: PreviewQuery) -> Result<Reply<PreviewAnswer>, Fault> {
    let plan = saved(&call, query.revision).await?.plan;
    let forecast = forecast::of_plan(call.desk(), &plan);
    Ok(Reply::ok(PreviewAnswer::of(&plan, None, Some(forecast))))
}

async fn of_execution(call: Call, _: Nothing) -> Result<Reply<PreviewAnswer>, Fault> {
    let identity = call.identity();
    let look =
        |execution: &Execution| (Arc::clone(execution.plan()), Rollback::of(execution), execution.view());
    let (plan, rollback, view) = looked(&call, &identity, look).await?;
    let forecast = forecast::of_execution(call.desk(), &plan, &view);
    Ok(Reply::ok(PreviewAnswer::of(&plan, Some(&rollback), forecast)))
}

impl PreviewAnswer {
    fn of(plan: &Plan, rollback: Option<&Rollback>, forecast: Option<Told>) -> PreviewAnswer {
        let preview = preview(plan);
        let cards = preview.steps.iter().zip(&preview.what_if);
        PreviewAnswer {
            point_of_no_return: preview
                .point_of_no_return
                .as_ref()
                .map(|point| NoReturn { step: point.step.to_string(), reason: point.reason.clone() }),
            critical_path: names(&preview.critical_path),
            steps: cards.map(|(card, what_if)| Card::of(card, what_if)).collect(),
            rollback: rollback.map(ToldRollback::of),
            forecast,
        }
    }
}

impl Card {
    fn of(card: &StepPreview, what_if: &WhatIf) -> Card {
        Card {
            step: card.step.to_string(),
            undo: word(&card.undo.coverage),
            why: card.undo.reason.clone(),
            guarantee: word(&card.guarantee.kind),
            guarantee_why: card.guarantee.reason.clone(),
            in_doubt: card.guarantee.in_doubt.clone(),
            what_if: ToldWhatIf {
                action: word(&what_if.action),
                ends: word(&what_if.ends),
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

impl ToldRollback {
    fn of(rollback: &Rollback) -> ToldRollback {
        let names = |parts: &[PartId]| parts.iter().map(ToString::to_string).collect();
        let undoing = |(part, tool): &(PartId, Option<rutter_core::id::ToolName>)| Undoing {
            step: part.to_string(),
            tool: tool.as_ref().map(ToString::to_string),
        };
        ToldRollback {
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
