//! Where everything that is asked arrives: the engine, and the ports it does not hide.

use crate::auth::Auth;
use crate::insight::Insight;
use crate::watch::Watch;
use rmcp::model::RequestStateCodec;
use rutter_core::port::feed::Feed;
use rutter_core::port::outbox::Outbox;
use rutter_core::port::proof::Proof;
use rutter_core::port::query::Query;
use rutter_core::port::register::Register;
use rutter_core::port::tools::Tools;
use rutter_core::port::upkeep::Upkeep;
use rutter_engine::Engine;
use std::sync::{Arc, OnceLock};
use tokio::sync::Semaphore;

pub struct Desk {
    pub engine: Engine,
    pub query: Arc<dyn Query>,
    pub upkeep: Arc<dyn Upkeep>,
    pub feed: Arc<dyn Feed>,
    pub register: Arc<dyn Register>,
    pub outbox: Arc<dyn Outbox>,
    pub proof: Arc<dyn Proof>,
    pub tools: Arc<dyn Tools>,
    pub settings: Settings,
    /// Where people find the pages of this server, once it has any.
    pub link: OnceLock<String>,
    /// Who may come in, once there is a door.
    pub auth: OnceLock<Arc<Auth>>,
    /// What the ledger amounts to, once somebody counts.
    pub insight: OnceLock<Arc<Insight>>,
    /// Webhooks and alerts, once somebody sees to them.
    pub watch: OnceLock<Arc<Watch>>,
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

impl Desk {
    /// `store`: whoever keeps everything.
    pub fn new<S>(
        engine: Engine,
        store: &Arc<S>,
        tools: Arc<dyn Tools>,
        settings: Settings,
        seal: [u8; 32],
    ) -> Arc<Desk>
    where
        S: Query + Upkeep + Feed + Register + Outbox + Proof + 'static,
    {
        let places = Arc::new(Semaphore::new(crate::limits::REQUESTS_MAX));
        let listeners = Semaphore::new(crate::limits::LISTENERS_MAX);
        let seal = RequestStateCodec::try_new(seal.to_vec()).expect("a key of 32 bytes is long enough");
        Arc::new(Desk {
            engine,
            query: store.clone(),
            upkeep: store.clone(),
            feed: store.clone(),
            register: store.clone(),
            outbox: store.clone(),
            proof: store.clone(),
            tools,
            settings,
            link: OnceLock::new(),
            auth: OnceLock::new(),
            insight: OnceLock::new(),
            watch: OnceLock::new(),
            seal,
            places,
            listeners,
        })
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("settings", &self.settings).finish_non_exhaustive()
    }
}
