//! What was acknowledged is there after a restart, and reads as it was written.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

use rutter_core::actor::Actor;
use rutter_core::execution::input::{Input, Moment};
use rutter_core::execution::{Execution, Identity, admit};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::{Chain, Head};
use rutter_core::journal::event::Record;
use rutter_core::journal::payload::Salt;
use rutter_core::plan::document::Format;
use rutter_core::plan::{Driver, Plan, check};
use rutter_core::port::Error;
use rutter_core::port::journal::{
    Append, Appended, Claim, Journal, Lease, NewLetter, NewPlan, Opened, Opening, Posted, Request, Saved,
    Sealed,
};
use rutter_core::time::Timestamp;
use rutter_core::tool::{Outcome, ToolCatalog};
use rutter_store::{Options, Store, wait};
use serde_json::{Value, json};
use std::sync::Arc;

fn plan() -> Arc<Plan> {
    let catalog = json!({"tools": [{"name": "shop.order", "inputSchema": {"type": "object"}}]});
    let catalog = ToolCatalog::from_json(&catalog).unwrap();
    let text = json!({"name": "order", "tags": ["shop"], "steps": [
        {"id": "a", "tool": "shop.order"}, {"id": "b", "tool": "shop.order", "depends_on": ["a"]}]});
    let checked =
        check::read_and_check(text.to_string().as_bytes(), Format::Json, &catalog, Driver::Server, None);
    checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

fn open(directory: &std::path::Path) -> Store {
    let mut options = Options::new(directory, Arc::new(|| Timestamp(1_000)));
    (options.free_bytes_min, options.reserve_bytes) = (0, 0);
    Store::open(options).unwrap()
}

fn salts() -> impl FnMut() -> Salt {
    let mut next = 0_u128;
    move || {
        next += 1;
        Salt(next.to_be_bytes())
    }
}

fn seal(chain: &mut Chain, records: &[Record]) -> Vec<Sealed> {
    let mut salts = salts();
    records.iter().map(|record| Sealed::seal(chain, record, &mut salts).unwrap()).collect()
}

#[test]
fn an_execution_is_read_back_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let identity = Identity { tenant: TenantId::new("acme"), execution: ExecutionId::new("exec_1") };
    let (worker, agent) = (WorkerId::new("w1"), Actor::agent("pilot"));
    let plan = plan();
    let new = NewPlan {
        tenant: identity.tenant.clone(),
        id: PlanId::new("plan_1"),
        plan: plan.clone(),
        expected: None,
        actor: agent.clone(),
        at: Timestamp(1),
    };
    assert_eq!(wait(store.save(new.clone())), Ok(Saved::New { revision: 1 }));
    assert_eq!(wait(store.save(new)), Ok(Saved::Already { revision: 1 }));

    let inputs = Arc::new(Value::from("x".repeat(100_000)));
    let opened =
        admit::opening(&plan, Driver::Server, inputs, &identity.execution, agent, Timestamp(5)).unwrap();
    let mut execution = Execution::open(identity.clone(), &opened).unwrap();
    let mut chain = Chain::new(identity.tenant.clone(), identity.execution.clone());
    let opening = Opening {
        identity: identity.clone(),
        plan: PlanId::new("plan_1"),
        request: Some(Request { key: "k".into(), digest: Hash::ZERO }),
        worker: Some(worker.clone()),
        entries: seal(&mut chain, &[opened]),
        row: execution.row(),
    };
    let answer = wait(store.open(opening.clone())).unwrap();
    let Opened::New { lease: Some(lease) } = answer else { panic!("{answer:?}") };
    assert_eq!(wait(store.open(opening)), Ok(Opened::Already { execution: identity.execution.clone() }));

    let mut now = 10;
    let mut step = |execution: &mut Execution, chain: &mut Chain, input: Input| {
        now += 10;
        let head = chain.head();
        let decision =
            execution.decide(&Actor::rutter(), input, Moment { now: Timestamp(now), room: 1 }).unwrap();
        let entries = seal(chain, &decision.records);
        let append = Append {
            lease: lease.clone(),
            expected: head,
            entries,
            row: execution.row(),
            consumed: vec![],
            forgotten: vec![],
        };
        assert_eq!(wait(store.append(append.clone())), Ok(Appended::New));
        assert_eq!(wait(store.append(append)), Ok(Appended::Already));
        decision.calls
    };
    let mut calls = step(&mut execution, &mut chain, Input::Start);
    while let Some(call) = calls.pop() {
        let outcome = Outcome::Done { result: Arc::new(json!({"id": 7})), cost_micros: 0 };
        let input = Input::Returned { part: call.part, side: call.side, attempt: call.attempt, outcome };
        calls = step(&mut execution, &mut chain, input);
    }
    assert_eq!(execution.status().as_str(), "completed");

    let letter = NewLetter {
        identity: identity.clone(),
        request: None,
        actor: Actor::person("operator"),
        at: Timestamp(500),
        bytes: b"undo".to_vec(),
    };
    assert_eq!(wait(store.post(letter)), Ok(Posted::New { letter: 1 }));
    drop(store);

    let store = open(directory.path());
    let loaded = wait(store.load(&identity)).unwrap();
    assert_eq!((loaded.head, loaded.letters.len()), (chain.head(), 1));
    let replayed = Execution::replay(identity.clone(), &loaded.records).unwrap();
    assert_eq!(replayed, execution);

    let claim = Claim { worker: WorkerId::new("w2"), now: Timestamp(1_000), limit: 10 };
    let leases = wait(store.claim(claim)).unwrap();
    assert_eq!(leases, [Lease { identity: identity.clone(), worker: WorkerId::new("w2"), epoch: 2 }]);
    let stale = Append {
        lease,
        expected: Head { seq: 0, hash: Hash::ZERO },
        entries: vec![],
        row: execution.row(),
        consumed: vec![],
        forgotten: vec![],
    };
    let fenced = Error::Fenced { execution: identity.execution.clone(), epoch: 2 };
    assert_eq!(wait(store.append(stale)), Err(fenced));
}

#[test]
fn a_second_owner_is_told_who_has_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let _store = open(directory.path());
    let refused = Store::open(Options::new(directory.path(), Arc::new(|| Timestamp(0)))).unwrap_err();
    let Error::Locked { pid, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(*pid, std::process::id().to_string());
    assert_eq!(refused.code(), "store.locked");
}
