//! A store with plans and executions in it, and somebody who writes.

use rutter_core::actor::Actor;
use rutter_core::execution::row::Row;
use rutter_core::execution::view::Status;
use rutter_core::execution::{Execution, Identity, admit};
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::Chain;
use rutter_core::journal::event::{Event, Record};
use rutter_core::journal::payload::{Payload, Salt};
use rutter_core::plan::document::Format;
use rutter_core::plan::{Driver, Plan, check};
use rutter_core::port::journal::{Append, Appended, Journal, Lease, NewPlan, Opened, Opening, Sealed};
use rutter_core::port::query::{
    EntryFilter, EntrySummary, ExecutionFilter, Listing, Page, PlanFilter, Query,
};
use rutter_core::time::Timestamp;
use rutter_core::tool::ToolCatalog;
use rutter_store::{Options, Store, wait};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

pub const PLAN: &str = "plan_1";

/// A plan of one step with this name and these fields.
pub fn plan(name: &str, fields: Value) -> Arc<Plan> {
    let catalog = json!({"tools": [{"name": "shop.order", "inputSchema": {"type": "object"}}]});
    let catalog = ToolCatalog::from_json(&catalog).unwrap();
    let mut text = json!({"name": name, "steps": [{"id": "a", "tool": "shop.order"}]});
    for (field, value) in fields.as_object().unwrap() {
        text[field] = value.clone();
    }
    let checked =
        check::read_and_check(text.to_string().as_bytes(), Format::Json, &catalog, Driver::Server, None);
    checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

pub struct Stage {
    pub store: Store,
    pub directory: TempDir,
    pub plan: Arc<Plan>,
}

impl Stage {
    /// With one plan of the tenant `acme`.
    pub fn new() -> Stage {
        Stage::with(|_| ())
    }

    pub fn with(change: impl FnOnce(&mut Options)) -> Stage {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Options::new(directory.path(), Arc::new(|| Timestamp(1_000)));
        (options.free_bytes_min, options.reserve_bytes) = (0, 0);
        change(&mut options);
        let store = Store::open(options).unwrap();
        let stage = Stage { store, directory, plan: plan("order", json!({})) };
        stage.save("acme", PLAN, &stage.plan.clone(), 1);
        stage
    }

    pub fn save(&self, tenant: &str, id: &str, plan: &Arc<Plan>, at: i64) {
        let (tenant, id, actor) = (TenantId::new(tenant), PlanId::new(id), Actor::agent("author"));
        let new = NewPlan { tenant, id, plan: plan.clone(), expected: None, actor, at: Timestamp(at) };
        wait(self.store.save(new)).unwrap();
    }

    /// Opens an execution of the plan that every stage has.
    pub fn open(&self, execution: &str, at: i64) -> Pen<'_> {
        self.open_of("acme", PLAN, &self.plan.clone(), execution, at)
    }

    pub fn open_of(&self, tenant: &str, id: &str, plan: &Arc<Plan>, execution: &str, at: i64) -> Pen<'_> {
        let identity = Identity { tenant: TenantId::new(tenant), execution: ExecutionId::new(execution) };
        let (inputs, author) = (Arc::new(json!({"for": execution})), Actor::agent("pilot"));
        let opened =
            admit::opening(plan, Driver::Server, inputs, &identity.execution, author, Timestamp(at)).unwrap();
        let row = Row { due_at: None, ..Execution::open(identity.clone(), &opened).unwrap().row() };
        let chain = Chain::new(identity.tenant.clone(), identity.execution.clone());
        let lease = Lease { identity: identity.clone(), worker: WorkerId::new("w"), epoch: 1 };
        let mut pen = Pen { store: &self.store, identity, chain, row, lease, at, salts: 0 };
        let opening = Opening {
            identity: pen.identity.clone(),
            plan: PlanId::new(id),
            request: None,
            worker: Some(WorkerId::new("w")),
            entries: vec![pen.seal(opened)],
            row,
        };
        let answer = wait(self.store.open(opening)).unwrap();
        assert_eq!(answer, Opened::New { lease: Some(pen.lease.clone()) });
        pen
    }

    /// An execution that ended at that time, with two payloads.
    pub fn ended(&self, execution: &str, status: Status, at: i64) -> Pen<'_> {
        let mut pen = self.open(execution, at);
        pen.row.status = status;
        pen.note("the end", json!({"of": execution}));
        pen
    }

    pub fn executions(&self, filter: ExecutionFilter) -> Vec<String> {
        names(wait(self.store.executions(&acme(), filter, Page::first(100))).unwrap())
    }

    pub fn entries(&self, filter: EntryFilter) -> Vec<EntrySummary> {
        wait(self.store.entries(&acme(), filter, Page::first(1_000))).unwrap().items
    }

    /// Execution and number of each.
    pub fn labels(&self, filter: EntryFilter) -> Vec<String> {
        self.entries(filter).iter().map(|entry| format!("{} {}", entry.execution, entry.seq)).collect()
    }

    pub fn plans(&self, filter: PlanFilter) -> Vec<String> {
        let found = wait(self.store.plans(&acme(), filter, Page::first(100))).unwrap();
        found.items.iter().map(|plan| format!("{} {} {}", plan.id, plan.revision, plan.name)).collect()
    }
}

pub fn acme() -> TenantId {
    TenantId::new("acme")
}

pub fn names(listing: Listing<rutter_core::port::query::ExecutionSummary>) -> Vec<String> {
    listing.items.iter().map(|execution| execution.id.to_string()).collect()
}

pub fn of(execution: &str) -> EntryFilter {
    EntryFilter { execution: Some(ExecutionId::new(execution)), ..EntryFilter::default() }
}

/// Writes one execution, as its worker does.
pub struct Pen<'a> {
    store: &'a Store,
    pub identity: Identity,
    pub chain: Chain,
    /// What the next entry leaves behind.
    pub row: Row,
    pub lease: Lease,
    pub at: i64,
    salts: u128,
}

impl Pen<'_> {
    pub fn note(&mut self, words: &str, details: Value) {
        let (decision, details) = (words.to_owned(), Some(Payload::new(details)));
        let event = Event::DecisionRecorded { step: None, decision, reason: String::new(), details };
        self.write(Actor::agent("pilot"), event);
    }

    pub fn write(&mut self, actor: Actor, event: Event) {
        let expected = self.chain.head();
        self.row.last_at = Timestamp(self.at);
        let entries = vec![self.seal(Record { at: Timestamp(self.at), actor, event })];
        let append = Append {
            lease: self.lease.clone(),
            expected,
            entries,
            row: self.row,
            consumed: Vec::new(),
            forgotten: Vec::new(),
        };
        assert_eq!(wait(self.store.append(append)), Ok(Appended::New));
    }

    fn seal(&mut self, record: Record) -> Sealed {
        let salts = &mut self.salts;
        let mut salt = || {
            *salts += 1;
            Salt(salts.to_be_bytes())
        };
        Sealed::seal(&mut self.chain, &record, &mut salt).unwrap()
    }
}
