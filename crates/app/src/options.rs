//! Options of one execution that are fields of the plan: they become a revision for this execution alone, so that the
//! saved plan is the one that is executed.

use crate::error::AppError;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::{Plan, PolicyAction};
use rutter_core::time::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecutionOptions {
    // Steps in parallel.
    concurrency: Option<u32>,
    /// Total milliseconds.
    timeout: Option<u64>,
    /// false: end as failed instead of waiting.
    pause_on_error: Option<bool>,
}

impl ExecutionOptions {
    /// Whether nothing is asked for, as without options.
    pub(crate) fn is_empty(&self) -> bool {
        *self == ExecutionOptions::default()
    }

    /// The plan with these options; `None` if nothing differs.
    pub fn plan(&self, plan: &Plan) -> Result<Option<Arc<Plan>>, AppError> {
        let mut changes: Vec<(&str, Value)> = Vec::new();
        let mut set = |field, value| changes.push((field, value));
        if let Some(concurrency) = self.concurrency.filter(|count| *count != plan.max_parallel) {
            set("max_parallel", json!(concurrency));
        }
        if let Some(timeout) = self.timeout.map(Millis).filter(|timeout| *timeout != plan.deadline) {
            set("deadline", json!(format!("{}ms", timeout.0)));
        }
        match (self.pause_on_error, plan.on_failure) {
            (Some(true), PolicyAction::ManualDecision) | (None, _) => {}
            (Some(true), _) => set("on_failure", json!("manual_decision")),
            (Some(false), PolicyAction::ManualDecision) => set("on_failure", json!("cancel_all")),
            // It ends without waiting already.
            (Some(false), _) => {}
        }
        if changes.is_empty() {
            return Ok(None);
        }
        let refused = |found| AppError::from(rutter_engine::Error::Plan { found, absent: Vec::new() });
        let document = PlanDocument::read(&plan.source, plan.format).map_err(refused)?;
        let mut value = Value::clone(&document.value);
        let fields = match value.get("plan").is_some_and(Value::is_object) {
            true => &mut value["plan"],
            false => &mut value,
        };
        for (field, change) in changes {
            fields[field] = change;
        }
        let changed = PlanDocument::read(value.to_string().as_bytes(), DocumentFormat::Json).map_err(refused)?;
        plan.revised(&changed).map(Some).map_err(refused)
    }
}
