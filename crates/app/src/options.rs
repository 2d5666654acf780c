//! Options of one execution that are fields of the plan: they become a new revision, so that the saved plan is the one
//! that is executed.

use crate::app::App;
use crate::error::AppError;
use crate::plans::no_plan;
use crate::principal::Principal;
use crate::rights::{Operation, require};
use rutter_core::id::PlanId;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::{Driver, PolicyAction};
use rutter_core::time::Millis;
use rutter_engine::submit::PlanText;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Makes a new revision if the plan differs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
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
    /// Returns the revision with these options: the given one, if nothing differs.
    pub async fn revision(
        &self,
        app: &App,
        caller: &Principal,
        plan: &PlanId,
        revision: Option<u32>,
        driver: Driver,
    ) -> Result<Option<u32>, AppError> {
        require(caller, Operation::SavePlan)?;
        let saved = app.query.plan(&caller.tenant, plan, revision).await?;
        let saved = saved.ok_or_else(|| no_plan(plan))?.plan;
        let mut changes: Vec<(&str, Value)> = Vec::new();
        let mut set = |field, value| changes.push((field, value));
        if let Some(concurrency) = self.concurrency.filter(|count| *count != saved.max_parallel) {
            set("max_parallel", json!(concurrency));
        }
        if let Some(timeout) = self.timeout.map(Millis).filter(|timeout| *timeout != saved.deadline) {
            set("deadline", json!(format!("{}ms", timeout.0)));
        }
        match (self.pause_on_error, saved.on_failure) {
            (Some(true), PolicyAction::ManualDecision) | (None, _) => {}
            (Some(true), _) => set("on_failure", json!("manual_decision")),
            (Some(false), PolicyAction::ManualDecision) => set("on_failure", json!("cancel_all")),
            // It ends without waiting already.
            (Some(false), _) => {}
        }
        if changes.is_empty() {
            return Ok(revision);
        }
        let unreadable = |_| AppError::new("server.internal", "a saved plan can no longer be read");
        let document = PlanDocument::read(&saved.source, saved.format).map_err(unreadable)?.value;
        let mut document = Value::clone(&document);
        for (field, value) in changes {
            document[field] = value;
        }
        let source = document.to_string().into_bytes();
        let text = PlanText { tenant: caller.tenant.clone(), source, format: DocumentFormat::Json, driver };
        let submitted = app.engine.submit(text, Some(plan.clone()), None, caller.actor()).await?;
        Ok(Some(submitted.saved.revision()))
    }
}
