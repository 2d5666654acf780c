//! A server with a clock that can be advanced, and that can be stopped and restarted.

use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::event::Event;
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::port::alert_commands::AlertCommands;
use rutter_core::port::outbox::DeliveryCounts;
use rutter_core::port::query::{EntryFilter, Pagination, StoreQuery};
use rutter_core::port::tools::PortFuture;
use rutter_core::time::Timestamp;
use rutter_engine::submit::PlanText;
use rutter_engine::{Engine, StartRequest};
use rutter_observe::metrics::ServerMetrics;
use rutter_observe::watch::alert::{AlertRecord, AlertState};
use rutter_observe::watch::rule::{AlertRule, AlertRuleChange};
use rutter_observe::watch::webhook::{NewWebhook, SecretWebhook};
use rutter_observe::watch::{WatchOptions, WatchPorts, WatchService};
use rutter_store::SqliteStore;
use rutter_testkit::server::installation::Installation;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Records the commands to run, under the name `pager`; running real programs has its own tests.
#[derive(Default)]
pub struct CountingBell(pub Mutex<Vec<Value>>);

impl AlertCommands for CountingBell {
    fn names(&self) -> Vec<String> {
        vec!["pager".to_owned()]
    }

    fn run(&self, name: &str, input: Vec<u8>) -> PortFuture<'_, Result<(), String>> {
        assert_eq!(name, "pager");
        self.0.lock().unwrap().push(serde_json::from_slice(&input).unwrap());
        Box::pin(std::future::ready(Ok(())))
    }
}

pub struct Stage {
    pub watch: Arc<WatchService>,
    pub store: Arc<SqliteStore>,
    pub engine: Engine,
    pub tenant: TenantId,
    pub operator: Actor,
    pub bell: Arc<CountingBell>,
    pub config: String,
    folder: TempDir,
    ahead_ms: Arc<AtomicI64>,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
}

impl Stage {
    pub async fn new() -> Stage {
        Stage::with("").await
    }

    /// With the tools configured in these lines of rutter.toml.
    pub async fn with(config: &str) -> Stage {
        Stage::open(tempfile::tempdir().unwrap(), Arc::default(), Arc::default(), config.to_owned()).await
    }

    /// Aborts everything, as a killed process does, and starts again with what is on disk.
    pub async fn restarted(self) -> Stage {
        let Stage { watch, store, engine, folder, ahead_ms, running, bell: wakeup, config, .. } = self;
        running.abort();
        let _ = running.await;
        engine.close().await;
        drop((watch, engine));
        // Tasks of the engine release the database a little later.
        for _ in 0..1_000 {
            if Arc::strong_count(&store) == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(store);
        Stage::open(folder, ahead_ms, wakeup, config).await
    }

    async fn open(folder: TempDir, ahead_ms: Arc<AtomicI64>, wakeup: Arc<CountingBell>, config: String) -> Stage {
        let Installation { clock, store, tooling, engine, post } = Installation::open(folder.path(), &config).await;
        let tenant = TenantId::new("default");
        let ports = WatchPorts {
            feed: store.clone(),
            register: store.clone(),
            outbox: store.clone(),
            query: store.clone(),
            journal: store.clone(),
            proof: store.clone(),
            tools: tooling.registry,
            http_sender: post,
            metrics: ServerMetrics::new("test", Timestamp(0)),
            alert_commands: wakeup.clone(),
        };
        let options = WatchOptions {
            tick: Duration::from_millis(20),
            gather: Duration::from_millis(1),
            ..WatchOptions::new(vec![tenant.clone()])
        };
        let ahead = Arc::clone(&ahead_ms);
        let now = move || Timestamp(clock.now().0 + ahead.load(Ordering::SeqCst));
        let watch = WatchService::new(ports, Arc::new(now), options);
        watch.set_link("http://127.0.0.1:9");
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(Arc::clone(&watch).run(shutdown.clone()));
        let operator = Actor::person("operator");
        Stage { watch, store, engine, tenant, operator, bell: wakeup, config, folder, ahead_ms, shutdown, running }
    }

    /// Advances the clock of webhooks and alerts.
    pub fn pass(&self, seconds: i64) {
        self.ahead_ms.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        self.running.await.unwrap();
        self.engine.close().await;
    }

    pub async fn webhook(&self, new: Value) -> SecretWebhook {
        let new: NewWebhook = serde_json::from_value(new).unwrap();
        self.watch.create_webhook(&self.tenant, &self.operator, new).await.unwrap()
    }

    /// Audit events about a setting, newest first: actor and change.
    pub async fn said_of(&self, what: &str, which: &str) -> Vec<(String, String)> {
        let kinds = vec!["setting_changed".to_owned()];
        let filter = EntryFilter { kinds, ..EntryFilter::default() };
        let found = self.store.entries(&self.tenant, filter, Pagination::first(1_000)).await.unwrap();
        let filter_map = found.items.into_iter().filter_map(|entry| match entry.record.event {
            Event::SettingChanged { setting, id, change } if setting == what && id == which => {
                Some((entry.record.actor.name.to_string(), change))
            }
            _ => None,
        });
        filter_map.collect()
    }

    pub async fn counts(&self) -> DeliveryCounts {
        self.watch.delivery_counts(&self.tenant, None).await.unwrap()
    }

    /// Waits until the counts of the outbox match.
    pub async fn until_counts(&self, fits: impl Fn(&DeliveryCounts) -> bool) -> DeliveryCounts {
        for _ in 0..1_000 {
            let counts = self.counts().await;
            if fits(&counts) {
                return counts;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the outbox has {:?}", self.counts().await);
    }

    /// Waits until this many attempts are recorded.
    pub async fn until_tried(&self, tries: u32) {
        for _ in 0..1_000 {
            let page = self.watch.deliveries(&self.tenant, None, None, Pagination::first(100)).await.unwrap();
            if page.items.iter().map(|delivery| delivery.tries).sum::<u32>() >= tries {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{tries} tries were waited for");
    }

    /// Saves a plan, which is one entry of the ledger.
    pub async fn save(&self, name: &str) -> PlanId {
        let plan = json!({ "name": name, "goal": "remember something", "steps": [
            { "id": "keep", "tool": "memory.store", "parameters": { "text": "the tide turns at six" } },
        ]});
        self.save_plan(&plan).await
    }

    pub async fn save_plan(&self, plan: &Value) -> PlanId {
        let text = PlanText {
            tenant: self.tenant.clone(),
            source: plan.to_string().into_bytes(),
            format: DocumentFormat::Json,
            driver: Driver::Server,
        };
        self.engine.submit(text, None, None, self.operator.clone()).await.unwrap().id
    }

    pub async fn start(&self, plan: &PlanId) -> String {
        self.start_by(plan, Driver::Server).await
    }

    /// Starts an execution driven by an agent.
    pub async fn start_for_agent(&self, plan: &PlanId) -> String {
        self.start_by(plan, Driver::Agent).await
    }

    async fn start_by(&self, plan: &PlanId, driver: Driver) -> String {
        let start = StartRequest {
            tenant: self.tenant.clone(),
            plan: plan.clone(),
            revision: None,
            inputs: Arc::new(json!({})),
            driver,
            actor: self.operator.clone(),
            request: None,
        };
        self.engine.start(start).await.unwrap().execution.to_string()
    }

    /// A plan with one step, which fails and ends the execution.
    pub async fn failing(&self, name: &str) -> PlanId {
        let plan = json!({ "name": name, "goal": "fail", "steps": [
            { "id": "keep", "tool": "memory.store", "parameters": { "text": "x", "expires_after": "nonsense" },
              "failure_policy": { "action": "cancel_all" } },
        ]});
        self.save_plan(&plan).await
    }

    pub async fn signal(&self, execution: &str, signal: ExecutionInput) {
        let (tenant, execution) = (self.tenant.clone(), ExecutionId::new(execution));
        let identity = ExecutionIdentity { tenant, execution };
        self.engine.command(&identity, self.operator.clone(), signal, None).await.unwrap();
    }

    /// Waits until there is an alert of a rule in a state.
    pub async fn alert(&self, rule: &str, state: AlertState) -> AlertRecord {
        self.alert_that(|alert| alert.rule == rule && alert.state == state).await
    }

    pub async fn alert_that(&self, fits: impl Fn(&AlertRecord) -> bool) -> AlertRecord {
        for _ in 0..1_000 {
            let alerts = self.watch.alerts(&self.tenant, None).await.unwrap();
            if let Some(alert) = alerts.into_iter().find(&fits) {
                return alert;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("there are {:#?}", self.watch.alerts(&self.tenant, None).await.unwrap());
    }

    pub fn directory(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub async fn change_rule(&self, id: &str, change: Value) -> AlertRule {
        let change: AlertRuleChange = serde_json::from_value(change).unwrap();
        self.watch.update_rule(&self.tenant, &self.operator, id, change, None).await.unwrap()
    }
}
