//! A saved plan, without its text.

use rutter_core::port::query::PlanSummary;
use rutter_core::time::calendar::utc;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub struct PlanView {
    pub plan_id: String,
    pub name: String,
    pub revision: u32,
    pub hash: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub goal: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The number of steps.
    pub steps: u32,
    pub saved_at: String,
    /// Who saved this revision.
    pub by: String,
    /// Not listed and not startable.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub is_archived: bool,
    /// This revision was made for one execution, and is not the newest of the plan.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub is_for_execution: bool,
}

impl PlanView {
    pub fn of(plan: &PlanSummary) -> PlanView {
        PlanView {
            plan_id: plan.id.to_string(),
            name: plan.name.clone(),
            revision: plan.revision,
            hash: plan.hash.to_string(),
            goal: plan.goal.clone(),
            tags: plan.tags.clone(),
            steps: plan.steps,
            saved_at: utc(plan.saved_at),
            by: plan.actor.to_string(),
            is_archived: plan.is_archived,
            is_for_execution: plan.is_for_execution,
        }
    }
}
