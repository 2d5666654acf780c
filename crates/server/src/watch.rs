//! Telling the outside what happens here: webhooks get the events of the ledger, people hear of what needs them.
//!
//! [`webhook`] says what a webhook is. A reader follows the ledger and puts what webhooks want into the outbox; the
//! courier takes it from there to the receivers. [`rule`] says when somebody is to be told; the lookout follows the
//! ledger too, looks around, and makes [`alert`]s of what it finds. Executions wait for none of them.

pub mod alert;
mod alerts;
mod cloud_event;
mod courier;
mod judge;
mod look;
mod lookout;
mod matter;
pub mod moment;
mod notice;
mod plans;
mod reader;
pub mod rule;
mod signature;
pub mod silence;
mod trail;
mod verify;
pub mod webhook;
mod webhooks;

pub use matter::Concern;
pub use plans::PlanOf;
pub use verify::Verified;
pub use webhooks::{DeliveryDetail, DeliveryLine, Tested, Try};

use crate::metrics::Metrics;
use alert::Alert;

use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::bell::Bell;
use rutter_core::port::error::React;
use rutter_core::port::feed::Feed;
use rutter_core::port::outbox::{Outbox, Post};
use rutter_core::port::proof::Proof;
use rutter_core::port::query::Query;
use rutter_core::port::register::Register;
use rutter_core::port::tools::Tools;
use rutter_core::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What time it is, for everything that is kept or waited for here.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

pub struct Ports {
    pub feed: Arc<dyn Feed>,
    pub register: Arc<dyn Register>,
    pub outbox: Arc<dyn Outbox>,
    pub query: Arc<dyn Query>,
    pub proof: Arc<dyn Proof>,
    pub tools: Arc<dyn Tools>,
    pub post: Arc<dyn Post>,
    /// Counts what was sent.
    pub metrics: Arc<Metrics>,
    pub bell: Arc<dyn Bell>,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ports")
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    /// Whose ledgers are followed.
    pub tenants: Vec<TenantId>,
    /// How often what depends on time alone is looked at.
    pub tick: Duration,
    /// How long entries are gathered before the next ones are read, so that following costs little.
    pub gather: Duration,
}

impl Options {
    pub fn new(tenants: Vec<TenantId>) -> Options {
        Options { tenants, tick: Duration::from_secs(10), gather: Duration::from_millis(100) }
    }
}

/// What everybody asks about webhooks and alerts; [`Watch::run`] does the work.
pub struct Watch {
    ports: Ports,
    clock: Clock,
    options: Options,
    /// Where people find the pages of this server.
    link: OnceLock<String>,
    /// There are other webhooks than before.
    webhooks_changed: watch::Sender<()>,
    /// There is something new to send.
    to_send: watch::Sender<()>,
    /// Rules, silences or alerts were changed.
    look_again: watch::Sender<()>,
    /// Alerts that fire, as of the last look.
    firing: Mutex<BTreeMap<TenantId, Arc<[Alert]>>>,
}

impl Watch {
    pub fn new(ports: Ports, clock: Clock, options: Options) -> Arc<Watch> {
        let signal = || watch::Sender::new(());
        Arc::new(Watch {
            ports,
            clock,
            options,
            link: OnceLock::new(),
            webhooks_changed: signal(),
            to_send: signal(),
            look_again: signal(),
            firing: Mutex::default(),
        })
    }

    /// Says where people find the pages of this server; what is sent from then on has links.
    pub fn set_link(&self, link: &str) {
        let _ = self.link.set(link.trim_end_matches('/').to_owned());
    }

    /// The commands that rules may name.
    pub fn commands(&self) -> Vec<String> {
        self.ports.bell.names()
    }

    /// Follows, sends and looks until the shutdown. What is under way then is sent again later, under the same id.
    pub async fn run(self: Arc<Watch>, shutdown: CancellationToken) {
        let readers = self.options.tenants.iter().map(|tenant| reader::run(&self, tenant));
        let lookouts = self.options.tenants.iter().map(|tenant| lookout::run(&self, tenant));
        let (readers, lookouts) = (futures::future::join_all(readers), futures::future::join_all(lookouts));
        let work = async { tokio::join!(readers, lookouts, courier::run(&self)) };
        tokio::select! {
            _ = work => {}
            () = shutdown.cancelled() => {}
        }
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Where people find a page.
    fn page(&self, path: &str) -> Option<String> {
        self.link.get().map(|link| format!("{link}/{path}"))
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("options", &self.options).finish_non_exhaustive()
    }
}

/// How long to leave the store alone when it cannot do its work: longer each time, and not at all once it is closed.
#[derive(Default)]
struct Patience {
    failures: u32,
}

impl Patience {
    const MAX: Duration = Duration::from_secs(30);

    /// Waits; false when there is no point in it.
    async fn wait(&mut self, what: &'static str, error: &port::Error) -> bool {
        if *error == port::Error::Closed {
            return false;
        }
        // Where nothing can be written nobody can be told otherwise.
        match error.react() {
            React::Stop => tracing::error!(error.code = error.code(), %error, "{what} cannot go on"),
            _ => tracing::warn!(error.code = error.code(), %error, "{what} could not go on and tries again"),
        }
        let span = Duration::from_millis(250 << self.failures.min(10));
        self.failures += 1;
        tokio::time::sleep(span.min(Patience::MAX)).await;
        true
    }

    fn calm(&mut self) {
        self.failures = 0;
    }
}
