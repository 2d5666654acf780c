//! A database in a temporary directory, an engine, the built-in tools, and executions that go well or do not.

use crate::ground::Ground;
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::execution::view::Status;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::plan::Driver;
use rutter_core::plan::document::Format;
use rutter_core::port::feed::Feed;
use rutter_core::time::Millis;
use rutter_engine::submit::PlanText;
use rutter_engine::{Clock, Engine, Start};
use rutter_server::insight::Insight;
use rutter_store::Store;
use rutter_tools::registry::Registry;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longer than anything takes that happens at all.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Stage {
    pub engine: Engine,
    pub store: Arc<Store>,
    pub tools: Arc<Registry>,
    pub clock: Clock,
    folder: TempDir,
}

impl Stage {
    pub async fn new() -> Stage {
        Stage::open(tempfile::tempdir().unwrap()).await
    }

    /// Ends this process's part and begins again with what is on disk.
    pub async fn restarted(self) -> Stage {
        let Stage { engine, store, tools, folder, .. } = self;
        engine.close().await;
        drop((engine, tools));
        until("everybody lets go of the database", async || Arc::strong_count(&store) == 1).await;
        drop(store);
        Stage::open(folder).await
    }

    async fn open(folder: TempDir) -> Stage {
        let Ground { clock, store, tooling, engine, .. } = Ground::lay(folder.path(), "").await;
        Stage { engine, store, tools: tooling.registry, clock, folder }
    }

    /// Stores something, and something more.
    pub async fn execute(&self, name: &str) -> ExecutionId {
        let step = |id: &str, needs: Value| {
            json!({ "id": id, "tool": "memory.store", "depends_on": needs, "cancellable": "irreversible",
                "parameters": { "text": "kept" } })
        };
        let steps = [step("one", json!([])), step("two", json!(["one"]))];
        let plan = json!({ "name": name, "goal": "Keep two things", "steps": steps });
        let (execution, status) = self.run(&plan, json!({})).await;
        assert_eq!(status, Status::Completed);
        execution
    }

    /// Looks for a plan that is not there.
    pub async fn fail(&self, name: &str) -> ExecutionId {
        let plan = json!({ "name": name, "goal": "Fail", "on_failure": "cancel_all", "steps": [
            { "id": "one", "tool": "journal.plan", "parameters": { "id": "plan_none" } } ] });
        let (execution, status) = self.run(&plan, json!({})).await;
        assert_eq!(status, Status::Failed);
        execution
    }

    pub async fn run(&self, plan: &Value, inputs: Value) -> (ExecutionId, Status) {
        let execution = self.start(plan, inputs).await;
        let status = self.engine.wait(&self.identity(&execution), Millis::seconds(60)).await.unwrap();
        (execution, status.unwrap())
    }

    pub async fn start(&self, plan: &Value, inputs: Value) -> ExecutionId {
        let (tenant, actor) = (tenant(), Actor::agent("tester"));
        let source = serde_json::to_vec(plan).unwrap();
        let text = PlanText { tenant: tenant.clone(), source, format: Format::Json, driver: Driver::Server };
        let name = plan["name"].as_str().unwrap().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let id = PlanId::new(&format!("plan_{name}"));
        self.engine.submit(text, Some(id.clone()), None, actor.clone()).await.unwrap();
        let (inputs, driver) = (Arc::new(inputs), Driver::Server);
        let start = Start { tenant, plan: id, revision: None, inputs, driver, actor, request: None };
        self.engine.start(start).await.unwrap().execution
    }

    pub fn identity(&self, execution: &ExecutionId) -> Identity {
        Identity { tenant: tenant(), execution: execution.clone() }
    }

    /// Counts that are kept up.
    pub async fn insight(&self) -> Counting {
        let store = &self.store;
        let insight =
            Insight::open(tenant(), store.clone(), store.clone(), store.clone(), self.clock).await.unwrap();
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(Arc::clone(&insight).run(shutdown.clone()));
        Counting { insight, shutdown, running }
    }
}

pub struct Counting {
    pub insight: Arc<Insight>,
    pub shutdown: CancellationToken,
    pub running: JoinHandle<()>,
}

impl Counting {
    /// Waits until everything that is on record is counted.
    pub async fn caught_up(&self, stage: &Stage) {
        let size = stage.store.size(&tenant()).await.unwrap();
        until("everything is counted", async || self.insight.place() >= size).await;
    }

    pub async fn end(self) {
        self.shutdown.cancel();
        self.running.await.unwrap();
    }

    /// As if the process had gone: what was not written is lost.
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
