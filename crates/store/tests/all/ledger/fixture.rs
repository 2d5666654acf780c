//! A small database with real executions, and a way to look at and change it behind the store's back.

use rusqlite::Connection;
use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::execution::{Execution, ExecutionIdentity, opening};
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::journal::verify::TrustAnchors;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan, check};
use rutter_core::port::journal::{
    AppendRequest, ExecutionOpening, Journal, Lease, NewRevision, OpenOutcome, RevisionScope, SealedEntry,
};
use rutter_core::port::proof::{LedgerCheck, LedgerProof};
use rutter_core::time::Timestamp;
use rutter_core::tool::{CallOutcome, ToolCatalog};
use rutter_store::{SqliteArchive, SqliteOptions, SqliteStore, wait};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) fn tenant() -> TenantId {
    TenantId::new("acme")
}

pub(crate) fn identity(number: u64) -> ExecutionIdentity {
    ExecutionIdentity { tenant: tenant(), execution: ExecutionId::new(&format!("exec_{number}")) }
}

pub(crate) fn options(directory: &Path) -> SqliteOptions {
    let mut options = SqliteOptions::new(directory, Arc::new(|| Timestamp(1_790_000_000_000)));
    (options.free_bytes_min, options.reserve_bytes) = (0, 0);
    options
}

pub(crate) fn open(directory: &Path) -> SqliteStore {
    SqliteStore::open(options(directory)).unwrap()
}

/// A directory in memory where there is one: thousands of copies are made.
pub(crate) fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

pub(crate) fn plan() -> Arc<Plan> {
    let catalog = json!({"tools": [{"name": "shop.order", "inputSchema": {"type": "object"}}]});
    let catalog = ToolCatalog::from_json(&catalog).unwrap();
    let text = json!({"name": "order", "inputs": {"order": {}}, "steps": [
        {"id": "a", "tool": "shop.order"}, {"id": "b", "tool": "shop.order", "depends_on": ["a"]}]});
    let text = text.to_string();
    let checked = check::read_and_check(text.as_bytes(), DocumentFormat::Json, &catalog, Driver::Server, None);
    checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

pub(crate) fn save_plan(store: &SqliteStore) -> Arc<Plan> {
    let (plan, actor) = (plan(), Actor::agent("pilot"));
    let new = NewRevision {
        tenant: tenant(),
        id: PlanId::new("plan_1"),
        plan: plan.clone(),
        expected: None,
        scope: RevisionScope::Plan,
        actor,
        at: Timestamp(1),
    };
    wait(store.save(new)).unwrap();
    plan
}

/// Carries an execution out, or only `answers` of its calls.
pub(crate) fn carry_out(store: &SqliteStore, plan: &Arc<Plan>, number: u64, answers: usize) -> Execution {
    let identity = identity(number);
    let mut salt = u128::from(number) << 32;
    let agent = Actor::agent("pilot");
    let inputs = Arc::new(json!({"order": number}));
    let opened = opening::opening(plan, 1, Driver::Server, inputs, &identity.execution, agent, Timestamp(5)).unwrap();
    let mut execution = Execution::open(identity.clone(), &opened).unwrap();
    let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
    let opening = ExecutionOpening {
        identity,
        plan: PlanId::new("plan_1"),
        request: None,
        worker: Some(WorkerId::new("w")),
        entries: seal(&mut chain, &[opened], &mut salt),
        row: execution.row(),
    };
    let OpenOutcome::New { lease: Some(lease) } = wait(store.open(opening)).unwrap() else { panic!("not new") };
    let mut calls = step(store, &lease, &mut execution, &mut chain, &mut salt, ExecutionInput::Start);
    for _ in 0..answers {
        let Some(call) = calls.pop() else { break };
        let outcome = CallOutcome::Done { result: Arc::new(json!({"id": number})), cost_micros: 0 };
        let input = ExecutionInput::Returned { part: call.part, side: call.side, attempt: call.attempt, outcome };
        calls = step(store, &lease, &mut execution, &mut chain, &mut salt, input);
    }
    execution
}

fn step(
    store: &SqliteStore,
    lease: &Lease,
    execution: &mut Execution,
    chain: &mut HashChain,
    salt: &mut u128,
    input: ExecutionInput,
) -> Vec<rutter_core::execution::input::ToolCall> {
    let expected = chain.head();
    let moment = DecisionContext { now: Timestamp(10 + expected.seq as i64), room: 1 };
    let decision = execution.decide(&Actor::rutter(), input, moment).unwrap();
    let entries = seal(chain, &decision.records, salt);
    let append = AppendRequest {
        lease: lease.clone(),
        expected,
        entries,
        row: execution.row(),
        decided_commands: vec![],
        refused_keys: vec![],
    };
    wait(store.append(append)).unwrap();
    decision.calls
}

fn seal(chain: &mut HashChain, records: &[EventRecord], salt: &mut u128) -> Vec<SealedEntry> {
    let mut salts = || {
        *salt += 1;
        PayloadSalt(salt.to_be_bytes())
    };
    records.iter().map(|record| SealedEntry::seal(chain, record, &mut salts).unwrap()).collect()
}

/// A closed database of so many executions, with a checkpoint after every fifth.
pub(crate) fn database(directory: &Path, executions: u64) -> PathBuf {
    let store = open(directory);
    let plan = save_plan(&store);
    for number in 0..executions {
        carry_out(&store, &plan, number, 2);
        if number % 5 == 4 {
            wait(store.sign(&tenant())).unwrap();
        }
    }
    drop(store);
    directory.join("rutter.db")
}

/// An unrestricted connection, as an attacker with access to the file has.
pub(crate) fn behind_the_back(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    connection.pragma_update(None, "ignore_check_constraints", true).unwrap();
    connection
}

pub(crate) fn verify(
    path: &Path,
    trust: TrustAnchors,
    projections: bool,
) -> Result<LedgerCheck, rutter_core::port::Error> {
    SqliteArchive::open_file(path)?.verify(&tenant(), trust, projections, &mut |_| {})
}

/// Trusts the public key, as if it were known from elsewhere.
pub(crate) fn trusted(directory: &Path) -> TrustAnchors {
    let key = SqliteArchive::open(directory).unwrap().public_key().unwrap().unwrap();
    TrustAnchors { keys: vec![key], ..TrustAnchors::default() }
}
