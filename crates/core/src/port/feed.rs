//! The ledger feed: every entry of a tenant, in the order of writing.
//!
//! A position counts entries: the first has position 1, and a reader that has seen position n continues after n.
//! Positions never change, so that a reader that was offline misses nothing and reads nothing twice.

use super::StoreFuture;
use crate::hash::Hash;
use crate::id::TenantId;
use crate::journal::codec::StoredRecord;

pub trait LedgerFeed: Send + Sync {
    /// At most `limit` entries after a position, oldest first. Entries that were cleaned up are skipped.
    fn entries_after(&self, tenant: &TenantId, place: u64, limit: u32) -> StoreFuture<'_, FeedBatch>;

    /// Waits until the ledger is longer than this position; returns its size.
    fn wait_beyond(&self, tenant: &TenantId, place: u64) -> StoreFuture<'_, u64>;

    /// The number of entries in the ledger, including those that were cleaned up.
    fn size(&self, tenant: &TenantId) -> StoreFuture<'_, u64>;
}

/// Consecutive entries of the feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedBatch {
    pub items: Vec<FeedEntry>,
    /// The last position searched, even if its entry was cleaned up; continue after it.
    pub until: u64,
}

/// An entry with its position. Payloads are left out: the event has their commitments.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedEntry {
    pub position: u64,
    pub hash: Hash,
    /// The execution is `ledger` in the ledger's own journal.
    pub stored: StoredRecord,
}
