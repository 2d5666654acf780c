//! Executions to write: each appends steps as the core would, without deciding anything.

use rutter_core::actor::Actor;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::execution::{Execution, ExecutionIdentity, opening};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, PlanId, StepId, TenantId, ToolName, WorkerId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::{CallSide, Event, EventRecord};
use rutter_core::journal::payload::{EventPayload, PayloadSalt};
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::Error;
use rutter_core::port::journal::{
    AppendRequest, ExecutionOpening, Journal, Lease, NewRevision, OpenOutcome, RevisionScope, SealedEntry,
};
use rutter_core::time::Timestamp;
use rutter_core::tool::ToolCatalog;
use rutter_store::SqliteStore;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub(super) const TENANT: &str = "default";
pub(super) const WORKER: &str = "bench";
const PLAN: &str = "plan_bench";
/// How often a decision is recorded, for searches to find.
pub(super) const DECISION_EVERY: u32 = 64;

/// The plan of all executions; the names of its steps determine the length of entries.
fn plan() -> Arc<Plan> {
    let catalog = json!({"tools": [{"name": "inventory.reserve", "inputSchema": {"type": "object"}}]});
    let catalog = ToolCatalog::from_json(&catalog).expect("the catalogue is valid");
    let text = json!({"name": "bench", "tags": ["bench"], "steps": [{"id": "reserve", "tool": "inventory.reserve"}]});
    let checked = read_and_check(text.to_string().as_bytes(), DocumentFormat::Json, &catalog, Driver::Server, None);
    checked.plan.expect("the plan is valid")
}

pub(super) async fn save_plan(store: &SqliteStore) -> Result<Arc<Plan>, Error> {
    let plan = plan();
    let new = NewRevision {
        tenant: TenantId::new(TENANT),
        id: PlanId::new(PLAN),
        plan: Arc::clone(&plan),
        expected: None,
        scope: RevisionScope::Plan,
        actor: Actor::agent("bench"),
        at: Timestamp(1_790_000_000_000),
    };
    store.save(new).await?;
    Ok(plan)
}

/// One execution in progress.
pub(super) struct BenchExecution {
    chain: HashChain,
    lease: Lease,
    row: ExecutionProjection,
    attempt: u32,
    now: i64,
    salt: u128,
}

impl BenchExecution {
    pub(super) async fn open(store: &SqliteStore, plan: &Arc<Plan>, number: u64) -> Result<BenchExecution, Error> {
        let identity = ExecutionIdentity {
            tenant: TenantId::new(TENANT),
            execution: ExecutionId::new(&format!("exec_{number:026}")),
        };
        let now = 1_790_000_000_000 + number as i64;
        let agent = Actor::agent("bench");
        let opened =
            opening::opening(plan, 1, Driver::Server, Arc::new(json!({})), &identity.execution, agent, Timestamp(now))
                .map_err(|refusal| Error::Invalid(refusal.to_string()))?;
        let execution =
            Execution::open(identity.clone(), &opened).map_err(|illegal| Error::Invalid(illegal.to_string()))?;
        let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
        let row = ExecutionProjection { due_at: Some(Timestamp(now)), ..execution.row() };
        let mut salt = u128::from(number) << 64;
        let opening = ExecutionOpening {
            identity,
            plan: PlanId::new(PLAN),
            request: None,
            worker: Some(WorkerId::new(WORKER)),
            entries: vec![seal(&mut chain, &opened, &mut salt)],
            row: row.clone(),
        };
        match store.open(opening).await? {
            OpenOutcome::New { lease: Some(lease) } => Ok(BenchExecution { chain, lease, row, attempt: 0, now, salt }),
            _ => Err(Error::Invalid("the execution already exists".to_owned())),
        }
    }

    /// Like [`BenchExecution::open`], but retries while the store is busy.
    pub(super) async fn open_with_retry(
        store: &SqliteStore,
        plan: &Arc<Plan>,
        number: u64,
    ) -> Result<BenchExecution, Error> {
        loop {
            match BenchExecution::open(store, plan, number).await {
                Err(Error::Overloaded) => tokio::time::sleep(Duration::from_millis(1)).await,
                launched => return launched,
            }
        }
    }

    /// Appends the result of one step and the start of the next, as a sequential plan does.
    pub(super) async fn append_step(&mut self, store: &SqliteStore) -> Result<(), Error> {
        let expected = self.chain.head();
        self.now += 1;
        self.attempt += 1;
        let record = |event| EventRecord { at: Timestamp(self.now), actor: Actor::rutter(), event };
        let part = || PartId::whole(StepId::new("reserve"));
        let hash = |what: u8| {
            Hash::of(&[&[what], self.lease.identity.execution.as_str().as_bytes(), &self.attempt.to_be_bytes()])
        };
        let mut records = vec![
            record(Event::AttemptSucceeded {
                part: part(),
                side: CallSide::Do,
                attempt: self.attempt,
                result: EventPayload::new(json!({"reservation_id": self.attempt})),
                cost_micros: 0,
            }),
            record(Event::AttemptStarted {
                part: part(),
                side: CallSide::Do,
                attempt: self.attempt + 1,
                by: Driver::Server,
                tool: ToolName::new("inventory.reserve"),
                definition: Hash::of(&[b"definition"]),
                call: hash(1),
                key: hash(2),
                parameters: EventPayload::new(json!({"sku": "anchor", "amount": 1})),
                deadline: Some(Timestamp(self.now + 60_000)),
            }),
        ];
        if self.attempt.is_multiple_of(DECISION_EVERY) {
            let (decision, reason) = ("go on".to_owned(), "the stock was low, and is not now".to_owned());
            let event = Event::DecisionRecorded { step: None, decision, reason, details: None };
            records.push(EventRecord { actor: Actor::agent("bench"), ..record(event) });
        }
        let entries = records.iter().map(|record| seal(&mut self.chain, record, &mut self.salt)).collect();
        self.row.last_at = Timestamp(self.now);
        let append = AppendRequest {
            lease: self.lease.clone(),
            expected,
            entries,
            row: self.row.clone(),
            decided_commands: Vec::new(),
            refused_keys: Vec::new(),
        };
        store.append(append).await?;
        Ok(())
    }
}

fn seal(chain: &mut HashChain, record: &EventRecord, salt: &mut u128) -> SealedEntry {
    let mut salts = || {
        *salt += 1;
        PayloadSalt(salt.to_be_bytes())
    };
    SealedEntry::seal(chain, record, &mut salts).expect("nothing was erased")
}
