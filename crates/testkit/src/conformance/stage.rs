//! What the cases have in common: a store with a plan or an execution in it, and somebody who writes.

use super::Store;
use crate::chance::Chance;
use crate::simulator;
use rutter_core::actor::Actor;
use rutter_core::execution::admit::opening;
use rutter_core::execution::row::Row;
use rutter_core::execution::view::Status;
use rutter_core::execution::{Execution, Identity};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::{Chain, Head};
use rutter_core::journal::event::{Event, Record};
use rutter_core::journal::payload::{Payload, Salt};
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::journal::{
    Append, Appended, Claim, Lease, NewLetter, NewPlan, Opened, Opening, Posted, Request, Saved, Sealed,
};
use rutter_core::port::{Answer, Error};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;

/// The tenant of every case; some have another one beside it.
pub(super) const TENANT: &str = "harbour";
pub(super) const PLAN: &str = "plan_1";
pub(super) const WORKER: &str = "worker_1";

/// A store on which something happens.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    pub store: &'a dyn Store,
    tenant: &'a str,
}

impl Debug for Stage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stage({})", self.tenant)
    }
}

impl<'a> Stage<'a> {
    pub fn new(store: &'a dyn Store) -> Stage<'a> {
        Stage { store, tenant: TENANT }
    }

    /// The same store as somebody else sees it.
    pub fn of(store: &'a dyn Store, tenant: &'a str) -> Stage<'a> {
        Stage { store, tenant }
    }

    pub fn tenant(&self) -> TenantId {
        TenantId::new(self.tenant)
    }

    pub fn identity(&self, execution: &str) -> Identity {
        Identity { tenant: self.tenant(), execution: ExecutionId::new(execution) }
    }

    pub fn new_plan(&self, id: &str, plan: &Arc<Plan>, at: i64) -> NewPlan {
        NewPlan {
            tenant: self.tenant(),
            id: PlanId::new(id),
            plan: plan.clone(),
            expected: None,
            actor: Actor::agent("author"),
            at: Timestamp(at),
        }
    }

    pub fn save(&self, id: &str, plan: &Arc<Plan>) -> Saved {
        done(self.store.save(self.new_plan(id, plan, 0)))
    }

    /// A pen for an execution of the plan every case knows, which is saved if it was not yet.
    pub fn pen(&self, execution: &str) -> Pen {
        let plan = plan("simple");
        self.save(PLAN, &plan);
        Pen::new(self.identity(execution), PLAN, &plan, Timestamp(0))
    }

    /// An execution nobody holds and nobody has to look at.
    pub fn opened(&self, execution: &str) -> Pen {
        let pen = self.pen(execution);
        self.open(&pen);
        pen
    }

    pub fn open(&self, pen: &Pen) {
        assert_eq!(done(self.store.open(pen.opening())), Opened::New { lease: None });
    }

    /// An execution that a worker has held from the beginning.
    pub fn driven(&self, execution: &str) -> Pen {
        let pen = self.pen(execution);
        self.drive(pen)
    }

    pub fn drive(&self, mut pen: Pen) -> Pen {
        let lease = Lease { identity: pen.identity.clone(), worker: worker(WORKER), epoch: 1 };
        let opened = done(self.store.open(Opening { worker: Some(worker(WORKER)), ..pen.opening() }));
        assert_eq!(opened, Opened::New { lease: Some(lease.clone()) });
        pen.lease = lease;
        pen
    }

    /// An execution that has ended at that time, with two entries that have payloads.
    pub fn ended(&self, execution: &str, status: Status, at: i64) -> Pen {
        let mut pen = self.driven(execution);
        pen.now = Timestamp(at);
        pen.row.status = status;
        self.write(&mut pen, "the end");
        pen
    }

    /// Appends one entry with these words and a payload.
    pub fn write(&self, pen: &mut Pen, words: &str) {
        let expected = pen.head();
        let entry = pen.note(words);
        assert_eq!(done(self.store.append(pen.append(expected, vec![entry]))), Appended::New);
    }

    /// Appends nothing but a row, and answers letters.
    pub fn settle(&self, pen: &Pen, consumed: &[u64]) {
        let append = Append { consumed: consumed.to_vec(), ..pen.append(pen.head(), Vec::new()) };
        assert_eq!(done(self.store.append(append)), Appended::New);
    }

    pub fn letter(&self, execution: &str, at: i64) -> NewLetter {
        let (identity, actor, at) = (self.identity(execution), Actor::person("operator"), Timestamp(at));
        NewLetter { identity, request: None, actor, at, bytes: b"please".to_vec() }
    }

    pub fn post(&self, execution: &str, at: i64) -> u64 {
        match done(self.store.post(self.letter(execution, at))) {
            Posted::New { letter } => letter,
            Posted::Already => panic!("a letter without a key was known"),
        }
    }

    pub fn renew(&self, name: &str, until: i64) {
        done(self.store.renew(&worker(name), Timestamp(until)));
    }

    /// Claims for this worker; returns the executions' names.
    pub fn claim(&self, name: &str, now: i64, limit: u32) -> Vec<String> {
        let leases = done(self.store.claim(claim(name, now, limit)));
        leases.iter().map(|lease| lease.identity.execution.to_string()).collect()
    }
}

/// Writes the journal of one execution, as its worker does.
#[derive(Clone, Debug)]
pub struct Pen {
    pub identity: Identity,
    pub plan: PlanId,
    /// What the next append will leave behind.
    pub row: Row,
    pub lease: Lease,
    pub now: Timestamp,
    pub chain: Chain,
    opening: Sealed,
    salts: Chance,
}

impl Pen {
    pub fn new(identity: Identity, plan_id: &str, plan: &Arc<Plan>, at: Timestamp) -> Pen {
        let inputs = Arc::new(json!({ "items": [1, 2] }));
        let author = Actor::agent("pilot");
        let first = opening(plan, Driver::Server, inputs, &identity.execution, author, at);
        let first = first.unwrap_or_else(|refusal| panic!("the inputs fit: {refusal:?}"));
        let execution = Execution::open(identity.clone(), &first).expect("an opening opens");
        let row = Row { due_at: None, ..execution.row() };
        let mut chain = Chain::new(identity.tenant.clone(), identity.execution.clone());
        let mut salts = Chance::new(1);
        let opening = seal(&mut chain, &first, &mut salts);
        let lease = Lease { identity: identity.clone(), worker: worker(WORKER), epoch: 0 };
        Pen { identity, plan: PlanId::new(plan_id), row, lease, now: at, chain, opening, salts }
    }

    /// Opens the execution with its first entry, for whoever claims it.
    pub fn opening(&self) -> Opening {
        Opening {
            identity: self.identity.clone(),
            plan: self.plan.clone(),
            request: None,
            worker: None,
            entries: vec![self.opening.clone()],
            row: self.row,
        }
    }

    pub fn head(&self) -> Head {
        self.chain.head()
    }

    pub fn append(&self, expected: Head, entries: Vec<Sealed>) -> Append {
        Append {
            lease: self.lease.clone(),
            expected,
            entries,
            row: self.row,
            consumed: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    /// Seals a decision with these words and a payload.
    pub fn note(&mut self, words: &str) -> Sealed {
        self.note_with(words, json!({ "about": words }))
    }

    pub fn note_with(&mut self, words: &str, details: Value) -> Sealed {
        let (decision, reason) = (words.to_owned(), String::new());
        let details = Some(Payload::new(details));
        self.seal(Event::DecisionRecorded { step: None, decision, reason, details })
    }

    pub fn seal(&mut self, event: Event) -> Sealed {
        self.seal_as(Actor::agent("pilot"), event)
    }

    pub fn seal_as(&mut self, actor: Actor, event: Event) -> Sealed {
        self.row.last_at = self.now;
        seal(&mut self.chain, &Record { at: self.now, actor, event }, &mut self.salts)
    }
}

fn seal(chain: &mut Chain, record: &Record, salts: &mut Chance) -> Sealed {
    let mut salt = || {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&salts.draw().to_be_bytes());
        Salt(bytes)
    };
    Sealed::seal(chain, record, &mut salt).expect("new payloads are present")
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
        "inputs": { "type": "object" },
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

pub fn claim(name: &str, now: i64, limit: u32) -> Claim {
    Claim { worker: worker(name), now: Timestamp(now), limit }
}

pub fn request(key: &str, about: &str) -> Option<Request> {
    Some(Request { key: key.to_owned(), digest: Hash::of(&[about.as_bytes()]) })
}

/// What the store answered, which must not be an error.
#[track_caller]
pub fn done<T>(answer: Answer<'_, T>) -> T {
    match wait(answer) {
        Ok(answer) => answer,
        Err(error) => panic!("expected an answer, got {}: {error}", error.code()),
    }
}

/// The error the store answered with, which must have this code.
#[track_caller]
pub fn refused<T: Debug>(answer: Answer<'_, T>, code: &str) -> Error {
    match wait(answer) {
        Err(error) if error.code() == code => error,
        Err(error) => panic!("expected {code}, got {}: {error}", error.code()),
        Ok(answer) => panic!("expected {code}, got {answer:?}"),
    }
}
