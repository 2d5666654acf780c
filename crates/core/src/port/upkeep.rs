//! Removing what is no longer to be kept, without breaking the proof of what remains.

use super::Answer;
use crate::actor::Actor;
use crate::execution::Identity;
use crate::execution::view::Status;
use crate::id::TenantId;
use crate::time::Timestamp;

pub trait Upkeep: Send + Sync {
    /// Erases payloads of an execution; their commitments and every hash stay. Says so in the ledger's own journal,
    /// unless there was nothing to erase.
    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased>;

    /// Removes ended executions that nobody has touched for a while, batch by batch. Hashes stay. What has letters
    /// waiting or is held by a living worker is left alone.
    fn clean(&self, cleaning: Cleaning) -> Answer<'_, Cleaned>;
}

#[derive(Clone, Debug)]
pub struct Erasure {
    pub identity: Identity,
    /// Only these entries' payloads; `None` erases all of the execution.
    pub entries: Option<Vec<u64>>,
    pub actor: Actor,
    pub at: Timestamp,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    pub payloads: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct Cleaning {
    pub tenant: TenantId,
    /// Which ended executions; empty means every ended one. A status that is not an end is refused.
    pub statuses: Vec<Status>,
    /// Nothing happened to them since, nor at that moment.
    pub untouched_since: Timestamp,
    /// What to take away.
    pub what: CleanedPart,
    /// Only says what would be removed.
    pub dry_run: bool,
    pub actor: Actor,
    pub at: Timestamp,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanedPart {
    /// Parameters, results, evidence: the story stays readable.
    Payloads,
    /// Everything but the hashes.
    Executions,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    pub executions: u64,
    /// None when only payloads went.
    pub entries: u64,
    pub payloads: u64,
    /// Of the payloads.
    pub bytes: u64,
}
