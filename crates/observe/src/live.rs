//! A live feed of the ledger: one reader per tenant fills a ring of the newest entries. Followers read from the ring by
//! position, or from the ledger itself when they are too far behind.
//!
//! Positions are totally ordered and only removed entries leave gaps, so every follower sees every entry once and in
//! order.

mod entry;
mod ring;

use crate::limits::LIVE_ENTRIES_MAX;
pub use entry::LiveEntry;
use ring::EntryRing;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::feed::LedgerFeed;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Entries read at once.
const STRETCH: u32 = 512;
/// Pause after a read error.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct LiveLedger {
    feed: Arc<dyn LedgerFeed>,
    rings: Arc<Mutex<HashMap<TenantId, Arc<TenantRing>>>>,
    closing: CancellationToken,
}

/// The ring of one tenant, and the newest position in it.
#[derive(Debug)]
struct TenantRing {
    ring: Mutex<EntryRing>,
    newest: watch::Sender<u64>,
}

/// A cursor in a ledger.
pub struct LedgerFollower {
    feed: Arc<dyn LedgerFeed>,
    tenant: TenantId,
    tenant_ring: Arc<TenantRing>,
    newest: watch::Receiver<u64>,
    position: u64,
}

impl LiveLedger {
    pub fn new(feed: Arc<dyn LedgerFeed>, closing: CancellationToken) -> Arc<LiveLedger> {
        Arc::new(LiveLedger { feed, rings: Arc::default(), closing })
    }

    /// Follows a ledger from after a position, or from its present end.
    pub async fn follow(&self, tenant: &TenantId, after: Option<u64>) -> Result<LedgerFollower, port::Error> {
        let stored = self.tenant_ring(tenant).await?;
        let newest = stored.newest.subscribe();
        let place = match after {
            Some(place) => place,
            None => self.feed.size(tenant).await?,
        };
        Ok(LedgerFollower {
            feed: Arc::clone(&self.feed),
            tenant: tenant.clone(),
            tenant_ring: stored,
            newest,
            position: place,
        })
    }

    async fn tenant_ring(&self, tenant: &TenantId) -> Result<Arc<TenantRing>, port::Error> {
        let known = || self.rings.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned();
        if let Some(stored) = known() {
            return Ok(stored);
        }
        let size = self.feed.size(tenant).await?;
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let retained = rings.entry(tenant.clone()).or_insert_with(|| {
            let existing = Arc::new(TenantRing {
                ring: Mutex::new(EntryRing::new(LIVE_ENTRIES_MAX, size)),
                newest: watch::Sender::new(size),
            });
            let reading = read(Arc::clone(&self.feed), tenant.clone(), Arc::clone(&existing), size);
            let closing = self.closing.clone();
            tokio::spawn(async move { closing.run_until_cancelled(reading).await });
            existing
        });
        Ok(Arc::clone(retained))
    }
}

impl std::fmt::Debug for LiveLedger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveLedger").finish_non_exhaustive()
    }
}

/// Fills the ring of one tenant.
async fn read(feed: Arc<dyn LedgerFeed>, tenant: TenantId, stored: Arc<TenantRing>, mut place: u64) {
    loop {
        match next(&*feed, &tenant, place).await {
            Ok((items, until)) => {
                stored.ring.lock().unwrap_or_else(PoisonError::into_inner).push(items, until);
                place = until;
                stored.newest.send_replace(until);
            }
            Err(port::Error::Closed) => return,
            Err(error) => {
                tracing::warn!(error.code = error.code(), "could not read the ledger, retrying: {error}");
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    }
}

async fn next(feed: &dyn LedgerFeed, tenant: &TenantId, place: u64) -> Result<(Vec<Arc<LiveEntry>>, u64), port::Error> {
    feed.wait_beyond(tenant, place).await?;
    let stretch = feed.entries_after(tenant, place, STRETCH).await?;
    Ok((stretch.items.into_iter().map(LiveEntry::of).collect(), stretch.until.max(place)))
}

impl LedgerFollower {
    /// The position up to which entries were returned.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Waits for the next entries. [`LedgerFollower::position`] is then the last position they cover.
    pub async fn next(&mut self) -> Result<Vec<Arc<LiveEntry>>, port::Error> {
        loop {
            let found = self.tenant_ring.ring.lock().unwrap_or_else(PoisonError::into_inner).after(self.position);
            let (items, until) = match found {
                Some(found) => found,
                None => {
                    let stretch = self.feed.entries_after(&self.tenant, self.position, STRETCH).await?;
                    (stretch.items.into_iter().map(LiveEntry::of).collect(), stretch.until)
                }
            };
            if until > self.position {
                self.position = until;
                return Ok(items);
            }
            let place = self.position;
            if self.newest.wait_for(|newest| *newest > place).await.is_err() {
                return Err(port::Error::Closed);
            }
        }
    }
}

impl std::fmt::Debug for LedgerFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("LedgerFollower");
        out.field("tenant", &self.tenant).field("position", &self.position).finish()
    }
}
