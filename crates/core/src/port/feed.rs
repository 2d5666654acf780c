//! The ledger as it grows: every entry of a tenant, in the one order in which they were written.
//!
//! A place counts entries: the first has place 1, and whoever has seen place n goes on after n. Places never change,
//! so that somebody who was away finds exactly what was written since.

use super::Answer;
use crate::hash::Hash;
use crate::id::TenantId;
use crate::journal::codec::Stored;

pub trait Feed: Send + Sync {
    /// What stands after a place, oldest first, at most so many. What was cleaned up is passed over.
    fn after(&self, tenant: &TenantId, place: u64, limit: u32) -> Answer<'_, Stretch>;

    /// Answers with the ledger's size once it is more than `place`: at once, or when the next entry is on disk.
    fn beyond(&self, tenant: &TenantId, place: u64) -> Answer<'_, u64>;

    /// How many entries the ledger has, those that were cleaned up among them.
    fn size(&self, tenant: &TenantId) -> Answer<'_, u64>;
}

/// Some entries in a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    pub items: Vec<Placed>,
    /// Up to here was looked, also where nothing is left; go on after it.
    pub until: u64,
}

/// An entry with its place. Payloads stay where they are: the event has their commitments.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    pub place: u64,
    pub hash: Hash,
    /// The execution is `ledger` in the ledger's own journal.
    pub stored: Stored,
}
