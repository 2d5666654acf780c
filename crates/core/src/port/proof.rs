//! Proof that the ledger is unaltered: checkpoints, receipts, exports and verification.

use super::StoreFuture;
use super::query::{ListPage, Pagination};
use crate::execution::ExecutionIdentity;
use crate::id::{ExecutionId, TenantId};
use crate::journal::export::ExportLine;
use crate::journal::verify::{EntryReceipt, VerificationReport};
use crate::time::Timestamp;

pub trait LedgerProof: Send + Sync {
    /// Signed checkpoints of a tenant's ledger, newest first.
    fn checkpoints(&self, tenant: &TenantId, page: Pagination) -> StoreFuture<'_, ListPage<SignedCheckpoint>>;

    /// Signs a checkpoint now; `None` when there is nothing new to sign.
    fn sign(&self, tenant: &TenantId) -> StoreFuture<'_, Option<String>>;

    /// The key that verifies the signatures; `None` before the first one.
    fn public_key(&self) -> StoreFuture<'_, Option<String>>;

    /// A receipt, which proves later that an entry existed; of the last entry if none is named.
    fn receipt(&self, identity: &ExecutionIdentity, seq: Option<u64>) -> StoreFuture<'_, EntryReceipt>;

    /// Exports a whole ledger, or some executions, line by line. `each` returns whether it wants more.
    fn export(
        &self,
        tenant: &TenantId,
        executions: Option<Vec<ExecutionId>>,
        each: Box<dyn FnMut(ExportLine) -> bool + Send>,
    ) -> StoreFuture<'_, ()>;

    /// Verifies a tenant's ledger from beginning to end.
    fn verify(&self, tenant: &TenantId) -> StoreFuture<'_, LedgerCheck>;

    fn health(&self) -> StoreFuture<'_, StoreHealth>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    /// How many entries it covers.
    pub size: u64,
    pub at: Timestamp,
    pub note: String,
}

/// The result of verifying a ledger and its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerCheck {
    /// The verdict that an export of the ledger would get.
    pub verdict: VerificationReport,
    /// Rows of the store that differ from the journals.
    pub rows: Vec<String>,
}

impl LedgerCheck {
    pub fn is_clean(&self) -> bool {
        self.verdict.is_clean() && self.rows.is_empty()
    }
}

/// Whether the store works, and how fast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreHealth {
    /// Why the store cannot write, if so.
    pub trouble: Option<String>,
    pub free_bytes: u64,
    pub database_bytes: u64,
    pub schema: u64,
    /// Write requests in the queue.
    pub queue: u64,
    /// A cumulative histogram of append latency, from the request until it is on disk: upper bound in microseconds
    /// and count. The last bound is `u64::MAX`, and its count is the total.
    pub append_micros: Vec<(u64, u64)>,
    /// The sum of all append latencies.
    pub append_micros_sum: u64,
}
