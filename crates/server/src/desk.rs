//! Where everything that is asked arrives: the engine, and the ports it does not hide.

use crate::auth::{Auth, Token};
use crate::insight::Insight;
use crate::metrics::Metrics;
use crate::trace::{self, Tracer};
use crate::watch::{self, Watch};
use rmcp::model::RequestStateCodec;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::bell::Bell;
use rutter_core::port::feed::Feed;
use rutter_core::port::outbox::{Outbox, Post};
use rutter_core::port::proof::Proof;
use rutter_core::port::query::Query;
use rutter_core::port::register::Register;
use rutter_core::port::tools::Tools;
use rutter_core::port::upkeep::Upkeep;
use rutter_core::time::Timestamp;
use rutter_engine::{Clock, Engine};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub struct Desk {
    pub engine: Engine,
    pub query: Arc<dyn Query>,
    pub upkeep: Arc<dyn Upkeep>,
    pub feed: Arc<dyn Feed>,
    pub register: Arc<dyn Register>,
    pub outbox: Arc<dyn Outbox>,
    pub proof: Arc<dyn Proof>,
    pub tools: Arc<dyn Tools>,
    /// Who may come in.
    pub auth: Arc<Auth>,
    /// What the journals amount to.
    pub insight: Arc<Insight>,
    /// Webhooks and alerts.
    pub watch: Arc<Watch>,
    pub metrics: Arc<Metrics>,
    tracer: Mutex<Option<Tracer>>,
    pub settings: Settings,
    /// Where people find the pages of this server, once it has any.
    pub link: OnceLock<String>,
    /// Seals questions that travel to a client and back.
    pub(crate) seal: RequestStateCodec,
    pub(crate) places: Arc<Semaphore>,
    /// For requests that stay, which must not take the place of those that end.
    pub(crate) listeners: Semaphore,
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether the person at a client may approve and settle there. A client is not proof of a person.
    pub ask_at_client: bool,
}

/// Somebody who wants traces.
pub struct Collector {
    pub options: trace::Options,
    pub post: Arc<dyn Post>,
}

/// What a desk is made of.
pub struct Parts<S> {
    pub engine: Engine,
    /// Whoever keeps everything.
    pub store: Arc<S>,
    pub tools: Arc<dyn Tools>,
    /// For addresses that somebody may choose over HTTP.
    pub post: Arc<dyn Post>,
    /// For programs the operator named.
    pub bell: Arc<dyn Bell>,
    /// Where traces go, and who takes them there.
    pub collector: Option<Collector>,
    pub clock: Clock,
    /// Of the configuration, and from the files beside the database.
    pub tokens: Vec<Token>,
    pub settings: Settings,
    pub seal: [u8; 32],
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<S> std::fmt::Debug for Parts<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Desk {
    pub async fn open<S>(parts: Parts<S>) -> Result<Arc<Desk>, port::Error>
    where
        S: Query + Upkeep + Feed + Register + Outbox + Proof + 'static,
    {
        let Parts { engine, store, tools, post, bell, collector, clock, tokens, settings, seal } = parts;
        let tenant = TenantId::new("default");
        let now: Arc<dyn Fn() -> Timestamp + Send + Sync> = Arc::new(move || clock.now());
        let auth = Auth::open(store.clone(), tenant.clone(), Arc::clone(&now), tokens).await?;
        let (feed, query, register) = (store.clone(), store.clone(), store.clone());
        let insight = Insight::open(tenant.clone(), feed, query, register, clock).await?;
        let metrics = Metrics::new(env!("CARGO_PKG_VERSION"), clock.now());
        let ports = watch::Ports {
            feed: store.clone(),
            register: store.clone(),
            outbox: store.clone(),
            query: store.clone(),
            proof: store.clone(),
            tools: Arc::clone(&tools),
            post,
            metrics: Arc::clone(&metrics),
            bell,
        };
        let watch = Watch::new(ports, now, watch::Options::new(vec![tenant.clone()]));
        let tracer = collector.map(|Collector { options, post }| Tracer {
            options,
            tenant,
            feed: store.clone(),
            query: store.clone(),
            register: store.clone(),
            post,
            metrics: Arc::clone(&metrics),
            clock,
        });
        let seal = RequestStateCodec::try_new(seal.to_vec()).expect("a key of 32 bytes is long enough");
        Ok(Arc::new(Desk {
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
            tracer: Mutex::new(tracer),
            settings,
            link: OnceLock::new(),
            seal,
            places: Arc::new(Semaphore::new(crate::limits::REQUESTS_MAX)),
            listeners: Semaphore::new(crate::limits::LISTENERS_MAX),
        }))
    }

    /// Does what is to be done beside answering: counts, sends, looks out. Ends when it is told to.
    pub async fn run(self: Arc<Desk>, shutdown: CancellationToken) {
        let kept = Arc::clone(&self.auth).run(shutdown.clone());
        let counted = Arc::clone(&self.insight).run(shutdown.clone());
        let watched = Arc::clone(&self.watch).run(shutdown.clone());
        let measured = Arc::clone(&self.metrics).run(self.engine.clone(), shutdown.clone());
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let traced = async {
            if let Some(tracer) = tracer {
                tracer.run(shutdown).await;
            }
        };
        tokio::join!(kept, counted, watched, measured, traced);
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("settings", &self.settings).finish_non_exhaustive()
    }
}
