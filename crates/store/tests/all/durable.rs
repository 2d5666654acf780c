//! Durability: acknowledged writes are there after a restart, unchanged.

use crate::ledger::fixture::plan;
use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::execution::{Execution, ExecutionIdentity, opening};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::{ChainHead, HashChain};
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::plan::Driver;
use rutter_core::port::Error;
use rutter_core::port::journal::{
    AppendOutcome, AppendRequest, ClaimRequest, EnqueueOutcome, ExecutionOpening, IdempotentRequest, Journal, Lease,
    NewCommand, NewRevision, OpenOutcome, RevisionScope, SaveOutcome, SealedEntry,
};
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::time::Timestamp;
use rutter_core::tool::CallOutcome;
use rutter_store::{SqliteOptions, SqliteStore, wait};
use serde_json::json;
use std::sync::Arc;

fn open(directory: &std::path::Path) -> SqliteStore {
    let mut options = SqliteOptions::new(directory, Arc::new(|| Timestamp(1_000)));
    (options.free_bytes_min, options.reserve_bytes) = (0, 0);
    SqliteStore::open(options).unwrap()
}

fn salts() -> impl FnMut() -> PayloadSalt {
    let mut next = 0_u128;
    move || {
        next += 1;
        PayloadSalt(next.to_be_bytes())
    }
}

fn seal(chain: &mut HashChain, records: &[EventRecord]) -> Vec<SealedEntry> {
    let mut salts = salts();
    records.iter().map(|record| SealedEntry::seal(chain, record, &mut salts).unwrap()).collect()
}

#[test]
fn an_execution_is_read_back_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let identity = ExecutionIdentity { tenant: TenantId::new("acme"), execution: ExecutionId::new("exec_1") };
    let (worker, agent) = (WorkerId::new("w1"), Actor::agent("pilot"));
    let plan = plan();
    let new = NewRevision {
        tenant: identity.tenant.clone(),
        id: PlanId::new("plan_1"),
        plan: plan.clone(),
        expected: None,
        scope: RevisionScope::Plan,
        actor: agent.clone(),
        at: Timestamp(1),
    };
    assert_eq!(wait(store.save(new.clone())), Ok(SaveOutcome::New { revision: 1 }));
    assert_eq!(wait(store.save(new)), Ok(SaveOutcome::Already { revision: 1 }));

    let inputs = Arc::new(json!({"order": "x".repeat(100_000)}));
    let opened = opening::opening(&plan, 1, Driver::Server, inputs, &identity.execution, agent, Timestamp(5)).unwrap();
    let mut execution = Execution::open(identity.clone(), &opened).unwrap();
    let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
    let opening = ExecutionOpening {
        identity: identity.clone(),
        plan: PlanId::new("plan_1"),
        request: Some(IdempotentRequest { key: "k".into(), digest: Hash::ZERO }),
        worker: Some(worker.clone()),
        entries: seal(&mut chain, &[opened]),
        row: execution.row(),
    };
    let answer = wait(store.open(opening.clone())).unwrap();
    let OpenOutcome::New { lease: Some(lease) } = answer else { panic!("{answer:?}") };
    assert_eq!(wait(store.open(opening)), Ok(OpenOutcome::Already { execution: identity.execution.clone() }));

    let mut now = 10;
    let mut step = |execution: &mut Execution, chain: &mut HashChain, input: ExecutionInput| {
        now += 10;
        let head = chain.head();
        let decision =
            execution.decide(&Actor::rutter(), input, DecisionContext { now: Timestamp(now), room: 1 }).unwrap();
        let entries = seal(chain, &decision.records);
        let append = AppendRequest {
            lease: lease.clone(),
            expected: head,
            entries,
            row: execution.row(),
            decided_commands: vec![],
            refused_keys: vec![],
        };
        assert_eq!(wait(store.append(append.clone())), Ok(AppendOutcome::New));
        assert_eq!(wait(store.append(append)), Ok(AppendOutcome::Already));
        decision.calls
    };
    let mut calls = step(&mut execution, &mut chain, ExecutionInput::Start);
    while let Some(call) = calls.pop() {
        let outcome = CallOutcome::Done { result: Arc::new(json!({"id": 7})), cost_micros: 0 };
        let input = ExecutionInput::Returned { part: call.part, side: call.side, attempt: call.attempt, outcome };
        calls = step(&mut execution, &mut chain, input);
    }
    assert_eq!(execution.status().as_str(), "completed");

    let stored_command = NewCommand {
        identity: identity.clone(),
        request: None,
        actor: Actor::person("operator"),
        at: Timestamp(500),
        bytes: b"undo".to_vec(),
    };
    assert_eq!(wait(store.enqueue(stored_command)), Ok(EnqueueOutcome::New { command: 1 }));
    drop(store);

    let store = open(directory.path());
    let loaded = wait(store.load(&identity)).unwrap();
    assert_eq!((loaded.head, loaded.commands.len()), (chain.head(), 1));
    let replayed = Execution::replay(identity.clone(), &loaded.records).unwrap();
    assert_eq!(replayed, execution);

    let claim = ClaimRequest { worker: WorkerId::new("w2"), now: Timestamp(1_000), limit: 10 };
    let leases = wait(store.claim(claim)).unwrap();
    assert_eq!(leases, [Lease { identity: identity.clone(), worker: WorkerId::new("w2"), epoch: 2 }]);
    let stale = AppendRequest {
        lease,
        expected: ChainHead { seq: 0, hash: Hash::ZERO },
        entries: vec![],
        row: execution.row(),
        decided_commands: vec![],
        refused_keys: vec![],
    };
    let fenced = Error::Fenced { execution: identity.execution.clone(), epoch: 2 };
    assert_eq!(wait(store.append(stale)), Err(fenced));
}

#[test]
fn a_second_owner_learns_which_process_has_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let _store = open(directory.path());
    let refused = SqliteStore::open(SqliteOptions::new(directory.path(), Arc::new(|| Timestamp(0)))).unwrap_err();
    let Error::Locked { pid, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(*pid, std::process::id().to_string());
    assert_eq!(refused.code(), "store.locked");
}

#[test]
fn a_disk_that_is_nearly_full_takes_no_new_timers_and_memories() {
    let directory = tempfile::tempdir().unwrap();
    let tenant = TenantId::new("acme");
    let write = |store: &SqliteStore, change| {
        let changes = RegisterWrite { tenant: tenant.clone(), at: Timestamp(1), changes: vec![change], record: None };
        wait(Register::write(store, changes))
    };
    drop(open(directory.path()));
    let mut options = SqliteOptions::new(directory.path(), Arc::new(|| Timestamp(1_000)));
    (options.free_bytes_min, options.reserve_bytes) = (u64::MAX >> 1, 0);
    let store = SqliteStore::open(options).unwrap();
    for kind in [RegisterKind::Timer, RegisterKind::Memory] {
        let refused = write(&store, RegisterChange::put(kind, "a", json!(1))).unwrap_err();
        assert_eq!(refused.code(), "store.disk_full", "{kind:?}");
        write(&store, RegisterChange::remove(kind, "a")).unwrap();
    }
    write(&store, RegisterChange::put(RegisterKind::Notification, "a", json!(1))).unwrap();
}
