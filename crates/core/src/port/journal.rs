//! The store of executions: leases, appends and commands. Every acknowledged write is on disk.

use super::StoreFuture;
use crate::actor::Actor;
use crate::execution::ExecutionIdentity;
use crate::execution::row::ExecutionProjection;
use crate::hash::Hash;
use crate::id::{ExecutionId, PlanId, TenantId, WorkerId};
use crate::journal::chain::{ChainHead, Entry, HashChain};
use crate::journal::codec::ErasedPayload;
use crate::journal::event::{Event, EventRecord};
use crate::journal::payload::{PayloadSalt, SealedPayload};
use crate::plan::Plan;
use crate::time::Timestamp;
use std::sync::Arc;

pub trait Journal: Send + Sync {
    /// Saves a plan as the next revision of its id. A plan whose bytes and tools equal the newest revision is not
    /// saved again, whatever was expected; for one execution it is not saved again if any revision equals it. A new
    /// revision is recorded in the ledger's own journal.
    fn save(&self, plan: NewRevision) -> StoreFuture<'_, SaveOutcome>;

    /// Archives, restores or deletes a plan, and records it in the ledger's own journal. Deleting is refused as
    /// [`super::Error::InUse`] while an execution of the plan has not ended. The text goes at once, or together with the
    /// last ended execution whose journal needs it.
    fn change_plan(&self, change: PlanStateChange) -> StoreFuture<'_, PlanStateOutcome>;

    /// Opens the journal of a new execution; its plan must be saved and neither archived nor deleted. A repeated request, or the same entries under
    /// the same id, return [`OpenOutcome::Already`]; other entries under the same id are a
    /// [`super::Error::Conflict`].
    fn open(&self, opening: ExecutionOpening) -> StoreFuture<'_, OpenOutcome>;

    /// Claims up to `limit` executions that are due and that no live worker holds, of any tenant, longest due first.
    /// Each gets the next epoch. A worker must renew before it claims: one that never did counts as dead.
    fn claim(&self, claim: ClaimRequest) -> StoreFuture<'_, Vec<Lease>>;

    /// Extends a worker's lease time until this moment, inclusive. It is never shortened.
    fn renew(&self, worker: &WorkerId, until: Timestamp) -> StoreFuture<'_, ()>;

    /// Loads an execution and verifies its hash chain. An execution of another tenant is not found.
    fn load(&self, identity: &ExecutionIdentity) -> StoreFuture<'_, LoadedExecution>;

    /// Appends atomically: entries, payloads, row, decided commands.
    ///
    /// Refused as [`super::Error::Fenced`] when the lease is no longer the newest, and as
    /// [`super::Error::Conflict`] when the journal does not end at `expected`. Repeating the same entries
    /// returns [`AppendOutcome::Already`] and changes nothing, even if the journal has grown since. Without
    /// entries, only the row and the commands change. The row's plan must be saved.
    fn append(&self, append: AppendRequest) -> StoreFuture<'_, AppendOutcome>;

    /// Queues a command for an execution, even an ended one, and makes the execution due until the command is
    /// decided.
    fn enqueue(&self, command: NewCommand) -> StoreFuture<'_, EnqueueOutcome>;

    /// Releases a lease, so that any worker can claim the execution. Idempotent until the next claim.
    fn release(&self, lease: Lease) -> StoreFuture<'_, ()>;
}

/// A request with an idempotency key. `digest` detects a key reused for a different request. Keys are visible ASCII;
/// openings and commands of a tenant share one key space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentRequest {
    pub key: String,
    pub digest: Hash,
}

#[derive(Clone, Debug)]
pub struct NewRevision {
    pub tenant: TenantId,
    pub id: PlanId,
    pub plan: Arc<Plan>,
    /// The newest revision the author has seen; `None` skips the check.
    pub expected: Option<u32>,
    pub scope: RevisionScope,
    pub actor: Actor,
    pub at: Timestamp,
}

/// Whom a revision is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisionScope {
    /// Everybody: it becomes the newest, and gives the plan its name.
    Plan,
    /// One execution, such as a replan that may still be refused: whoever names the plan does not get it. The plan may
    /// be archived or deleted.
    Execution,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveOutcome {
    New { revision: u32 },
    Already { revision: u32 },
}

impl SaveOutcome {
    pub fn revision(self) -> u32 {
        match self {
            SaveOutcome::New { revision } | SaveOutcome::Already { revision } => revision,
        }
    }
}

/// Whether a plan is in use, put away or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanState {
    Active,
    /// Not listed and not startable, until it is restored.
    Archived,
    /// Not found by any query; its id is not given again.
    Deleted,
}

impl PlanState {
    pub fn as_str(self) -> &'static str {
        match self {
            PlanState::Active => "active",
            PlanState::Archived => "archived",
            PlanState::Deleted => "deleted",
        }
    }
}

#[derive(Clone, Debug)]
pub struct PlanStateChange {
    pub tenant: TenantId,
    pub id: PlanId,
    pub to: PlanState,
    pub actor: Actor,
    pub at: Timestamp,
    pub reason: String,
}

impl PlanStateChange {
    /// The record in the ledger's own journal.
    pub fn event(&self, name: &str) -> Event {
        let what = match self.to {
            PlanState::Active => "restored",
            PlanState::Archived => "archived",
            PlanState::Deleted => "deleted",
        };
        let change = match self.reason.is_empty() {
            true => format!("{what} {name:?}"),
            false => format!("{what} {name:?}: {}", self.reason),
        };
        Event::SettingChanged { setting: "plan".to_owned(), id: self.id.to_string(), change }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanStateOutcome {
    pub is_new: bool,
    /// Ended executions whose journals still need the text of a deleted plan.
    pub executions: u64,
}

/// An event sealed for its journal, with the columns a store needs without decoding the bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct SealedEntry {
    pub entry: Entry,
    /// In the order of their commitments in the event.
    pub payloads: Vec<SealedPayload>,
    pub kind: &'static str,
    pub at: Timestamp,
    pub actor: Actor,
    pub words: Option<String>,
}

impl SealedEntry {
    pub fn seal(
        chain: &mut HashChain,
        record: &EventRecord,
        salts: &mut dyn FnMut() -> PayloadSalt,
    ) -> Result<SealedEntry, ErasedPayload> {
        let (entry, payloads) = chain.seal(record, salts)?;
        let (kind, words) = (record.event.kind(), record.event.words());
        Ok(SealedEntry { entry, payloads, kind, at: record.at, actor: record.actor.clone(), words })
    }
}

#[derive(Clone, Debug)]
pub struct ExecutionOpening {
    pub identity: ExecutionIdentity,
    pub plan: PlanId,
    /// A repeated request with the same key gets the execution of the first one.
    pub request: Option<IdempotentRequest>,
    /// The worker that drives it from the start; `None` leaves it to the next claim.
    pub worker: Option<WorkerId>,
    pub entries: Vec<SealedEntry>,
    pub row: ExecutionProjection,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenOutcome {
    New {
        lease: Option<Lease>,
    },
    /// An earlier request with the same key opened this execution.
    Already {
        execution: ExecutionId,
    },
}

#[derive(Clone, Debug)]
pub struct ClaimRequest {
    pub worker: WorkerId,
    pub now: Timestamp,
    pub limit: u32,
}

/// A worker's exclusive right to write an execution. A later epoch ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub identity: ExecutionIdentity,
    pub worker: WorkerId,
    pub epoch: u64,
}

#[derive(Clone, Debug)]
pub struct LoadedExecution {
    pub head: ChainHead,
    pub plan: PlanId,
    /// Including their payloads and the plans they name.
    pub records: Vec<EventRecord>,
    /// Oldest first.
    pub commands: Vec<StoredCommand>,
}

#[derive(Clone, Debug)]
pub struct AppendRequest {
    pub lease: Lease,
    pub expected: ChainHead,
    pub entries: Vec<SealedEntry>,
    pub row: ExecutionProjection,
    /// Commands these entries decide; numbers of other executions' commands are ignored.
    pub decided_commands: Vec<u64>,
    /// Request keys of refused commands: they had no effect, so the keys may be used again. Keys of other
    /// executions are ignored.
    pub refused_keys: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    New,
    /// Exactly these entries had been appended before.
    Already,
}

#[derive(Clone, Debug)]
pub struct NewCommand {
    pub identity: ExecutionIdentity,
    pub request: Option<IdempotentRequest>,
    pub actor: Actor,
    pub at: Timestamp,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueOutcome {
    New { command: u64 },
    Already,
}

/// A command that the execution's worker has not decided yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCommand {
    pub number: u64,
    pub actor: Actor,
    pub at: Timestamp,
    pub bytes: Vec<u8>,
}
