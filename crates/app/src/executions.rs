//! Executions as the surfaces use them: start, read, wait. Changes are made by a
//! [`Command`](crate::command::Command).

pub use rutter_engine::submit::{AcceptedPlan, PlanText};
pub use rutter_engine::{ExecutionUpdate, StartedExecution, UpdateContent};

use crate::app::App;
use crate::error::AppError;
use crate::plans::no_plan;
use crate::principal::Principal;
use crate::request_key::RequestKey;
use crate::rights::{Operation, require};
use crate::view::{self, ExecutionView};
use rutter_core::diagnostic::Diagnostic;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus};
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::plan::Driver;
use rutter_core::port;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::ToolFailure;
use rutter_engine::StartRequest;
use rutter_observe::metrics::MetricSources;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::broadcast;

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

/// Everything the check of a plan found.
#[derive(Clone, Debug)]
pub struct PlanFindings {
    /// Whether the plan has no errors.
    pub is_accepted: bool,
    pub found: Vec<Diagnostic>,
    /// Servers whose tools could not be listed.
    pub absent: Vec<(String, ToolFailure)>,
}

impl App {
    /// Checks a plan against the tools it names, and changes nothing.
    pub async fn check(&self, text: &PlanText) -> Result<AcceptedPlan, AppError> {
        Ok(self.engine.check(text).await?)
    }

    /// The same, but errors in the plan are part of the result.
    pub async fn findings(&self, text: &PlanText) -> Result<PlanFindings, AppError> {
        let (is_accepted, found, absent) = match self.engine.check(text).await {
            Ok(accepted) => (true, accepted.found, accepted.absent),
            Err(rutter_engine::Error::Plan { found, absent }) => (false, found, absent),
            Err(error) => return Err(error.into()),
        };
        Ok(PlanFindings { is_accepted, found, absent })
    }

    /// Starts an execution of a saved plan. It is recorded when this returns.
    pub async fn start(&self, caller: &Principal, new: NewExecution) -> Result<StartedExecution, AppError> {
        require(caller, Operation::StartExecution)?;
        self.open_execution(caller, new).await
    }

    /// The same for an operation that starts an execution on its way, and has its own row in the table of rights.
    pub(crate) async fn open_execution(
        &self,
        caller: &Principal,
        new: NewExecution,
    ) -> Result<StartedExecution, AppError> {
        let key = RequestKey::of(caller, new.request_key.as_deref())?;
        let start = StartRequest {
            tenant: caller.tenant.clone(),
            plan: new.plan.clone(),
            revision: new.revision,
            inputs: new.inputs,
            driver: new.driver,
            actor: caller.actor(),
            request: key.stored.clone(),
        };
        self.engine.start(start).await.map_err(|error| match error {
            rutter_engine::Error::Store(port::Error::NotFound { what: "plan", .. }) => no_plan(&new.plan),
            error => key.error(error),
        })
    }

    pub async fn view(&self, identity: &ExecutionIdentity) -> Result<ExecutionSnapshot, AppError> {
        Ok(self.engine.view(identity).await?)
    }

    /// Returns the view of an execution; with results once it has ended, as many as fit into `results_bytes_max`.
    pub async fn execution(
        &self,
        identity: &ExecutionIdentity,
        results_bytes_max: usize,
        result_bytes_max: usize,
    ) -> Result<ExecutionView, AppError> {
        self.execution_with(identity, results_bytes_max, result_bytes_max, |_, _| ()).await
    }

    /// The same; `add` fills optional fields from the same state.
    pub async fn execution_with(
        &self,
        identity: &ExecutionIdentity,
        results_bytes_max: usize,
        result_bytes_max: usize,
        add: impl FnOnce(&Execution, &mut ExecutionView) + Send + 'static,
    ) -> Result<ExecutionView, AppError> {
        let missing = || AppError::missing("execution", identity.execution.as_str());
        let plan = self.query.execution(identity).await?.ok_or_else(missing)?.plan;
        let base = self.link.get().cloned();
        let read = move |execution: &Execution| {
            let snapshot = execution.view();
            let mut execution_view = ExecutionView::of(Some(&plan), &snapshot, base.as_deref());
            if snapshot.status.has_ended() && snapshot.status != ExecutionStatus::Compensated {
                execution_view.results = view::results(execution, results_bytes_max, result_bytes_max);
            }
            add(execution, &mut execution_view);
            execution_view
        };
        self.look(identity, read).await
    }

    /// Reads a value from the current state of an execution.
    pub async fn look<T: Send + 'static>(
        &self,
        identity: &ExecutionIdentity,
        read: impl FnOnce(&Execution) -> T + Send + 'static,
    ) -> Result<T, AppError> {
        Ok(self.engine.inspect(identity, read).await?)
    }

    /// Returns what an agent needs to know to take over an execution.
    pub async fn brief(&self, identity: &ExecutionIdentity) -> Result<String, AppError> {
        Ok(self.engine.brief(identity).await?)
    }

    /// Waits until an execution has ended or waits for a person, but at most for the given time.
    pub async fn wait(&self, identity: &ExecutionIdentity, span: Millis) -> Result<Option<ExecutionStatus>, AppError> {
        Ok(self.engine.wait(identity, span).await?)
    }

    /// Subscribes to updates from now on. A slow reader learns how many it missed, and can read them in the journal.
    pub fn updates(&self) -> broadcast::Receiver<ExecutionUpdate> {
        self.engine.subscribe()
    }

    pub fn now(&self) -> Timestamp {
        self.engine.now()
    }

    /// The number of executions in memory.
    pub fn active_count(&self) -> usize {
        self.engine.active_count()
    }

    /// Executions this process cannot continue, each with the reason.
    pub fn broken(&self) -> BTreeMap<ExecutionId, String> {
        self.engine.broken()
    }

    /// Whether this worker may drive executions now: it is not shutting down and its lease is valid.
    pub fn may_drive(&self) -> bool {
        self.engine.may_drive()
    }

    /// Lets calls in flight end and releases every lease.
    pub async fn close(&self) {
        self.engine.close().await;
    }

    /// The metrics in the text format of Prometheus.
    pub async fn metrics_text(&self, caller: &Principal) -> Result<String, AppError> {
        require(caller, Operation::ReadMetrics)?;
        let sources = MetricSources {
            tenant: &caller.tenant,
            engine: &self.engine,
            query: &*self.query,
            proof: &*self.proof,
            outbox: &*self.outbox,
            tools: &*self.tools,
            insight: Some(&self.insight),
        };
        Ok(self.metrics.render(sources).await)
    }
}
