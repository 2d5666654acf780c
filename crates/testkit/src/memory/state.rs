//! What the store in memory holds, and how it finds its way about.

use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::execution::row::Row;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::{Chain, Head};
use rutter_core::journal::codec::{self, Stored};
use rutter_core::journal::event::Record;
use rutter_core::journal::payload::{Commitment, Salt, SealedPayload};
use rutter_core::plan::document::Format;
use rutter_core::plan::{Plan, stored};
use rutter_core::port::Error;
use rutter_core::port::journal::{Letter, Sealed};
use rutter_core::port::outbox::{Delivery, DeliveryAttempt};
use rutter_core::port::query::PlanSummary;
use rutter_core::port::register::{Kind, Note};
use rutter_core::time::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub(super) type Outcome<T> = Result<T, Error>;

/// Under this name a ledger keeps the journal of what happens to it as a whole.
pub(super) const LEDGER: &str = "ledger";

#[derive(Debug, Default)]
pub(super) struct State {
    pub tenants: BTreeMap<TenantId, Ledger>,
    /// Until when each worker is believed to live.
    pub workers: HashMap<WorkerId, Timestamp>,
    /// How many executions were ever opened, of all tenants.
    pub opened: u64,
    /// How many letters were ever posted, of all tenants.
    pub posted: u64,
    /// Of all tenants, by number.
    pub deliveries: BTreeMap<u64, Sent>,
    /// How many deliveries there ever were, of all tenants.
    pub put: u64,
}

/// Everything of one tenant.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// In the order in which their ids were first saved.
    pub plans: Vec<History>,
    /// In the order in which they came.
    pub executions: Vec<Kept>,
    pub requests: HashMap<String, Asked>,
    /// What happened to the ledger itself.
    pub own: Vec<Line>,
    /// How many entries were ever written.
    pub places: u64,
    pub notes: BTreeMap<(Kind, String), Note>,
    /// How far each reader has come.
    pub marks: BTreeMap<String, u64>,
}

/// All revisions of a plan, the first one first.
#[derive(Debug)]
pub(super) struct History {
    pub id: PlanId,
    pub revisions: Vec<Revision>,
}

#[derive(Debug)]
pub(super) struct Revision {
    pub summary: PlanSummary,
    /// What the author says beside name, goal and tags, as far as a search looks into it.
    pub more: String,
    source: Arc<[u8]>,
    format: Format,
    pinned: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Kept {
    pub id: ExecutionId,
    /// Its place among all that were ever opened.
    pub number: u64,
    pub plan: PlanId,
    /// Those of the revision it was opened with.
    pub tags: Vec<String>,
    /// As it was handed in; [`Kept::due_at`] knows of the letters too.
    pub row: Row,
    pub owner: Option<WorkerId>,
    pub epoch: u64,
    pub lines: Vec<Line>,
    pub letters: Vec<Letter>,
}

/// One entry in its place.
#[derive(Debug)]
pub(super) struct Line {
    /// Among all entries of the tenant.
    pub place: u64,
    pub sealed: Sealed,
}

#[derive(Debug)]
pub(super) struct Sent {
    pub delivery: Delivery,
    pub attempts: Vec<DeliveryAttempt>,
    pub touched_at: Timestamp,
}

/// A request that was answered once.
#[derive(Debug)]
pub(super) struct Asked {
    pub digest: Hash,
    pub execution: ExecutionId,
}

impl State {
    pub fn kept(&self, identity: &Identity) -> Outcome<&Kept> {
        let ledger = self.tenants.get(&identity.tenant);
        let kept = ledger.and_then(|ledger| ledger.find(&identity.execution));
        kept.ok_or_else(|| no_execution(&identity.execution))
    }

    pub fn kept_mut(&mut self, identity: &Identity) -> Outcome<&mut Kept> {
        let ledger = self.tenants.get_mut(&identity.tenant);
        let kept =
            ledger.and_then(|ledger| ledger.executions.iter_mut().find(|kept| kept.id == identity.execution));
        kept.ok_or_else(|| no_execution(&identity.execution))
    }

    pub fn ledger_mut(&mut self, tenant: &TenantId) -> &mut Ledger {
        self.tenants.entry(tenant.clone()).or_default()
    }
}

impl Ledger {
    pub fn find(&self, execution: &ExecutionId) -> Option<&Kept> {
        self.executions.iter().find(|kept| kept.id == *execution)
    }

    pub fn history(&self, plan: &PlanId) -> Option<&History> {
        self.plans.iter().find(|history| history.id == *plan)
    }

    /// The revision with this hash, the newest one if there are several.
    pub fn revision(&self, plan: &PlanId, hash: Hash) -> Outcome<&Revision> {
        let revisions = self.history(plan).map_or(&[][..], |history| &history.revisions);
        let found = revisions.iter().rev().find(|revision| revision.summary.hash == hash);
        found.ok_or_else(|| Error::NotFound { what: "plan", id: format!("{plan} as {}", hash.short()) })
    }

    /// Gives entries their places in the ledger.
    pub fn place(&mut self, entries: Vec<Sealed>) -> Vec<Line> {
        let line = |sealed: Sealed| {
            self.places += 1;
            Line { place: self.places, sealed }
        };
        entries.into_iter().map(line).collect()
    }

    /// Writes into the ledger's own journal.
    pub fn note(&mut self, tenant: &TenantId, record: &Record) {
        let ledger = ExecutionId::new(LEDGER);
        let mut chain = match head(&self.own) {
            Some(head) => Chain::resume(tenant.clone(), ledger, head),
            None => Chain::new(tenant.clone(), ledger),
        };
        let sealed = Sealed::seal(&mut chain, record, &mut || Salt([0; 16]));
        let lines = self.place(vec![sealed.expect("what happens to a ledger has no payloads")]);
        self.own.extend(lines);
    }

    /// Every entry with its execution, in no particular order.
    pub fn lines(&self) -> impl Iterator<Item = (ExecutionId, &Line)> {
        let own = self.own.iter().map(|line| (ExecutionId::new(LEDGER), line));
        let kept = self.executions.iter();
        own.chain(kept.flat_map(|kept| kept.lines.iter().map(|line| (kept.id.clone(), line))))
    }
}

impl Revision {
    pub fn new(id: PlanId, revision: u32, plan: &Plan, actor: Actor, at: Timestamp) -> Revision {
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
        };
        let more = format!("{}\n{}", plan.about.description, plan.about.request);
        let (source, format, pinned) = (plan.source.clone(), plan.format, stored::pinned(&plan.tools));
        Revision { summary, more, source, format, pinned }
    }

    pub fn rebuild(&self) -> Outcome<Arc<Plan>> {
        let plan = stored::rebuild(self.summary.hash, &self.source, self.format, &self.pinned);
        plan.map(Arc::new).map_err(|error| Error::Corrupt(error.to_string()))
    }

    /// The texts a search looks into.
    pub fn words(&self) -> String {
        let PlanSummary { name, goal, tags, .. } = &self.summary;
        [name.as_str(), goal, &self.more, &tags.join("\n")].join("\n")
    }
}

impl Kept {
    pub fn identity(&self, tenant: &TenantId) -> Identity {
        Identity { tenant: tenant.clone(), execution: self.id.clone() }
    }

    /// When somebody must look at it: for its own sake, or for a letter's.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.row.due_at.into_iter().chain(self.letters.iter().map(|letter| letter.at)).min()
    }

    pub fn head(&self) -> Head {
        head(&self.lines).expect("an execution is opened with an entry")
    }
}

impl Line {
    pub fn record(&self) -> Outcome<Record> {
        let sealed = &self.sealed;
        let damaged = |why: String| Error::Corrupt(format!("entry {}: {why}", sealed.entry.seq));
        let stored = codec::decode(&sealed.entry.bytes).map_err(|error| damaged(error.to_string()))?;
        open(stored, &sealed.payloads).map_err(damaged)
    }
}

pub(super) fn open(stored: Stored, payloads: &[SealedPayload]) -> Result<Record, String> {
    let find = |commitment: Commitment| payloads.iter().find(|sealed| sealed.commitment == commitment);
    stored.open(&|commitment| find(commitment).cloned()).map_err(|wrong| wrong.to_string())
}

fn head(lines: &[Line]) -> Option<Head> {
    lines.last().map(|line| Head { seq: line.sealed.entry.seq, hash: line.sealed.entry.hash })
}

pub(super) fn no_execution(execution: &ExecutionId) -> Error {
    Error::NotFound { what: "execution", id: execution.to_string() }
}
