//! What one connection keeps while it lasts: what it watches, and whether it wants to be told a line now and then.

use crate::desk::Desk;
use crate::limits::RESOURCES_WATCHED_MAX;
use crate::mcp::feed::{Feed, Interests, Sink};
use rmcp::service::{Peer, RoleServer};
use rutter_core::id::{ExecutionId, TenantId};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

#[derive(Debug)]
pub(crate) struct Connection {
    /// Of the older era, where interests come and go one by one.
    interests: Arc<Mutex<Interests>>,
    /// Ends with the connection.
    feed: OnceLock<AbortOnDropHandle<()>>,
    /// One for each resource that is watched.
    places: Arc<Semaphore>,
}

impl Default for Connection {
    fn default() -> Connection {
        Connection {
            interests: Arc::new(Mutex::new(Interests::new(true))),
            feed: OnceLock::new(),
            places: Arc::new(Semaphore::new(RESOURCES_WATCHED_MAX)),
        }
    }
}

impl Connection {
    /// Begins to tell a client of the older era what happens, if that has not begun.
    pub(crate) fn begin(&self, desk: &Arc<Desk>, tenant: &TenantId, peer: &Peer<RoleServer>) {
        self.feed.get_or_init(|| {
            let feed = Feed {
                desk: Arc::clone(desk),
                tenant: tenant.clone(),
                interests: Arc::clone(&self.interests),
                sink: Sink::Legacy(peer.clone()),
            };
            // Heard from here on, whenever the loop gets its turn.
            let happenings = desk.engine.listen();
            AbortOnDropHandle::new(tokio::spawn(feed.run(happenings)))
        });
    }

    /// How many more resources may be watched.
    pub(crate) fn places_left(&self) -> usize {
        self.places.available_permits()
    }

    /// Room for so many, as long as it is kept; `None` when there is not enough.
    pub(crate) fn places(&self, count: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_many_owned(u32::try_from(count).ok()?).ok()
    }

    /// Says whether there was room for it.
    pub(crate) fn watch(&self, uri: &str, execution: ExecutionId) -> bool {
        let mut interests = self.interests();
        if interests.resources.contains_key(uri) {
            return true;
        }
        let Some(place) = self.places(1) else { return false };
        interests.resources.insert(uri.to_owned(), (execution, Some(place)));
        true
    }

    pub(crate) fn leave(&self, uri: &str) {
        self.interests().resources.remove(uri);
    }

    pub(crate) fn wants_lines(&self, wants: bool) {
        self.interests().wants_lines = wants;
    }

    /// Remembers an execution this client has to do with.
    pub(crate) fn knows(&self, execution: &str) {
        self.interests().know(ExecutionId::new(execution));
    }

    fn interests(&self) -> MutexGuard<'_, Interests> {
        self.interests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
