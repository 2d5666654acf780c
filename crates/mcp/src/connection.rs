//! State of one connection: its subscriptions, and whether it wants log messages.

use crate::feed::{ClientInterests, NotificationFeed, NotificationSink};
use rmcp::service::{Peer, RoleServer};
use rutter_app::app::App;
use rutter_app::limits::RESOURCES_WATCHED_MAX;
use rutter_core::id::{ExecutionId, TenantId};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

#[derive(Debug)]
pub(crate) struct ClientConnection {
    /// For legacy clients, which subscribe to one resource at a time.
    interests: Arc<Mutex<ClientInterests>>,
    /// Aborted when the connection ends.
    feed: OnceLock<AbortOnDropHandle<()>>,
    /// One permit per subscribed resource.
    request_permits: Arc<Semaphore>,
}

impl Default for ClientConnection {
    fn default() -> ClientConnection {
        ClientConnection {
            interests: Arc::new(Mutex::new(ClientInterests::new(true))),
            feed: OnceLock::new(),
            request_permits: Arc::new(Semaphore::new(RESOURCES_WATCHED_MAX)),
        }
    }
}

impl ClientConnection {
    /// Starts notifications for a legacy client, unless they run already.
    pub(crate) fn begin(&self, app: &Arc<App>, tenant: &TenantId, peer: &Peer<RoleServer>) {
        self.feed.get_or_init(|| {
            let feed = NotificationFeed {
                app: Arc::clone(app),
                tenant: tenant.clone(),
                interests: Arc::clone(&self.interests),
                sink: NotificationSink::Legacy(peer.clone()),
            };
            // Subscribed now, so no update is missed before the task runs.
            let updates = app.updates();
            AbortOnDropHandle::new(tokio::spawn(feed.run(updates)))
        });
    }

    /// How many more resources may be subscribed.
    pub(crate) fn permits_left(&self) -> usize {
        self.request_permits.available_permits()
    }

    /// Reserves `count` subscriptions until dropped; `None` when there are not enough left.
    pub(crate) fn try_acquire(&self, count: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.request_permits).try_acquire_many_owned(u32::try_from(count).ok()?).ok()
    }

    /// Returns false when the limit is reached.
    pub(crate) fn watch(&self, uri: &str, execution: ExecutionId) -> bool {
        let mut interests = self.interests();
        if interests.resources.contains_key(uri) {
            return true;
        }
        let Some(place) = self.try_acquire(1) else { return false };
        interests.resources.insert(uri.to_owned(), (execution, Some(place)));
        true
    }

    pub(crate) fn unwatch(&self, uri: &str) {
        self.interests().resources.remove(uri);
    }

    pub(crate) fn wants_lines(&self, wants: bool) {
        self.interests().wants_lines = wants;
    }

    /// Remembers an execution this client uses.
    pub(crate) fn knows(&self, execution: &str) {
        self.interests().know(ExecutionId::new(execution));
    }

    fn interests(&self) -> MutexGuard<'_, ClientInterests> {
        self.interests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
