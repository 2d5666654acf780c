//! Starts executions: of a saved plan, or of one given with the request. A repeated request gets its first answer.

use crate::app::App;
use crate::error::AppError;
use crate::options::ExecutionOptions;
use crate::plans::state::refuse_archived;
use crate::plans::{given, no_plan, saved_plan, store_plan};
use crate::principal::Principal;
use crate::request_key::{RequestKey, digest};
use crate::rights::Operation;
use rutter_core::hash::Hash;
use rutter_core::id::PlanId;
use rutter_core::plan::Driver;
use rutter_core::port;
use rutter_core::port::journal::IdempotentRequest;
use rutter_engine::submit::PlanText;
use rutter_engine::{StartRequest, StartedExecution};
use serde_json::{Value, json};
use std::sync::Arc;

/// A request to execute a plan, as the caller made it.
#[derive(Clone, Debug)]
pub struct ExecutionRequest {
    pub plan: PlanChoice,
    pub inputs: Arc<Value>,
    pub driver: Driver,
    pub options: Option<ExecutionOptions>,
    /// An idempotency key: a second request with it gets the execution of the first.
    pub request_key: Option<String>,
}

#[derive(Clone, Debug)]
pub enum PlanChoice {
    /// By id or name; the newest revision, if none is named.
    Saved { plan: String, revision: Option<u32> },
    /// Saved on the way.
    Given(PlanText),
}

impl PlanChoice {
    /// Either a saved plan or a given one.
    pub fn of(plan: Option<&str>, revision: Option<u32>, given: Option<PlanText>) -> Result<PlanChoice, AppError> {
        match (plan, given) {
            (Some(plan), None) => Ok(PlanChoice::Saved { plan: plan.to_owned(), revision }),
            (None, Some(_)) if revision.is_some() => {
                Err(AppError::new("server.arguments", "revision is for a saved plan; this request brings its own"))
            }
            (None, Some(text)) => Ok(PlanChoice::Given(text)),
            _ => Err(AppError::new("server.arguments", "give either plan_id or plan")
                .hint("save_plan returns a plan_id; find_plans finds one")),
        }
    }
}

/// A saved plan to be executed.
#[derive(Clone, Debug)]
pub struct NewExecution {
    pub plan: PlanId,
    /// The newest, if none is named.
    pub revision: Option<u32>,
    pub inputs: Arc<Value>,
    pub driver: Driver,
    /// An idempotency key: a second request with it gets the execution of the first.
    pub request_key: Option<String>,
}

impl App {
    /// Starts an execution of a saved plan. It is recorded when this returns.
    pub async fn start(&self, caller: &Principal, new: NewExecution) -> Result<StartedExecution, AppError> {
        let NewExecution { plan, revision, inputs, driver, request_key } = new;
        let plan = PlanChoice::Saved { plan: plan.to_string(), revision };
        self.execute(caller, ExecutionRequest { plan, inputs, driver, options: None, request_key }).await
    }

    /// Starts an execution. It is recorded when this returns.
    pub async fn execute(&self, caller: &Principal, request: ExecutionRequest) -> Result<StartedExecution, AppError> {
        self.require(caller, Operation::StartExecution)?;
        if matches!(request.plan, PlanChoice::Given(_)) || request.options.as_ref().is_some_and(|it| !it.is_empty()) {
            self.require(caller, Operation::SavePlan)?;
        }
        self.execute_admitted(caller, request).await
    }

    /// The same for an operation that starts an execution on its way, and has its own row in the table of rights.
    pub(crate) async fn execute_admitted(
        &self,
        caller: &Principal,
        request: ExecutionRequest,
    ) -> Result<StartedExecution, AppError> {
        let key = RequestKey::of(caller, request.request_key.as_deref())?;
        let digest = request.digest();
        // Before anything is checked: the tools may be down, changed or gone since.
        if let Some(execution) = key.execution(self, &caller.tenant, digest).await? {
            return Ok(StartedExecution { execution, is_new: false });
        }
        // The exact revision: another author may save a newer one meanwhile.
        let (id, mut revision, mut plan, is_checked) = match request.plan {
            PlanChoice::Saved { plan, revision } => {
                let saved = saved_plan(self, &caller.tenant, &plan, revision).await?;
                refuse_archived(&saved)?;
                (saved.summary.id, saved.summary.revision, saved.plan, false)
            }
            PlanChoice::Given(text) => {
                let saved = store_plan(self, caller, text, None, None, None).await?;
                (saved.id, saved.saved.revision(), saved.accepted.plan, true)
            }
        };
        let saved = plan.hash;
        // Since it was saved, the operator may have become stricter.
        if !is_checked && let Some(stricter) = self.engine.tightened(&plan).await? {
            plan = stricter;
        }
        if let Some(options) = request.options.as_ref().filter(|options| !options.is_empty())
            && let Some(changed) = options.plan(&plan)?
        {
            plan = changed;
        }
        if plan.hash != saved {
            let tenant = caller.tenant.clone();
            revision = self.engine.save_for_execution(tenant, plan, id.clone(), caller.actor()).await?;
        }
        let start = StartRequest {
            tenant: caller.tenant.clone(),
            plan: id.clone(),
            revision: Some(revision),
            inputs: request.inputs,
            driver: request.driver,
            actor: caller.actor(),
            request: key.stored.clone().map(|key| IdempotentRequest { key, digest }),
        };
        match self.engine.start(start).await {
            Ok(started) => Ok(started),
            Err(rutter_engine::Error::Store(port::Error::NotFound { what: "plan", .. })) => Err(no_plan(&id)),
            Err(error) => Err(key.error(self, &caller.tenant, error).await),
        }
    }
}

impl ExecutionRequest {
    /// Over what the caller asked for, in canonical form: not over the tools the plan was checked against.
    fn digest(&self) -> Hash {
        let plan = match &self.plan {
            PlanChoice::Saved { plan, revision } => json!({ "saved": plan, "revision": revision }),
            PlanChoice::Given(text) => given(text),
        };
        let request = json!({ "plan": plan, "inputs": self.inputs, "driver": self.driver.as_str(),
            "options": self.options.as_ref().filter(|options| !options.is_empty()) });
        digest("rutter/start/v2", &request)
    }
}
