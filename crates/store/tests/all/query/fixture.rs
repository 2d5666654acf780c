//! A store with plans and executions, and a writer of entries.

use rutter_core::actor::Actor;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::execution::{Execution, ExecutionIdentity, opening};
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::journal::payload::{EventPayload, PayloadSalt};
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan, check};
use rutter_core::port::journal::{
    AppendOutcome, AppendRequest, ExecutionOpening, Journal, Lease, NewRevision, OpenOutcome, RevisionScope,
    SealedEntry,
};
use rutter_core::port::query::{
    EntryFilter, EntrySummary, ExecutionFilter, ListPage, Pagination, PlanFilter, StoreQuery,
};
use rutter_core::time::Timestamp;
use rutter_core::tool::ToolCatalog;
use rutter_store::{SqliteOptions, SqliteStore, wait};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

pub const PLAN: &str = "plan_1";

/// A plan of one step with this name and these fields.
pub fn plan(name: &str, fields: Value) -> Arc<Plan> {
    let catalog = json!({"tools": [{"name": "shop.order", "inputSchema": {"type": "object"}}]});
    let catalog = ToolCatalog::from_json(&catalog).unwrap();
    let mut text = json!({"name": name, "inputs": {"for": {}}, "steps": [{"id": "a", "tool": "shop.order"}]});
    for (field, value) in fields.as_object().unwrap() {
        text[field] = value.clone();
    }
    let checked =
        check::read_and_check(text.to_string().as_bytes(), DocumentFormat::Json, &catalog, Driver::Server, None);
    checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

pub struct QueryFixture {
    pub store: SqliteStore,
    pub directory: TempDir,
    pub plan: Arc<Plan>,
}

impl QueryFixture {
    /// With one plan of the tenant `acme`.
    pub fn new() -> QueryFixture {
        QueryFixture::with(|_| ())
    }

    pub fn with(change: impl FnOnce(&mut SqliteOptions)) -> QueryFixture {
        let directory = tempfile::tempdir().unwrap();
        let mut options = SqliteOptions::new(directory.path(), Arc::new(|| Timestamp(1_000)));
        (options.free_bytes_min, options.reserve_bytes) = (0, 0);
        change(&mut options);
        let store = SqliteStore::open(options).unwrap();
        let fixture = QueryFixture { store, directory, plan: plan("order", json!({})) };
        fixture.save("acme", PLAN, &fixture.plan.clone(), 1);
        fixture
    }

    pub fn save(&self, tenant: &str, id: &str, plan: &Arc<Plan>, at: i64) {
        let (tenant, id, actor) = (TenantId::new(tenant), PlanId::new(id), Actor::agent("author"));
        let new = NewRevision {
            tenant,
            id,
            plan: plan.clone(),
            expected: None,
            scope: RevisionScope::Plan,
            actor,
            at: Timestamp(at),
        };
        wait(self.store.save(new)).unwrap();
    }

    /// Opens an execution of the plan that every fixture has.
    pub fn open(&self, execution: &str, at: i64) -> Pen<'_> {
        self.open_of("acme", PLAN, &self.plan.clone(), execution, at)
    }

    pub fn open_of(&self, tenant: &str, id: &str, plan: &Arc<Plan>, execution: &str, at: i64) -> Pen<'_> {
        let identity = ExecutionIdentity { tenant: TenantId::new(tenant), execution: ExecutionId::new(execution) };
        let (inputs, author) = (Arc::new(json!({"for": execution})), Actor::agent("pilot"));
        let opened =
            opening::opening(plan, 1, Driver::Server, inputs, &identity.execution, author, Timestamp(at)).unwrap();
        let row = ExecutionProjection { due_at: None, ..Execution::open(identity.clone(), &opened).unwrap().row() };
        let chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
        let lease = Lease { identity: identity.clone(), worker: WorkerId::new("w"), epoch: 1 };
        let mut pen = Pen { store: &self.store, identity, chain, row: row.clone(), lease, at, salts: 0 };
        let opening = ExecutionOpening {
            identity: pen.identity.clone(),
            plan: PlanId::new(id),
            request: None,
            worker: Some(WorkerId::new("w")),
            entries: vec![pen.seal(opened)],
            row,
        };
        let answer = wait(self.store.open(opening)).unwrap();
        assert_eq!(answer, OpenOutcome::New { lease: Some(pen.lease.clone()) });
        pen
    }

    /// An execution that ended at that time, with two payloads.
    pub fn ended(&self, execution: &str, status: ExecutionStatus, at: i64) -> Pen<'_> {
        let mut pen = self.open(execution, at);
        pen.row.status = status;
        pen.note("the end", json!({"of": execution}));
        pen
    }

    pub fn executions(&self, filter: ExecutionFilter) -> Vec<String> {
        names(wait(self.store.executions(&acme(), filter, Pagination::first(100))).unwrap())
    }

    pub fn entries(&self, filter: EntryFilter) -> Vec<EntrySummary> {
        wait(self.store.entries(&acme(), filter, Pagination::first(1_000))).unwrap().items
    }

    /// The execution and sequence number of each entry.
    pub fn labels(&self, filter: EntryFilter) -> Vec<String> {
        self.entries(filter).iter().map(|entry| format!("{} {}", entry.execution, entry.seq)).collect()
    }

    pub fn plans(&self, filter: PlanFilter) -> Vec<String> {
        let found = wait(self.store.plans(&acme(), filter, Pagination::first(100))).unwrap();
        found.items.iter().map(|plan| format!("{} {} {}", plan.id, plan.revision, plan.name)).collect()
    }
}

pub fn acme() -> TenantId {
    TenantId::new("acme")
}

pub fn names(listing: ListPage<rutter_core::port::query::ExecutionSummary>) -> Vec<String> {
    listing.items.iter().map(|execution| execution.id.to_string()).collect()
}

pub fn of(execution: &str) -> EntryFilter {
    EntryFilter { execution: Some(ExecutionId::new(execution)), ..EntryFilter::default() }
}

/// Writes one execution, as its worker does.
pub struct Pen<'a> {
    store: &'a SqliteStore,
    pub identity: ExecutionIdentity,
    pub chain: HashChain,
    /// The row after the next entry.
    pub row: ExecutionProjection,
    pub lease: Lease,
    pub at: i64,
    salts: u128,
}

impl Pen<'_> {
    pub fn note(&mut self, words: &str, details: Value) {
        let (decision, details) = (words.to_owned(), Some(EventPayload::new(details)));
        let event = Event::DecisionRecorded { step: None, decision, reason: String::new(), details };
        self.write(Actor::agent("pilot"), event);
    }

    pub fn write(&mut self, actor: Actor, event: Event) {
        let expected = self.chain.head();
        self.row.last_at = Timestamp(self.at);
        let entries = vec![self.seal(EventRecord { at: Timestamp(self.at), actor, event })];
        let append = AppendRequest {
            lease: self.lease.clone(),
            expected,
            entries,
            row: self.row.clone(),
            decided_commands: Vec::new(),
            refused_keys: Vec::new(),
        };
        assert_eq!(wait(self.store.append(append)), Ok(AppendOutcome::New));
    }

    fn seal(&mut self, record: EventRecord) -> SealedEntry {
        let salts = &mut self.salts;
        let mut salt = || {
            *salts += 1;
            PayloadSalt(salts.to_be_bytes())
        };
        SealedEntry::seal(&mut self.chain, &record, &mut salt).unwrap()
    }
}
