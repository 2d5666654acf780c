//! The ledger as it grows, for everybody who follows it: one reader for each tenant fills a ring of the newest entries,
//! and whoever follows takes from the ring by place, or from the ledger itself when too far behind.
//!
//! Places have one order and no gaps that matter, so everybody sees every entry once and in order: there is nothing
//! else to see to.

mod entry;
mod ring;

use crate::limits::LIVE_ENTRIES_MAX;
pub use entry::Entry;
use ring::Ring;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::feed::Feed;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Entries read at once.
const STRETCH: u32 = 512;
/// Before the ledger is asked again when it could not be read.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct Live {
    feed: Arc<dyn Feed>,
    rings: Arc<Mutex<HashMap<TenantId, Arc<Kept>>>>,
    closing: CancellationToken,
}

/// The ring of one tenant, and how far it has come.
#[derive(Debug)]
struct Kept {
    ring: Mutex<Ring>,
    newest: watch::Sender<u64>,
}

/// Somebody's place in a ledger.
pub struct Follower {
    feed: Arc<dyn Feed>,
    tenant: TenantId,
    kept: Arc<Kept>,
    newest: watch::Receiver<u64>,
    place: u64,
}

impl Live {
    pub fn new(feed: Arc<dyn Feed>, closing: CancellationToken) -> Arc<Live> {
        Arc::new(Live { feed, rings: Arc::default(), closing })
    }

    /// Follows a ledger from after a place, or from now on.
    pub async fn follow(&self, tenant: &TenantId, after: Option<u64>) -> Result<Follower, port::Error> {
        let kept = self.kept(tenant).await?;
        let newest = kept.newest.subscribe();
        let place = match after {
            Some(place) => place,
            None => self.feed.size(tenant).await?,
        };
        Ok(Follower { feed: Arc::clone(&self.feed), tenant: tenant.clone(), kept, newest, place })
    }

    async fn kept(&self, tenant: &TenantId) -> Result<Arc<Kept>, port::Error> {
        let known = || self.rings.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned();
        if let Some(kept) = known() {
            return Ok(kept);
        }
        let size = self.feed.size(tenant).await?;
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = rings.entry(tenant.clone()).or_insert_with(|| {
            let kept = Arc::new(Kept {
                ring: Mutex::new(Ring::new(LIVE_ENTRIES_MAX, size)),
                newest: watch::Sender::new(size),
            });
            let reading = read(Arc::clone(&self.feed), tenant.clone(), Arc::clone(&kept), size);
            let closing = self.closing.clone();
            tokio::spawn(async move { closing.run_until_cancelled(reading).await });
            kept
        });
        Ok(Arc::clone(kept))
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

/// The one who reads for everybody.
async fn read(feed: Arc<dyn Feed>, tenant: TenantId, kept: Arc<Kept>, mut place: u64) {
    loop {
        match next(&*feed, &tenant, place).await {
            Ok((items, until)) => {
                kept.ring.lock().unwrap_or_else(PoisonError::into_inner).push(items, until);
                place = until;
                kept.newest.send_replace(until);
            }
            Err(port::Error::Closed) => return,
            Err(error) => {
                tracing::warn!(error.code = error.code(), "the ledger cannot be followed now: {error}");
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    }
}

async fn next(feed: &dyn Feed, tenant: &TenantId, place: u64) -> Result<(Vec<Arc<Entry>>, u64), port::Error> {
    feed.beyond(tenant, place).await?;
    let stretch = feed.after(tenant, place, STRETCH).await?;
    Ok((stretch.items.into_iter().map(Entry::of).collect(), stretch.until.max(place)))
}

impl Follower {
    /// Up to where everything was seen.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// What comes next, as soon as there is something. Everything up to [`Follower::place`] was handed out by then.
    pub async fn next(&mut self) -> Result<Vec<Arc<Entry>>, port::Error> {
        loop {
            let found = self.kept.ring.lock().unwrap_or_else(PoisonError::into_inner).after(self.place);
            let (items, until) = match found {
                Some(found) => found,
                None => {
                    let stretch = self.feed.after(&self.tenant, self.place, STRETCH).await?;
                    (stretch.items.into_iter().map(Entry::of).collect(), stretch.until)
                }
            };
            if until > self.place {
                self.place = until;
                return Ok(items);
            }
            let place = self.place;
            if self.newest.wait_for(|newest| *newest > place).await.is_err() {
                return Err(port::Error::Closed);
            }
        }
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("tenant", &self.tenant).field("place", &self.place).finish()
    }
}
