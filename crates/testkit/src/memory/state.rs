//! The state of the store in memory, and lookups in it.

use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::{ChainHead, HashChain};
use rutter_core::journal::codec::{self, StoredRecord};
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::payload::{Commitment, PayloadSalt, SealedPayload};
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Plan, stored};
use rutter_core::port::Error;
use rutter_core::port::journal::{PlanState, SealedEntry, StoredCommand};
use rutter_core::port::outbox::{Delivery, DeliveryAttempt};
use rutter_core::port::query::{PlanSummary, SavedPlan};
use rutter_core::port::register::{RegisterItem, RegisterKind};
use rutter_core::time::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub(super) type StoreResult<T> = Result<T, Error>;

/// The name of the ledger's own journal.
pub(super) const LEDGER: &str = "ledger";

#[derive(Debug, Default)]
pub(super) struct MemoryState {
    pub tenants: BTreeMap<TenantId, TenantLedger>,
    /// Until when each worker's lease is valid.
    pub workers: HashMap<WorkerId, Timestamp>,
    /// How many executions were ever opened, of all tenants.
    pub opened: u64,
    /// How many commands were ever enqueued, of all tenants.
    pub posted: u64,
    /// Of all tenants, by number.
    pub deliveries: BTreeMap<u64, MemoryDelivery>,
    /// How many deliveries there ever were, of all tenants.
    pub put: u64,
}

/// Everything of one tenant.
#[derive(Debug, Default)]
pub(super) struct TenantLedger {
    /// In the order in which their ids were first saved.
    pub plans: Vec<PlanRevisions>,
    /// In the order of opening.
    pub executions: Vec<MemoryExecution>,
    pub requests: HashMap<String, AnsweredRequest>,
    /// The ledger's own journal.
    pub own: Vec<MemoryEntry>,
    /// How many entries were ever written.
    pub places: u64,
    pub notes: BTreeMap<(RegisterKind, String), RegisterItem>,
    /// The position of each reader.
    pub marks: BTreeMap<String, u64>,
}

/// All revisions of a plan, the first one first.
#[derive(Debug)]
pub(super) struct PlanRevisions {
    pub id: PlanId,
    pub state: PlanState,
    pub revisions: Vec<StoredRevision>,
}

#[derive(Debug)]
pub(super) struct StoredRevision {
    pub summary: PlanSummary,
    /// The author's other texts, besides name, goal and tags, that a search includes.
    pub more: String,
    source: Arc<[u8]>,
    format: DocumentFormat,
    pinned: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct MemoryExecution {
    pub id: ExecutionId,
    /// Its number among all that were ever opened.
    pub number: u64,
    pub plan: PlanId,
    /// Those of the revision it was opened with.
    pub tags: Vec<String>,
    /// As it was written; [`MemoryExecution::due_at`] also considers pending commands.
    pub row: ExecutionProjection,
    pub owner: Option<WorkerId>,
    pub epoch: u64,
    pub lines: Vec<MemoryEntry>,
    pub commands: Vec<StoredCommand>,
}

/// One entry with its position.
#[derive(Debug)]
pub(super) struct MemoryEntry {
    /// The position among all entries of the tenant.
    pub place: u64,
    pub sealed: SealedEntry,
}

#[derive(Debug)]
pub(super) struct MemoryDelivery {
    pub delivery: Delivery,
    pub attempts: Vec<DeliveryAttempt>,
    pub touched_at: Timestamp,
}

/// A request that was answered once.
#[derive(Debug)]
pub(super) struct AnsweredRequest {
    pub digest: Hash,
    pub execution: ExecutionId,
}

impl MemoryState {
    pub fn find_execution(&self, identity: &ExecutionIdentity) -> StoreResult<&MemoryExecution> {
        let ledger = self.tenants.get(&identity.tenant);
        let stored = ledger.and_then(|ledger| ledger.find(&identity.execution));
        stored.ok_or_else(|| no_execution(&identity.execution))
    }

    pub fn find_execution_mut(&mut self, identity: &ExecutionIdentity) -> StoreResult<&mut MemoryExecution> {
        let ledger = self.tenants.get_mut(&identity.tenant);
        let stored =
            ledger.and_then(|ledger| ledger.executions.iter_mut().find(|retained| retained.id == identity.execution));
        stored.ok_or_else(|| no_execution(&identity.execution))
    }

    pub fn ledger_mut(&mut self, tenant: &TenantId) -> &mut TenantLedger {
        self.tenants.entry(tenant.clone()).or_default()
    }
}

impl TenantLedger {
    pub fn find(&self, execution: &ExecutionId) -> Option<&MemoryExecution> {
        self.executions.iter().find(|stored| stored.id == *execution)
    }

    pub fn history(&self, plan: &PlanId) -> Option<&PlanRevisions> {
        self.plans.iter().find(|history| history.id == *plan)
    }

    /// The revision with this hash, the newest one if there are several.
    pub fn revision(&self, plan: &PlanId, hash: Hash) -> StoreResult<&StoredRevision> {
        let revisions = self.history(plan).map_or(&[][..], |history| &history.revisions);
        let found = revisions.iter().rev().find(|revision| revision.summary.hash == hash);
        found.ok_or_else(|| Error::NotFound { what: "plan", id: format!("{plan} as {}", hash.short()) })
    }

    /// Assigns entries their positions in the ledger.
    pub fn place(&mut self, entries: Vec<SealedEntry>) -> Vec<MemoryEntry> {
        let line = |sealed: SealedEntry| {
            self.places += 1;
            MemoryEntry { place: self.places, sealed }
        };
        entries.into_iter().map(line).collect()
    }

    /// Writes to the ledger's own journal.
    pub fn note(&mut self, tenant: &TenantId, record: &EventRecord) {
        let ledger = ExecutionId::new(LEDGER);
        let mut chain = match head(&self.own) {
            Some(head) => HashChain::resume(tenant.clone(), ledger, head),
            None => HashChain::new(tenant.clone(), ledger),
        };
        let sealed = SealedEntry::seal(&mut chain, record, &mut || PayloadSalt([0; 16]));
        let lines = self.place(vec![sealed.expect("events of a ledger have no payloads")]);
        self.own.extend(lines);
    }

    /// Every entry with its execution, in no particular order.
    pub fn lines(&self) -> impl Iterator<Item = (ExecutionId, &MemoryEntry)> {
        let own = self.own.iter().map(|line| (ExecutionId::new(LEDGER), line));
        let stored = self.executions.iter();
        own.chain(stored.flat_map(|retained| retained.lines.iter().map(|line| (retained.id.clone(), line))))
    }
}

impl PlanRevisions {
    /// The newest that is not for one execution alone.
    pub fn newest(&self) -> Option<&StoredRevision> {
        self.revisions.iter().rev().find(|revision| !revision.summary.is_for_execution)
    }
}

impl StoredRevision {
    pub fn new(id: PlanId, revision: u32, plan: &Plan, actor: Actor, at: Timestamp) -> StoredRevision {
        let summary = PlanSummary {
            id,
            revision,
            hash: plan.hash,
            name: plan.name.clone(),
            goal: plan.goal.clone(),
            tags: plan.about.tags.clone(),
            steps: u32::try_from(plan.steps.len()).unwrap_or(u32::MAX),
            actor,
            saved_at: at,
            is_archived: false,
            is_for_execution: false,
        };
        let tools = plan.steps.iter().flat_map(|step| step.calls()).map(|call| call.tool.as_str());
        let more = [plan.about.description.as_str(), &plan.about.request].into_iter().chain(tools);
        let more = more.collect::<Vec<_>>().join("\n");
        let (source, format, pinned) = (plan.source.clone(), plan.format, stored::pinned(&plan.tools));
        StoredRevision { summary, more, source, format, pinned }
    }

    pub fn saved(&self) -> StoreResult<SavedPlan> {
        Ok(SavedPlan { summary: self.summary.clone(), plan: self.rebuild()? })
    }

    pub fn rebuild(&self) -> StoreResult<Arc<Plan>> {
        let plan = stored::rebuild(self.summary.hash, &self.source, self.format, &self.pinned);
        plan.map(Arc::new).map_err(|error| Error::Corrupt(error.to_string()))
    }

    /// The texts that a search includes.
    pub fn words(&self) -> String {
        let PlanSummary { name, goal, tags, .. } = &self.summary;
        [name.as_str(), goal, &self.more, &tags.join("\n")].join("\n")
    }
}

impl MemoryExecution {
    pub fn identity(&self, tenant: &TenantId) -> ExecutionIdentity {
        ExecutionIdentity { tenant: tenant.clone(), execution: self.id.clone() }
    }

    /// When a worker must look at it: for its own sake, or for a command.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.row.due_at.into_iter().chain(self.commands.iter().map(|command| command.at)).min()
    }

    pub fn head(&self) -> ChainHead {
        head(&self.lines).expect("an execution is opened with an entry")
    }
}

impl MemoryEntry {
    pub fn record(&self) -> StoreResult<EventRecord> {
        let sealed = &self.sealed;
        let damaged = |why: String| Error::Corrupt(format!("entry {}: {why}", sealed.entry.seq));
        let stored = codec::decode(&sealed.entry.bytes).map_err(|error| damaged(error.to_string()))?;
        open(stored, &sealed.payloads).map_err(damaged)
    }
}

pub(super) fn open(stored: StoredRecord, payloads: &[SealedPayload]) -> Result<EventRecord, String> {
    let find = |commitment: Commitment| payloads.iter().find(|sealed| sealed.commitment == commitment);
    stored.open(&|commitment| find(commitment).cloned()).map_err(|wrong| wrong.to_string())
}

fn head(lines: &[MemoryEntry]) -> Option<ChainHead> {
    lines.last().map(|line| ChainHead { seq: line.sealed.entry.seq, hash: line.sealed.entry.hash })
}

pub(super) fn no_execution(execution: &ExecutionId) -> Error {
    Error::NotFound { what: "execution", id: execution.to_string() }
}
