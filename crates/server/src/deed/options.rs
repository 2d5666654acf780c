//! Options of one execution that a plan has fields for: they become a revision, so that what is carried out
//! is what is kept.

use crate::deed::Caller;
use crate::deed::plan::no_plan;
use crate::fault::Fault;
use rutter_core::id::PlanId;
use rutter_core::plan::document::{Document, Format};
use rutter_core::plan::{Driver, PolicyAction};
use rutter_core::time::Millis;
use rutter_engine::submit::PlanText;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Makes a new revision if the plan says otherwise.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecutionOptions {
    // Steps at once.
    concurrency: Option<u32>,
    /// Milliseconds in all.
    timeout: Option<u64>,
    /// false: end as failed instead of waiting.
    pause_on_error: Option<bool>,
}

impl ExecutionOptions {
    /// The revision that says what these options say: the one it is about, if nothing differs.
    pub(crate) async fn revision(
        &self,
        caller: &Caller,
        plan: &PlanId,
        revision: Option<u32>,
        driver: Driver,
    ) -> Result<Option<u32>, Fault> {
        let saved = caller.desk.query.plan(&caller.tenant, plan, revision).await?;
        let saved = saved.ok_or_else(|| no_plan(plan))?.plan;
        let unreadable = |_| Fault::new("server.internal", "a saved plan cannot be read any more");
        let document = Document::read(&saved.source, saved.format).map_err(unreadable)?.value;
        let mut document = Value::clone(&document);
        let mut is_changed = false;
        let mut set = |field: &str, value: Value| {
            document[field] = value;
            is_changed = true;
        };
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
            // It ends by itself already.
            (Some(false), _) => {}
        }
        if !is_changed {
            return Ok(revision);
        }
        let source = document.to_string().into_bytes();
        let text = PlanText { tenant: caller.tenant.clone(), source, format: Format::Json, driver };
        let submitted =
            caller.desk.engine.submit(text, Some(plan.clone()), None, caller.actor.clone()).await?;
        Ok(Some(submitted.saved.revision()))
    }
}
