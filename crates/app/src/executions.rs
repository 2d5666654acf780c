//! Executions as the surfaces use them: read, wait. They are started in [`start`](crate::start); changes are made by a
//! [`Command`](crate::command::Command).

pub use rutter_engine::submit::{AcceptedPlan, PlanText};
pub use rutter_engine::{ExecutionUpdate, StartedExecution, UpdateContent};

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::reader::AnswerReader;
use crate::rights::Operation;
use crate::view::{self, ExecutionView};
use rutter_core::actor::ActorKind;
use rutter_core::diagnostic::Diagnostic;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus};
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::ExecutionId;
use rutter_core::policy::expect::StepRules;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::ToolFailure;
use rutter_observe::metrics::MetricSources;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::broadcast;

/// How often an agent that waits gives a sign of life.
const SIGN_EVERY: Duration = Duration::from_millis(500);

/// Everything the check of a plan found.
#[derive(Clone, Debug)]
pub struct PlanFindings {
    /// Whether the plan has no errors.
    pub is_accepted: bool,
    pub found: Vec<Diagnostic>,
    /// Servers whose tools could not be listed.
    pub absent: Vec<(String, ToolFailure)>,
    /// The rules of the operator's policy that will or may apply to its steps.
    pub policy: Vec<StepRules>,
}

impl App {
    /// Checks a plan against the tools it names, and changes nothing.
    pub async fn check(&self, text: &PlanText) -> Result<AcceptedPlan, AppError> {
        Ok(self.engine.check(text).await?)
    }

    /// The same, but errors in the plan are part of the result.
    pub async fn findings(&self, text: &PlanText) -> Result<PlanFindings, AppError> {
        let (is_accepted, found, absent, policy) = match self.engine.check(text).await {
            Ok(accepted) => (true, accepted.found, accepted.absent, accepted.policy),
            Err(rutter_engine::Error::Plan { found, absent }) => (false, found, absent, Vec::new()),
            Err(error) => return Err(error.into()),
        };
        Ok(PlanFindings { is_accepted, found, absent, policy })
    }

    pub async fn view(&self, identity: &ExecutionIdentity) -> Result<ExecutionSnapshot, AppError> {
        Ok(self.engine.view(identity).await?)
    }

    /// Returns the view of an execution; with results once it has ended, as many as fit into `results_bytes_max`.
    pub async fn execution(
        &self,
        reader: AnswerReader,
        identity: &ExecutionIdentity,
        results_bytes_max: usize,
        result_bytes_max: usize,
    ) -> Result<ExecutionView, AppError> {
        self.execution_with(reader, identity, results_bytes_max, result_bytes_max, |_, _| ()).await
    }

    /// The same; `add` fills optional fields from the same state.
    pub async fn execution_with(
        &self,
        reader: AnswerReader,
        identity: &ExecutionIdentity,
        results_bytes_max: usize,
        result_bytes_max: usize,
        add: impl FnOnce(&Execution, &mut ExecutionView) + Send + 'static,
    ) -> Result<ExecutionView, AppError> {
        let missing = || AppError::missing("execution", identity.execution.as_str());
        let plan = self.query.execution(identity).await?.ok_or_else(missing)?.plan;
        let read = move |execution: &Execution| {
            let snapshot = execution.view();
            let mut execution_view = ExecutionView::of(Some(&plan), &snapshot, &reader);
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

    /// Tells an execution that its agent is alive: a look at it or a command counts, also one that is refused. What goes
    /// wrong here is not the caller's concern.
    pub async fn notice_agent(&self, caller: &Principal, identity: &ExecutionIdentity) {
        let actor = caller.actor();
        if actor.party != ActorKind::Agent {
            return;
        }
        if let Err(error) = self.engine.notice_agent(identity, actor).await {
            tracing::debug!(execution = %identity.execution, "a sign of life was not recorded: {error}");
        }
    }

    /// Returns what an agent needs to know to take over an execution.
    pub async fn brief(&self, identity: &ExecutionIdentity) -> Result<String, AppError> {
        Ok(self.engine.brief(identity).await?)
    }

    /// Waits until an execution has ended or waits for a person, but at most for the given time.
    pub async fn wait(&self, identity: &ExecutionIdentity, span: Millis) -> Result<Option<ExecutionStatus>, AppError> {
        Ok(self.engine.wait(identity, span).await?)
    }

    /// The same for a caller. An agent that waits is alive all the time, and until the wait has ended.
    pub async fn wait_for(
        &self,
        caller: &Principal,
        identity: &ExecutionIdentity,
        span: Millis,
    ) -> Result<Option<ExecutionStatus>, AppError> {
        if caller.actor().party != ActorKind::Agent {
            return self.wait(identity, span).await;
        }
        let deadline = Instant::now() + Duration::from_millis(span.0);
        loop {
            self.notice_agent(caller, identity).await;
            let left = deadline.saturating_duration_since(Instant::now());
            let turn = Millis(left.min(SIGN_EVERY).as_millis() as u64);
            let rested = self.wait(identity, turn).await?;
            if rested.is_some() || left <= SIGN_EVERY {
                self.notice_agent(caller, identity).await;
                return Ok(rested);
            }
        }
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
        self.refusals.sum_up(true).await;
        self.engine.close().await;
    }

    /// The metrics in the text format of Prometheus.
    pub async fn metrics_text(&self, caller: &Principal) -> Result<String, AppError> {
        self.require(caller, Operation::ReadMetrics)?;
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
