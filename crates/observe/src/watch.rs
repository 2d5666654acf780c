//! Webhooks and alerts: ledger events go to webhooks, conditions that need attention become alerts.
//!
//! [`webhook`] defines a webhook. A reader follows the ledger and puts matching events into the outbox; the webhook
//! sender delivers them. [`rule`] defines when to alert; the evaluator follows the ledger too, inspects the store and
//! the tools, and raises [`alert`]s. Executions never wait for any of them.

pub mod alert;
mod alerts;
mod audit;
mod cloud_event;
mod condition;
mod evaluation;
mod evaluator;
pub mod execution_state;
mod inspection;
mod notice;
mod plans;
mod reader;
pub mod rfc3339;
pub mod rule;
mod signature;
pub mod silence;
mod verify;
pub mod webhook;
mod webhook_sender;
mod webhooks;

pub use condition::AlertKind;
pub use plans::NamedPlan;
pub use verify::LedgerVerification;
pub use webhooks::{DeliveryDetail, DeliveryListItem, DeliveryTry, WebhookTest};

use crate::metrics::ServerMetrics;
use alert::AlertRecord;

use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::alert_commands::AlertCommands;
use rutter_core::port::error::ErrorReaction;
use rutter_core::port::feed::LedgerFeed;
use rutter_core::port::journal::Journal;
use rutter_core::port::outbox::{DeliveryOutbox, HttpSender};
use rutter_core::port::proof::LedgerProof;
use rutter_core::port::query::StoreQuery;
use rutter_core::port::register::Register;
use rutter_core::port::tools::ToolGateway;
use rutter_core::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The clock of this module.
pub type WatchClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

pub struct WatchPorts {
    pub feed: Arc<dyn LedgerFeed>,
    pub register: Arc<dyn Register>,
    pub outbox: Arc<dyn DeliveryOutbox>,
    pub query: Arc<dyn StoreQuery>,
    /// Read only, for the state of executions in notices.
    pub journal: Arc<dyn Journal>,
    pub proof: Arc<dyn LedgerProof>,
    pub tools: Arc<dyn ToolGateway>,
    pub http_sender: Arc<dyn HttpSender>,
    /// Counts deliveries.
    pub metrics: Arc<ServerMetrics>,
    pub alert_commands: Arc<dyn AlertCommands>,
}

impl std::fmt::Debug for WatchPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WatchPorts")
    }
}

#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The tenants whose ledgers are followed.
    pub tenants: Vec<TenantId>,
    /// How often conditions that depend only on time are checked.
    pub tick: Duration,
    /// How long to collect entries before the next read, so that following costs little.
    pub gather: Duration,
}

impl WatchOptions {
    pub fn new(tenants: Vec<TenantId>) -> WatchOptions {
        WatchOptions { tenants, tick: Duration::from_secs(10), gather: Duration::from_millis(100) }
    }
}

/// Manages webhooks and alerts; [`WatchService::run`] does the background work.
pub struct WatchService {
    ports: WatchPorts,
    clock: WatchClock,
    options: WatchOptions,
    /// The base URL of this server's pages.
    link: OnceLock<String>,
    /// Signals that webhooks changed.
    webhooks_changed: watch::Sender<()>,
    /// Signals that the outbox has new deliveries.
    outbox_changed: watch::Sender<()>,
    /// Signals that rules, silences or alerts changed.
    alerts_changed: watch::Sender<()>,
    /// Firing alerts as of the last evaluation.
    firing: Mutex<BTreeMap<TenantId, Arc<[AlertRecord]>>>,
}

impl WatchService {
    pub fn new(ports: WatchPorts, clock: WatchClock, options: WatchOptions) -> Arc<WatchService> {
        let signal = || watch::Sender::new(());
        Arc::new(WatchService {
            ports,
            clock,
            options,
            link: OnceLock::new(),
            webhooks_changed: signal(),
            outbox_changed: signal(),
            alerts_changed: signal(),
            firing: Mutex::default(),
        })
    }

    /// Sets the base URL of this server's pages; notices sent from then on contain links.
    pub fn set_link(&self, link: &str) {
        let _ = self.link.set(link.trim_end_matches('/').to_owned());
    }

    /// The commands that rules may name.
    pub fn commands(&self) -> Vec<String> {
        self.ports.alert_commands.names()
    }

    /// Runs readers, evaluators and the sender until shutdown. Interrupted deliveries are retried later, same id.
    pub async fn run(self: Arc<WatchService>, shutdown: CancellationToken) {
        let readers = self.options.tenants.iter().map(|tenant| reader::run(&self, tenant));
        let lookouts = self.options.tenants.iter().map(|tenant| evaluator::run(&self, tenant));
        let (readers, lookouts) = (futures::future::join_all(readers), futures::future::join_all(lookouts));
        let work = async { tokio::join!(readers, lookouts, webhook_sender::run(&self)) };
        tokio::select! {
            _ = work => {}
            () = shutdown.cancelled() => {}
        }
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The URL of a page.
    fn page(&self, path: &str) -> Option<String> {
        self.link.get().map(|link| format!("{link}/{path}"))
    }
}

impl std::fmt::Debug for WatchService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchService").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Exponential backoff after store errors; gives up once the store is closed.
#[derive(Default)]
struct StoreBackoff {
    failures: u32,
}

impl StoreBackoff {
    const MAX: Duration = Duration::from_secs(30);

    /// Waits before the next retry. False when the store is closed.
    async fn wait(&mut self, what: &'static str, error: &port::Error) -> bool {
        if *error == port::Error::Closed {
            return false;
        }
        // If the store is read-only, no alert can be written, so the log is the only way to report it.
        match error.reaction() {
            ErrorReaction::Stop => {
                tracing::error!(error.code = error.code(), %error, "{what} cannot continue")
            }
            _ => tracing::warn!(error.code = error.code(), %error, "{what} failed and will be retried"),
        }
        let span = Duration::from_millis(250 << self.failures.min(10));
        self.failures += 1;
        tokio::time::sleep(span.min(StoreBackoff::MAX)).await;
        true
    }

    fn reset(&mut self) {
        self.failures = 0;
    }
}
