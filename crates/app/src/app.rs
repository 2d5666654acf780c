//! The application: the engine and every other port, as the surfaces use them.

use crate::auth::{AccessToken, AuthClock, Authenticator};
use crate::error::AppError;
use crate::principal::Principal;
use crate::refusals::RefusalLog;
use crate::rights::Operation;
use crate::verb::Verb;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::alert_commands::AlertCommands;
use rutter_core::port::feed::LedgerFeed;
use rutter_core::port::journal::Journal;
use rutter_core::port::outbox::{DeliveryOutbox, HttpSender};
use rutter_core::port::proof::LedgerProof;
use rutter_core::port::query::StoreQuery;
use rutter_core::port::register::Register;
use rutter_core::port::tools::ToolGateway;
use rutter_core::port::upkeep::StoreMaintenance;
use rutter_core::time::Timestamp;
use rutter_engine::{Engine, SystemClock};
use rutter_observe::insight::TenantInsight;
use rutter_observe::metrics::ServerMetrics;
use rutter_observe::trace::{self, TraceExporter};
use rutter_observe::watch::{self, WatchService};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// How often refusals beyond the limit are summed up.
const REFUSALS_SUMMED_EVERY: Duration = Duration::from_secs(60);

pub struct App {
    pub(crate) engine: Engine,
    pub query: Arc<dyn StoreQuery>,
    pub(crate) upkeep: Arc<dyn StoreMaintenance>,
    pub feed: Arc<dyn LedgerFeed>,
    pub register: Arc<dyn Register>,
    pub(crate) outbox: Arc<dyn DeliveryOutbox>,
    pub(crate) proof: Arc<dyn LedgerProof>,
    pub(crate) tools: Arc<dyn ToolGateway>,
    /// Recognises tokens, keys and browser sessions.
    pub auth: Arc<Authenticator>,
    /// Analytics over the journals.
    pub insight: Arc<TenantInsight>,
    /// Webhooks and alerts.
    pub(crate) watch: Arc<WatchService>,
    pub metrics: Arc<ServerMetrics>,
    /// Records what was refused.
    pub refusals: Arc<RefusalLog>,
    tracer: Mutex<Option<TraceExporter>>,
    pub settings: AppSettings,
    /// The base URL of the dashboard, once the server has one.
    pub link: OnceLock<String>,
    /// The key that seals questions sent to a client and returned by it.
    pub seal: [u8; 32],
    pub request_permits: Arc<Semaphore>,
    /// Permits for long-lived requests, which must not use up those of short ones.
    pub listener_permits: Semaphore,
}

#[derive(Clone, Debug)]
pub struct AppSettings {
    /// Whether clients whose answers count are asked what only a person may answer.
    pub ask_at_client: bool,
    /// The directory of the operator's own templates; it need not exist.
    pub templates: Option<PathBuf>,
}

/// Where traces are exported to.
pub struct TraceCollector {
    pub options: trace::TraceOptions,
    pub http_sender: Arc<dyn HttpSender>,
}

/// What an [`App`] is made of.
pub(crate) struct AppParts<S> {
    pub(crate) engine: Engine,
    /// The store behind every port.
    pub(crate) store: Arc<S>,
    pub(crate) tools: Arc<dyn ToolGateway>,
    /// For URLs that a caller may choose over HTTP.
    pub(crate) http_sender: Arc<dyn HttpSender>,
    /// For programs the operator configured.
    pub(crate) alert_commands: Arc<dyn AlertCommands>,
    /// Where traces are exported to, and with which sender.
    pub(crate) collector: Option<TraceCollector>,
    pub(crate) clock: SystemClock,
    pub(crate) auth_clock: Option<AuthClock>,
    /// From the configuration, and from the files beside the database.
    pub(crate) tokens: Vec<AccessToken>,
    pub(crate) settings: AppSettings,
    pub(crate) seal: [u8; 32],
}

impl std::fmt::Debug for TraceCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceCollector").field("options", &self.options).finish_non_exhaustive()
    }
}

impl App {
    pub(crate) async fn open<S>(parts: AppParts<S>) -> Result<Arc<App>, port::Error>
    where
        S: Journal + StoreQuery + StoreMaintenance + LedgerFeed + Register + DeliveryOutbox + LedgerProof + 'static,
    {
        let AppParts {
            engine,
            store,
            tools,
            http_sender: post,
            alert_commands: wakeup,
            collector,
            clock,
            auth_clock,
            tokens,
            settings,
            seal,
        } = parts;
        let tenant = TenantId::new("default");
        let now: Arc<dyn Fn() -> Timestamp + Send + Sync> = Arc::new(move || clock.now());
        let auth =
            Authenticator::open(store.clone(), tenant.clone(), auth_clock.unwrap_or_else(|| Arc::clone(&now)), tokens)
                .await?;
        let (feed, query, register) = (store.clone(), store.clone(), store.clone());
        let insight = TenantInsight::open(tenant.clone(), feed, query, register, clock).await?;
        let metrics = ServerMetrics::new(env!("CARGO_PKG_VERSION"), clock.now());
        let refusals = RefusalLog::new(store.clone(), Arc::clone(&now), Arc::clone(&metrics));
        auth.record_refusals(Arc::clone(&refusals));
        let ports = watch::WatchPorts {
            feed: store.clone(),
            register: store.clone(),
            outbox: store.clone(),
            query: store.clone(),
            journal: store.clone(),
            proof: store.clone(),
            tools: Arc::clone(&tools),
            http_sender: post,
            metrics: Arc::clone(&metrics),
            alert_commands: wakeup,
        };
        let watch = WatchService::new(ports, now, watch::WatchOptions::new(vec![tenant.clone()]));
        let tracer = collector.map(|TraceCollector { options, http_sender: post }| TraceExporter {
            options,
            tenant,
            feed: store.clone(),
            query: store.clone(),
            register: store.clone(),
            http_sender: post,
            metrics: Arc::clone(&metrics),
            clock,
        });
        Ok(Arc::new(App {
            engine,
            query: store.clone(),
            upkeep: store.clone(),
            feed: store.clone(),
            register: store.clone(),
            outbox: store.clone(),
            proof: store,
            tools,
            auth,
            insight,
            watch,
            metrics,
            refusals,
            tracer: Mutex::new(tracer),
            settings,
            link: OnceLock::new(),
            seal,
            request_permits: Arc::new(Semaphore::new(crate::limits::REQUESTS_MAX)),
            listener_permits: Semaphore::new(crate::limits::LISTENERS_MAX),
        }))
    }

    /// Sets the base URL of the dashboard, for links in answers and notifications.
    pub fn set_link(&self, link: &str) {
        // It is set once, when the server listens.
        let _ = self.link.set(link.to_owned());
        self.watch.set_link(link);
    }

    /// Returns an error that names the missing scope unless the principal may do this; the refusal is recorded.
    pub fn require(&self, principal: &Principal, operation: Operation) -> Result<(), AppError> {
        self.refusals.require(principal, operation)
    }

    /// The same for a command to an execution that is not named yet.
    pub fn require_verb(&self, principal: &Principal, verb: Verb) -> Result<(), AppError> {
        self.refusals.require_verb(principal, verb, None)
    }

    /// Runs the background work: analytics, webhooks, alerts, metrics and traces. Ends on shutdown.
    pub async fn run(self: Arc<App>, shutdown: CancellationToken) {
        let stored = Arc::clone(&self.auth).run(shutdown.clone());
        let counted = Arc::clone(&self.insight).run(shutdown.clone());
        let watched = Arc::clone(&self.watch).run(shutdown.clone());
        let measured = Arc::clone(&self.metrics).run(self.engine.clone(), shutdown.clone());
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let traced = async {
            if let Some(tracer) = tracer {
                tracer.run(shutdown.clone()).await;
            }
        };
        let summed = self.sum_up_refusals(shutdown.clone());
        tokio::join!(stored, counted, watched, measured, traced, summed);
    }

    async fn sum_up_refusals(&self, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(REFUSALS_SUMMED_EVERY) => {}
            }
            self.refusals.sum_up(false).await;
        }
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("settings", &self.settings).finish_non_exhaustive()
    }
}
