//! Where everything that is asked arrives: the engine, and the ports it does not hide.

use rmcp::model::RequestStateCodec;
use rutter_core::port::query::Query;
use rutter_core::port::tools::Tools;
use rutter_core::port::upkeep::Upkeep;
use rutter_engine::Engine;
use std::sync::{Arc, OnceLock};
use tokio::sync::Semaphore;

pub struct Desk {
    pub engine: Engine,
    pub query: Arc<dyn Query>,
    pub upkeep: Arc<dyn Upkeep>,
    pub tools: Arc<dyn Tools>,
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

impl Desk {
    pub fn new(
        engine: Engine,
        query: Arc<dyn Query>,
        upkeep: Arc<dyn Upkeep>,
        tools: Arc<dyn Tools>,
        settings: Settings,
        seal: [u8; 32],
    ) -> Arc<Desk> {
        let places = Arc::new(Semaphore::new(crate::limits::REQUESTS_MAX));
        let listeners = Semaphore::new(crate::limits::LISTENERS_MAX);
        let seal = RequestStateCodec::try_new(seal.to_vec()).expect("a key of 32 bytes is long enough");
        Arc::new(Desk {
            engine,
            query,
            upkeep,
            tools,
            settings,
            link: OnceLock::new(),
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
