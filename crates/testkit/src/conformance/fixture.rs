//! Shared by the cases: a store with a plan or an execution in it, and a writer.

use super::ConformingStore;
use crate::chance::SeededRandom;
use crate::simulator;
use rutter_core::actor::Actor;
use rutter_core::execution::opening::opening;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::{ChainHead, HashChain};
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::journal::payload::{EventPayload, PayloadSalt};
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::journal::{
    AppendOutcome, AppendRequest, ClaimRequest, EnqueueOutcome, ExecutionOpening, IdempotentRequest, Lease, NewCommand,
    NewRevision, OpenOutcome, RevisionScope, SaveOutcome, SealedEntry,
};
use rutter_core::port::{Error, StoreFuture};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;

/// The tenant of every case; some have another one beside it.
pub(super) const TENANT: &str = "harbour";
pub(super) const PLAN: &str = "plan_1";
pub(super) const WORKER: &str = "worker_1";

/// A store under test.
#[derive(Clone, Copy)]
pub struct ConformanceFixture<'a> {
    pub store: &'a dyn ConformingStore,
    tenant: &'a str,
}

impl Debug for ConformanceFixture<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stage({})", self.tenant)
    }
}

impl<'a> ConformanceFixture<'a> {
    pub fn new(store: &'a dyn ConformingStore) -> ConformanceFixture<'a> {
        ConformanceFixture { store, tenant: TENANT }
    }

    /// The same store for another tenant.
    pub fn of(store: &'a dyn ConformingStore, tenant: &'a str) -> ConformanceFixture<'a> {
        ConformanceFixture { store, tenant }
    }

    pub fn tenant(&self) -> TenantId {
        TenantId::new(self.tenant)
    }

    pub fn identity(&self, execution: &str) -> ExecutionIdentity {
        ExecutionIdentity { tenant: self.tenant(), execution: ExecutionId::new(execution) }
    }

    pub fn new_plan(&self, id: &str, plan: &Arc<Plan>, at: i64) -> NewRevision {
        NewRevision {
            tenant: self.tenant(),
            id: PlanId::new(id),
            plan: plan.clone(),
            expected: None,
            scope: RevisionScope::Plan,
            actor: Actor::agent("author"),
            at: Timestamp(at),
        }
    }

    pub fn save(&self, id: &str, plan: &Arc<Plan>) -> SaveOutcome {
        done(self.store.save(self.new_plan(id, plan, 0)))
    }

    /// A writer for an execution of the plan of every case, which is saved if necessary.
    pub fn pen(&self, execution: &str) -> ConformanceWriter {
        let plan = plan("simple");
        self.save(PLAN, &plan);
        ConformanceWriter::new(self.identity(execution), PLAN, &plan, Timestamp(0))
    }

    /// An execution that no worker holds and that is not due.
    pub fn opened(&self, execution: &str) -> ConformanceWriter {
        let pen = self.pen(execution);
        self.open(&pen);
        pen
    }

    pub fn open(&self, pen: &ConformanceWriter) {
        assert_eq!(done(self.store.open(pen.opening())), OpenOutcome::New { lease: None });
    }

    /// An execution that a worker holds from the beginning.
    pub fn driven(&self, execution: &str) -> ConformanceWriter {
        let pen = self.pen(execution);
        self.drive(pen)
    }

    pub fn drive(&self, mut pen: ConformanceWriter) -> ConformanceWriter {
        let lease = Lease { identity: pen.identity.clone(), worker: worker(WORKER), epoch: 1 };
        let opened = done(self.store.open(ExecutionOpening { worker: Some(worker(WORKER)), ..pen.opening() }));
        assert_eq!(opened, OpenOutcome::New { lease: Some(lease.clone()) });
        pen.lease = lease;
        pen
    }

    /// An execution that ended at that time, with two entries that have payloads.
    pub fn ended(&self, execution: &str, status: ExecutionStatus, at: i64) -> ConformanceWriter {
        let mut pen = self.driven(execution);
        pen.now = Timestamp(at);
        pen.row.status = status;
        self.write(&mut pen, "the end");
        pen
    }

    /// Appends one entry with this text and a payload.
    pub fn write(&self, pen: &mut ConformanceWriter, words: &str) {
        let expected = pen.head();
        let entry = pen.note(words);
        assert_eq!(done(self.store.append(pen.append(expected, vec![entry]))), AppendOutcome::New);
    }

    /// Appends no entries, only a row, and consumes commands.
    pub fn settle(&self, pen: &ConformanceWriter, consumed: &[u64]) {
        let append = AppendRequest { decided_commands: consumed.to_vec(), ..pen.append(pen.head(), Vec::new()) };
        assert_eq!(done(self.store.append(append)), AppendOutcome::New);
    }

    pub fn new_command(&self, execution: &str, at: i64) -> NewCommand {
        let (identity, actor, at) = (self.identity(execution), Actor::person("operator"), Timestamp(at));
        NewCommand { identity, request: None, actor, at, bytes: b"please".to_vec() }
    }

    pub fn enqueue(&self, execution: &str, at: i64) -> u64 {
        match done(self.store.enqueue(self.new_command(execution, at))) {
            EnqueueOutcome::New { command: stored_command } => stored_command,
            EnqueueOutcome::Already => panic!("a command without a key was known"),
        }
    }

    pub fn renew(&self, name: &str, until: i64) {
        done(self.store.renew(&worker(name), Timestamp(until)));
    }

    /// Claims for this worker; returns the executions' ids.
    pub fn claim(&self, name: &str, now: i64, limit: u32) -> Vec<String> {
        let leases = done(self.store.claim(claim(name, now, limit)));
        leases.iter().map(|lease| lease.identity.execution.to_string()).collect()
    }
}

/// Writes the journal of one execution, as its worker does.
#[derive(Clone, Debug)]
pub struct ConformanceWriter {
    pub identity: ExecutionIdentity,
    pub plan: PlanId,
    /// The row of the next append.
    pub row: ExecutionProjection,
    pub lease: Lease,
    pub now: Timestamp,
    pub chain: HashChain,
    opening: SealedEntry,
    salts: SeededRandom,
}

impl ConformanceWriter {
    pub fn new(identity: ExecutionIdentity, plan_id: &str, plan: &Arc<Plan>, at: Timestamp) -> ConformanceWriter {
        let inputs = Arc::new(json!({ "items": [1, 2] }));
        let author = Actor::agent("pilot");
        let first = opening(plan, 1, Driver::Server, inputs, &identity.execution, author, at);
        let first = first.unwrap_or_else(|refusal| panic!("the inputs fit: {refusal:?}"));
        let execution = Execution::open(identity.clone(), &first).expect("an opening opens");
        let row = ExecutionProjection { due_at: None, ..execution.row() };
        let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
        let mut salts = SeededRandom::new(1);
        let opening = seal(&mut chain, &first, &mut salts);
        let lease = Lease { identity: identity.clone(), worker: worker(WORKER), epoch: 0 };
        ConformanceWriter { identity, plan: PlanId::new(plan_id), row, lease, now: at, chain, opening, salts }
    }

    /// Opens the execution with its first entry, without a lease.
    pub fn opening(&self) -> ExecutionOpening {
        ExecutionOpening {
            identity: self.identity.clone(),
            plan: self.plan.clone(),
            request: None,
            worker: None,
            entries: vec![self.opening.clone()],
            row: self.row.clone(),
        }
    }

    pub fn head(&self) -> ChainHead {
        self.chain.head()
    }

    pub fn append(&self, expected: ChainHead, entries: Vec<SealedEntry>) -> AppendRequest {
        AppendRequest {
            lease: self.lease.clone(),
            expected,
            entries,
            row: self.row.clone(),
            decided_commands: Vec::new(),
            refused_keys: Vec::new(),
        }
    }

    /// Seals a decision with this text and a payload.
    pub fn note(&mut self, words: &str) -> SealedEntry {
        self.note_with(words, json!({ "about": words }))
    }

    pub fn note_with(&mut self, words: &str, details: Value) -> SealedEntry {
        let (decision, reason) = (words.to_owned(), String::new());
        let details = Some(EventPayload::new(details));
        self.seal(Event::DecisionRecorded { step: None, decision, reason, details })
    }

    pub fn seal(&mut self, event: Event) -> SealedEntry {
        self.seal_as(Actor::agent("pilot"), event)
    }

    pub fn seal_as(&mut self, actor: Actor, event: Event) -> SealedEntry {
        self.row.last_at = self.now;
        seal(&mut self.chain, &EventRecord { at: self.now, actor, event }, &mut self.salts)
    }
}

fn seal(chain: &mut HashChain, record: &EventRecord, salts: &mut SeededRandom) -> SealedEntry {
    let mut salt = || {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&salts.draw().to_be_bytes());
        PayloadSalt(bytes)
    };
    SealedEntry::seal(chain, record, &mut salt).expect("new payloads are present")
}

/// A plan of one step with this name.
pub fn plan(name: &str) -> Arc<Plan> {
    plan_with(name, json!({}))
}

/// A plan with more fields than a name.
pub fn plan_with(name: &str, fields: Value) -> Arc<Plan> {
    let mut document = json!({
        "name": name,
        "goal": "get there",
        "inputs": { "items": { "type": "array" } },
        "steps": [{ "id": "a", "tool": "sim.read", "parameters": {} }],
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        document[field] = value.clone();
    }
    let compiled = simulator::plans::compile(&document, &simulator::plans::catalog());
    compiled.unwrap_or_else(|found| panic!("{found}"))
}

pub fn worker(name: &str) -> WorkerId {
    WorkerId::new(name)
}

pub fn claim(name: &str, now: i64, limit: u32) -> ClaimRequest {
    ClaimRequest { worker: worker(name), now: Timestamp(now), limit }
}

pub fn request(key: &str, about: &str) -> Option<IdempotentRequest> {
    Some(IdempotentRequest { key: key.to_owned(), digest: Hash::of(&[about.as_bytes()]) })
}

/// The store's reply, which must not be an error.
#[track_caller]
pub fn done<T>(answer: StoreFuture<'_, T>) -> T {
    match wait(answer) {
        Ok(answer) => answer,
        Err(error) => panic!("expected a reply, got {}: {error}", error.code()),
    }
}

/// The error of the store, which must have this code.
#[track_caller]
pub fn refused<T: Debug>(answer: StoreFuture<'_, T>, code: &str) -> Error {
    match wait(answer) {
        Err(error) if error.code() == code => error,
        Err(error) => panic!("expected {code}, got {}: {error}", error.code()),
        Ok(answer) => panic!("expected {code}, got {answer:?}"),
    }
}
