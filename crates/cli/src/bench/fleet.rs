//! Executions to write with: each makes steps as the core would, without deciding anything.

use rutter_core::actor::Actor;
use rutter_core::execution::row::Row;
use rutter_core::execution::{Execution, Identity, admit};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, PlanId, StepId, TenantId, ToolName, WorkerId};
use rutter_core::journal::chain::Chain;
use rutter_core::journal::event::{Event, Record, Side};
use rutter_core::journal::payload::{Payload, Salt};
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::Format;
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::Error;
use rutter_core::port::journal::{Append, Journal, Lease, NewPlan, Opened, Opening, Sealed};
use rutter_core::time::Timestamp;
use rutter_core::tool::ToolCatalog;
use rutter_store::Store;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub(super) const TENANT: &str = "default";
pub(super) const WORKER: &str = "bench";
const PLAN: &str = "plan_bench";
/// Now and then somebody says something, for searches to find.
pub(super) const DECISION_EVERY: u32 = 64;

/// A plan everybody sails by; what its steps are called decides how long entries are.
fn plan() -> Arc<Plan> {
    let catalog = json!({"tools": [{"name": "inventory.reserve", "inputSchema": {"type": "object"}}]});
    let catalog = ToolCatalog::from_json(&catalog).expect("the catalogue is ours");
    let text = json!({"name": "bench", "tags": ["bench"], "steps": [{"id": "reserve", "tool": "inventory.reserve"}]});
    let checked = read_and_check(text.to_string().as_bytes(), Format::Json, &catalog, Driver::Server, None);
    checked.plan.expect("the plan is ours")
}

pub(super) async fn save_plan(store: &Store) -> Result<Arc<Plan>, Error> {
    let plan = plan();
    let new = NewPlan {
        tenant: TenantId::new(TENANT),
        id: PlanId::new(PLAN),
        plan: Arc::clone(&plan),
        expected: None,
        actor: Actor::agent("bench"),
        at: Timestamp(1_790_000_000_000),
    };
    store.save(new).await?;
    Ok(plan)
}

/// One execution under way.
pub(super) struct Ship {
    chain: Chain,
    lease: Lease,
    row: Row,
    attempt: u32,
    now: i64,
    salt: u128,
}

impl Ship {
    pub(super) async fn launch(store: &Store, plan: &Arc<Plan>, number: u64) -> Result<Ship, Error> {
        let identity = Identity {
            tenant: TenantId::new(TENANT),
            execution: ExecutionId::new(&format!("exec_{number:026}")),
        };
        let now = 1_790_000_000_000 + number as i64;
        let agent = Actor::agent("bench");
        let opened = admit::opening(
            plan,
            Driver::Server,
            Arc::new(json!({})),
            &identity.execution,
            agent,
            Timestamp(now),
        )
        .map_err(|refusal| Error::Invalid(refusal.to_string()))?;
        let execution = Execution::open(identity.clone(), &opened)
            .map_err(|illegal| Error::Invalid(illegal.to_string()))?;
        let mut chain = Chain::new(identity.tenant.clone(), identity.execution.clone());
        let row = Row { due_at: Some(Timestamp(now)), ..execution.row() };
        let mut salt = u128::from(number) << 64;
        let opening = Opening {
            identity,
            plan: PlanId::new(PLAN),
            request: None,
            worker: Some(WorkerId::new(WORKER)),
            entries: vec![seal(&mut chain, &opened, &mut salt)],
            row,
        };
        match store.open(opening).await? {
            Opened::New { lease: Some(lease) } => Ok(Ship { chain, lease, row, attempt: 0, now, salt }),
            _ => Err(Error::Invalid("the execution is there already".to_owned())),
        }
    }

    /// As [`Ship::launch`], and again while too many want to be.
    pub(super) async fn launch_patiently(
        store: &Store,
        plan: &Arc<Plan>,
        number: u64,
    ) -> Result<Ship, Error> {
        loop {
            match Ship::launch(store, plan, number).await {
                Err(Error::Overloaded) => tokio::time::sleep(Duration::from_millis(1)).await,
                launched => return launched,
            }
        }
    }

    /// The result of one step and the start of the next: what a plan in sequence appends at a time.
    pub(super) async fn sail(&mut self, store: &Store) -> Result<(), Error> {
        let expected = self.chain.head();
        self.now += 1;
        self.attempt += 1;
        let record = |event| Record { at: Timestamp(self.now), actor: Actor::rutter(), event };
        let part = || PartId::whole(StepId::new("reserve"));
        let hash = |what: u8| {
            Hash::of(&[
                &[what],
                self.lease.identity.execution.as_str().as_bytes(),
                &self.attempt.to_be_bytes(),
            ])
        };
        let mut records = vec![
            record(Event::AttemptSucceeded {
                part: part(),
                side: Side::Do,
                attempt: self.attempt,
                result: Payload::new(json!({"reservation_id": self.attempt})),
                cost_micros: 0,
            }),
            record(Event::AttemptStarted {
                part: part(),
                side: Side::Do,
                attempt: self.attempt + 1,
                by: Driver::Server,
                tool: ToolName::new("inventory.reserve"),
                definition: Hash::of(&[b"definition"]),
                call: hash(1),
                key: hash(2),
                parameters: Payload::new(json!({"sku": "anchor", "amount": 1})),
                deadline: Some(Timestamp(self.now + 60_000)),
            }),
        ];
        if self.attempt.is_multiple_of(DECISION_EVERY) {
            let (decision, reason) = ("go on".to_owned(), "the stock was low, and is not now".to_owned());
            let event = Event::DecisionRecorded { step: None, decision, reason, details: None };
            records.push(Record { actor: Actor::agent("bench"), ..record(event) });
        }
        let entries = records.iter().map(|record| seal(&mut self.chain, record, &mut self.salt)).collect();
        self.row.last_at = Timestamp(self.now);
        let append = Append {
            lease: self.lease.clone(),
            expected,
            entries,
            row: self.row,
            consumed: Vec::new(),
            forgotten: Vec::new(),
        };
        store.append(append).await?;
        Ok(())
    }
}

fn seal(chain: &mut Chain, record: &Record, salt: &mut u128) -> Sealed {
    let mut salts = || {
        *salt += 1;
        Salt(salt.to_be_bytes())
    };
    Sealed::seal(chain, record, &mut salts).expect("nothing was erased")
}
