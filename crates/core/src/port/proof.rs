//! Showing that what is kept is what was written: signed heads, receipts, exports, and the check of all of it.

use super::Answer;
use super::query::{Listing, Page};
use crate::execution::Identity;
use crate::id::{ExecutionId, TenantId};
use crate::journal::export::Line;
use crate::journal::verify::{Receipt, Verdict};
use crate::time::Timestamp;

pub trait Proof: Send + Sync {
    /// Signed heads of a tenant's ledger, newest first.
    fn checkpoints(&self, tenant: &TenantId, page: Page) -> Answer<'_, Listing<SignedHead>>;

    /// Signs the head now; `None` when there is nothing new to sign.
    fn sign(&self, tenant: &TenantId) -> Answer<'_, Option<String>>;

    /// With which the signatures can be checked; `None` before the first one.
    fn public_key(&self) -> Answer<'_, Option<String>>;

    /// What somebody can keep to show later that an entry was there; the last one if none is named.
    fn receipt(&self, identity: &Identity, seq: Option<u64>) -> Answer<'_, Receipt>;

    /// Hands out a whole ledger, or some executions, line by line. `each` answers whether it wants more.
    fn export(
        &self,
        tenant: &TenantId,
        executions: Option<Vec<ExecutionId>>,
        each: Box<dyn FnMut(Line) -> bool + Send>,
    ) -> Answer<'_, ()>;

    /// Checks a tenant's ledger from beginning to end.
    fn verify(&self, tenant: &TenantId) -> Answer<'_, Checked>;

    fn health(&self) -> Answer<'_, Health>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHead {
    /// How many entries it covers.
    pub size: u64,
    pub at: Timestamp,
    pub note: String,
}

/// What a check of a whole store found.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The ledger as an export of it would be judged.
    pub verdict: Verdict,
    /// Where the rows of the store do not say what the journals say.
    pub rows: Vec<String>,
}

impl Checked {
    pub fn is_clean(&self) -> bool {
        self.verdict.is_clean() && self.rows.is_empty()
    }
}

/// Whether the store can do its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Why nothing can be written, if that is so.
    pub trouble: Option<String>,
    pub free_bytes: u64,
    pub database_bytes: u64,
    pub schema: u64,
    /// Requests to write that wait for their turn.
    pub queue: u64,
    /// How long writing took, from asking to being on disk: not more than so many microseconds, for how many.
    /// The last bound is `u64::MAX`, and its count that of all.
    pub append_micros: Vec<(u64, u64)>,
    /// All of that together.
    pub append_micros_sum: u64,
}
