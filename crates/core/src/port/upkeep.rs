//! Erasure and cleaning of old data, without breaking the proof of the remaining entries.

use super::StoreFuture;
use crate::actor::Actor;
use crate::execution::ExecutionIdentity;
use crate::execution::view::ExecutionStatus;
use crate::id::TenantId;
use crate::time::Timestamp;

pub trait StoreMaintenance: Send + Sync {
    /// Erases payloads of an execution; their commitments and every hash stay. Recorded in the ledger's own journal
    /// unless there was nothing to erase.
    fn erase(&self, erasure: ErasureRequest) -> StoreFuture<'_, ErasedTotals>;

    /// Removes ended executions that have not changed for a while, in batches. Hashes stay. Executions with pending
    /// commands or held by a live worker are left alone.
    fn clean(&self, cleaning: CleaningRequest) -> StoreFuture<'_, CleanedTotals>;
}

#[derive(Clone, Debug)]
pub struct ErasureRequest {
    pub identity: ExecutionIdentity,
    /// Only the payloads of these entries; `None` erases all payloads of the execution.
    pub entries: Option<Vec<u64>>,
    pub actor: Actor,
    pub at: Timestamp,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedTotals {
    pub payloads: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct CleaningRequest {
    pub tenant: TenantId,
    /// Statuses of ended executions; empty means all. A status that is not final is refused.
    pub statuses: Vec<ExecutionStatus>,
    /// Only executions last changed before this time.
    pub untouched_since: Timestamp,
    /// What to remove.
    pub what: CleanedPart,
    /// Only counts what would be removed.
    pub dry_run: bool,
    pub actor: Actor,
    pub at: Timestamp,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanedPart {
    /// Parameters, results, evidence: the events stay readable.
    Payloads,
    /// Everything but the hashes.
    Executions,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanedTotals {
    pub executions: u64,
    /// 0 when only payloads were removed.
    pub entries: u64,
    pub payloads: u64,
    /// Of the payloads.
    pub bytes: u64,
}
