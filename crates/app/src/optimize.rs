//! Suggestions for a plan, from its structure, the available tools and the history in the journals.

use crate::app::App;
use crate::error::AppError;
use crate::plans::{DriverChoice, saved_plan};
use crate::principal::Principal;
use crate::rights::Operation;
use rutter_core::optimize::{self, PlanSuggestion};
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::tools::ServerSelection;
use rutter_engine::submit::PlanText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What would improve a plan.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PlanSuggestions")]
pub struct SuggestionsView {
    pub name: String,
    pub suggestions: Vec<SuggestionView>,
    /// What could not be judged, and why.
    pub notes: Vec<String>,
    /// The plan's document with every fix; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
    /// How many fixes it has: one may make another needless.
    #[serde(default)]
    #[schemars(default)]
    pub applied: usize,
    /// What the fixes change together, one line for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub diff: Vec<String>,
    /// The saved plan it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Who can execute it: only an agent, if it names tools that are not registered.
    #[serde(default)]
    pub driver: DriverChoice,
}

/// One suggestion.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PlanSuggestion")]
pub struct SuggestionView {
    pub code: String,
    /// Absent: the plan as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Why, with the figures it rests on.
    pub reason: String,
    /// Why there is no fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// A JSON Patch of the plan's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Vec<Value>>,
    /// What the fix changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub diff: Vec<String>,
}

/// The plan that is to be improved.
#[derive(Clone, Debug)]
pub enum OptimizedPlan {
    Given(PlanText),
    /// By name or id, with or without `@revision`.
    Saved(String),
}

pub async fn optimize_plan(app: &App, caller: &Principal, plan: OptimizedPlan) -> Result<SuggestionsView, AppError> {
    app.require(caller, Operation::CheckPlan)?;
    match plan {
        OptimizedPlan::Given(text) => {
            let plan = app.check(&text).await?.plan;
            suggestions(app, caller, &plan, text.driver).await
        }
        OptimizedPlan::Saved(name) => {
            let saved = saved_plan(app, &caller.tenant, &name, None).await?;
            let driver = saved.plan.driver();
            let view = suggestions(app, caller, &saved.plan, driver).await?;
            Ok(SuggestionsView {
                plan_id: Some(saved.summary.id.to_string()),
                revision: Some(saved.summary.revision),
                ..view
            })
        }
    }
}

/// The suggestions for a checked plan.
pub async fn suggestions(
    app: &App,
    caller: &Principal,
    plan: &Arc<Plan>,
    driver: Driver,
) -> Result<SuggestionsView, AppError> {
    let servers: BTreeSet<String> = plan.steps.iter().flat_map(|step| step.calls()).map(server).collect();
    let catalog = app.catalog(caller, ServerSelection::Named(servers.into_iter().collect())).await?.tools;
    let history = app.insight.tool_history(plan);
    let found = optimize::optimize(plan, &catalog, driver, &history);
    let improved = optimize::improve(plan, &catalog, driver, &history).filter(|better| !better.applied.is_empty());
    let changes = improved.as_ref().map(|better| rutter_core::plan::diff::diff(plan, &better.plan).lines());
    Ok(SuggestionsView {
        name: plan.name.clone(),
        suggestions: found.suggestions.iter().map(SuggestionView::of).collect(),
        notes: found.notes,
        applied: improved.as_ref().map_or(0, |better| better.applied.len()),
        document: improved.map(|better| better.document),
        diff: changes.unwrap_or_default(),
        plan_id: None,
        revision: None,
        driver: driver.into(),
    })
}

fn server(call: &rutter_core::plan::PlannedCall) -> String {
    call.tool.as_str().split('.').next().unwrap_or_default().to_owned()
}

impl SuggestionView {
    fn of(suggestion: &PlanSuggestion) -> SuggestionView {
        SuggestionView {
            code: suggestion.code.to_owned(),
            step: suggestion.step.as_ref().map(ToString::to_string),
            reason: suggestion.reason.clone(),
            doubt: suggestion.doubt.clone(),
            fix: suggestion.fix.as_ref().map(|fix| fix.iter().map(|operation| json!(operation)).collect()),
            diff: suggestion.diff.clone(),
        }
    }
}
