//! Following a ledger as it grows.

use super::find::page_size;
use super::state::{MemoryState, StoreResult, TenantLedger};
use super::{MemoryStore, answer};
use rutter_core::id::TenantId;
use rutter_core::journal::codec;
use rutter_core::port::feed::{FeedBatch, FeedEntry, LedgerFeed};
use rutter_core::port::{Error, StoreFuture};

impl LedgerFeed for MemoryStore {
    fn entries_after(&self, tenant: &TenantId, place: u64, limit: u32) -> StoreFuture<'_, FeedBatch> {
        answer(self.state().after(tenant, place, limit))
    }

    fn wait_beyond(&self, tenant: &TenantId, place: u64) -> StoreFuture<'_, u64> {
        let (tenant, mut grown) = (tenant.clone(), self.grown.subscribe());
        Box::pin(async move {
            loop {
                grown.mark_unchanged();
                let size = self.state().size(&tenant);
                if size > place {
                    return Ok(size);
                }
                grown.changed().await.map_err(|_| Error::Closed)?;
            }
        })
    }

    fn size(&self, tenant: &TenantId) -> StoreFuture<'_, u64> {
        answer(Ok(self.state().size(tenant)))
    }
}

impl MemoryState {
    fn size(&self, tenant: &TenantId) -> u64 {
        self.tenants.get(tenant).map_or(0, |ledger| ledger.places)
    }

    fn after(&self, tenant: &TenantId, place: u64, limit: u32) -> StoreResult<FeedBatch> {
        let limit = page_size(limit)?;
        let lines = self.tenants.get(tenant).into_iter().flat_map(TenantLedger::lines);
        let mut lines: Vec<_> = lines.map(|(_, line)| line).filter(|line| line.place > place).collect();
        lines.sort_by_key(|line| line.place);
        lines.truncate(limit);
        let until = match lines.last() {
            Some(last) if lines.len() == limit => last.place,
            _ => self.size(tenant).max(place),
        };
        let items = lines.into_iter().map(|line| {
            let entry = &line.sealed.entry;
            let stored = codec::decode(&entry.bytes).map_err(|error| Error::Corrupt(error.to_string()))?;
            Ok(FeedEntry { position: line.place, hash: entry.hash, stored })
        });
        Ok(FeedBatch { items: items.collect::<StoreResult<_>>()?, until })
    }
}
