//! An installation with a clock that can be put forward, and that can end and begin again.

use crate::ground::Ground;
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::event::Event;
use rutter_core::plan::Driver;
use rutter_core::plan::document::Format;
use rutter_core::port::bell::Bell;
use rutter_core::port::outbox::DeliveryCounts;
use rutter_core::port::query::{EntryFilter, Page, Query};
use rutter_core::port::tools::Reply;
use rutter_core::time::Timestamp;
use rutter_engine::submit::PlanText;
use rutter_engine::{Engine, Signal, Start};
use rutter_server::metrics::Metrics;
use rutter_server::watch::alert::{Alert, AlertState};
use rutter_server::watch::rule::{Rule, RuleChange};
use rutter_server::watch::webhook::{NewWebhook, SecretWebhook};
use rutter_server::watch::{Options, Ports, Watch};
use rutter_store::Store;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Writes down what it was to start, under the name `pager`; what starts real programs has tests of its own.
#[derive(Default)]
pub struct CountingBell(pub Mutex<Vec<Value>>);

impl Bell for CountingBell {
    fn names(&self) -> Vec<String> {
        vec!["pager".to_owned()]
    }

    fn ring(&self, name: &str, input: Vec<u8>) -> Reply<'_, Result<(), String>> {
        assert_eq!(name, "pager");
        self.0.lock().unwrap().push(serde_json::from_slice(&input).unwrap());
        Box::pin(std::future::ready(Ok(())))
    }
}

pub struct Stage {
    pub watch: Arc<Watch>,
    pub store: Arc<Store>,
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

    /// With the tools that some lines of rutter.toml name.
    pub async fn with(config: &str) -> Stage {
        Stage::open(tempfile::tempdir().unwrap(), Arc::default(), Arc::default(), config.to_owned()).await
    }

    /// Ends everything at once, as if the process had been killed, and begins again with what is on disk.
    pub async fn restarted(self) -> Stage {
        let Stage { watch, store, engine, folder, ahead_ms, running, bell, config, .. } = self;
        running.abort();
        let _ = running.await;
        engine.close().await;
        drop((watch, engine));
        // What the engine spawned lets go of the database a little later.
        for _ in 0..1_000 {
            if Arc::strong_count(&store) == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(store);
        Stage::open(folder, ahead_ms, bell, config).await
    }

    async fn open(
        folder: TempDir,
        ahead_ms: Arc<AtomicI64>,
        bell: Arc<CountingBell>,
        config: String,
    ) -> Stage {
        let Ground { clock, store, tooling, engine, post } = Ground::lay(folder.path(), &config).await;
        let tenant = TenantId::new("default");
        let ports = Ports {
            feed: store.clone(),
            register: store.clone(),
            outbox: store.clone(),
            query: store.clone(),
            proof: store.clone(),
            tools: tooling.registry,
            post,
            metrics: Metrics::new("test", Timestamp(0)),
            bell: bell.clone(),
        };
        let options = Options {
            tick: Duration::from_millis(20),
            gather: Duration::from_millis(1),
            ..Options::new(vec![tenant.clone()])
        };
        let ahead = Arc::clone(&ahead_ms);
        let now = move || Timestamp(clock.now().0 + ahead.load(Ordering::SeqCst));
        let watch = Watch::new(ports, Arc::new(now), options);
        watch.set_link("http://127.0.0.1:9");
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(Arc::clone(&watch).run(shutdown.clone()));
        let operator = Actor::person("operator");
        Stage { watch, store, engine, tenant, operator, bell, config, folder, ahead_ms, shutdown, running }
    }

    /// Puts the clock of webhooks and alerts forward.
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

    /// What the ledger's own journal has of something, newest first: who, and what in words.
    pub async fn said_of(&self, what: &str, which: &str) -> Vec<(String, String)> {
        let kinds = vec!["setting_changed".to_owned()];
        let filter = EntryFilter { kinds, ..EntryFilter::default() };
        let found = self.store.entries(&self.tenant, filter, Page::first(1_000)).await.unwrap();
        let said = found.items.into_iter().filter_map(|entry| match entry.record.event {
            Event::SettingChanged { setting, id, change } if setting == what && id == which => {
                Some((entry.record.actor.name.to_string(), change))
            }
            _ => None,
        });
        said.collect()
    }

    pub async fn counts(&self) -> DeliveryCounts {
        self.watch.delivery_counts(&self.tenant, None).await.unwrap()
    }

    /// Waits until the outbox looks like this.
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

    /// Waits until so many tries are on record.
    pub async fn until_tried(&self, tries: u32) {
        for _ in 0..1_000 {
            let page = self.watch.deliveries(&self.tenant, None, None, Page::first(100)).await.unwrap();
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
            format: Format::Json,
            driver: Driver::Server,
        };
        self.engine.submit(text, None, None, self.operator.clone()).await.unwrap().id
    }

    pub async fn start(&self, plan: &PlanId) -> String {
        self.start_by(plan, Driver::Server).await
    }

    /// An agent is to carry it out.
    pub async fn start_for_agent(&self, plan: &PlanId) -> String {
        self.start_by(plan, Driver::Agent).await
    }

    async fn start_by(&self, plan: &PlanId, driver: Driver) -> String {
        let start = Start {
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

    /// A plan whose one step fails, and ends the execution with it.
    pub async fn failing(&self, name: &str) -> PlanId {
        let plan = json!({ "name": name, "goal": "fail", "steps": [
            { "id": "keep", "tool": "memory.store", "parameters": { "text": "x", "expires_after": "nonsense" },
              "failure_policy": { "action": "cancel_all" } },
        ]});
        self.save_plan(&plan).await
    }

    pub async fn signal(&self, execution: &str, signal: Signal) {
        let (tenant, execution) = (self.tenant.clone(), ExecutionId::new(execution));
        let identity = Identity { tenant, execution };
        self.engine.signal(&identity, self.operator.clone(), signal, None).await.unwrap();
    }

    /// Waits until there is an alert of a rule in a state.
    pub async fn alert(&self, rule: &str, state: AlertState) -> Alert {
        self.alert_that(|alert| alert.rule == rule && alert.state == state).await
    }

    pub async fn alert_that(&self, fits: impl Fn(&Alert) -> bool) -> Alert {
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

    pub async fn change_rule(&self, id: &str, change: Value) -> Rule {
        let change: RuleChange = serde_json::from_value(change).unwrap();
        self.watch.update_rule(&self.tenant, &self.operator, id, change, None).await.unwrap()
    }
}
