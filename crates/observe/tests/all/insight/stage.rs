//! A database in a temporary directory, an engine, the built-in tools, and executions that succeed or fail.

use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::port::feed::LedgerFeed;
use rutter_core::time::Millis;
use rutter_engine::submit::PlanText;
use rutter_engine::{Engine, StartRequest, SystemClock};
use rutter_observe::insight::TenantInsight;
use rutter_store::SqliteStore;
use rutter_testkit::server::installation::Installation;
use rutter_tools::registry::ToolRegistry;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Timeout for anything a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Stage {
    pub engine: Engine,
    pub store: Arc<SqliteStore>,
    pub tools: Arc<ToolRegistry>,
    pub clock: SystemClock,
    folder: TempDir,
}

impl Stage {
    pub async fn new() -> Stage {
        Stage::open(tempfile::tempdir().unwrap()).await
    }

    /// Stops the engine and starts again with what is on disk.
    pub async fn restarted(self) -> Stage {
        let Stage { engine, store, tools, folder, .. } = self;
        engine.close().await;
        drop((engine, tools));
        until("the database is released", async || Arc::strong_count(&store) == 1).await;
        drop(store);
        Stage::open(folder).await
    }

    async fn open(folder: TempDir) -> Stage {
        let Installation { clock, store, tooling, engine, .. } = Installation::open(folder.path(), "").await;
        Stage { engine, store, tools: tooling.registry, clock, folder }
    }

    /// Runs a plan of two steps that succeed.
    pub async fn execute(&self, name: &str) -> ExecutionId {
        let step = |id: &str, needs: Value| {
            json!({ "id": id, "tool": "memory.store", "depends_on": needs, "cancellable": "irreversible",
                "parameters": { "text": "kept" } })
        };
        let steps = [step("one", json!([])), step("two", json!(["one"]))];
        let plan = json!({ "name": name, "goal": "Keep two things", "steps": steps });
        let (execution, status) = self.run(&plan, json!({})).await;
        assert_eq!(status, ExecutionStatus::Completed);
        execution
    }

    /// Runs a plan that fails: it looks up a plan that does not exist.
    pub async fn fail(&self, name: &str) -> ExecutionId {
        let plan = json!({ "name": name, "goal": "Fail", "on_failure": "cancel_all", "steps": [
            { "id": "one", "tool": "journal.plan", "parameters": { "id": "plan_none" } } ] });
        let (execution, status) = self.run(&plan, json!({})).await;
        assert_eq!(status, ExecutionStatus::Failed);
        execution
    }

    pub async fn run(&self, plan: &Value, inputs: Value) -> (ExecutionId, ExecutionStatus) {
        let execution = self.start(plan, inputs).await;
        let status = self.engine.wait(&self.identity(&execution), Millis::seconds(60)).await.unwrap();
        (execution, status.unwrap())
    }

    pub async fn start(&self, plan: &Value, inputs: Value) -> ExecutionId {
        let (tenant, actor) = (tenant(), Actor::agent("tester"));
        let source = serde_json::to_vec(plan).unwrap();
        let text = PlanText { tenant: tenant.clone(), source, format: DocumentFormat::Json, driver: Driver::Server };
        let name = plan["name"].as_str().unwrap().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let id = PlanId::new(&format!("plan_{name}"));
        self.engine.submit(text, Some(id.clone()), None, actor.clone()).await.unwrap();
        let (inputs, driver) = (Arc::new(inputs), Driver::Server);
        let start = StartRequest { tenant, plan: id, revision: None, inputs, driver, actor, request: None };
        self.engine.start(start).await.unwrap().execution
    }

    pub fn identity(&self, execution: &ExecutionId) -> ExecutionIdentity {
        ExecutionIdentity { tenant: tenant(), execution: execution.clone() }
    }

    /// Starts analytics.
    pub async fn insight(&self) -> Counting {
        let store = &self.store;
        let insight =
            TenantInsight::open(tenant(), store.clone(), store.clone(), store.clone(), self.clock).await.unwrap();
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(Arc::clone(&insight).run(shutdown.clone()));
        Counting { insight, shutdown, running }
    }
}

pub struct Counting {
    pub insight: Arc<TenantInsight>,
    pub shutdown: CancellationToken,
    pub running: JoinHandle<()>,
}

impl Counting {
    /// Waits until every entry is counted.
    pub async fn caught_up(&self, stage: &Stage) {
        let size = stage.store.size(&tenant()).await.unwrap();
        until("everything is counted", async || self.insight.position() >= size).await;
    }

    pub async fn end(self) {
        self.shutdown.cancel();
        self.running.await.unwrap();
    }

    /// Ends without saving, as a killed process does.
    pub async fn crash(self) {
        self.running.abort();
        let _ = self.running.await;
    }
}

pub fn tenant() -> TenantId {
    TenantId::new("default")
}

pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
