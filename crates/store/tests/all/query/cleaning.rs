//! Cleaning up: executions that ended long ago are removed, their hashes stay.

use crate::query::erasing::{files_with, verify};
use crate::query::fixture::{PLAN, QueryFixture, acme, of, plan};
use rutter_core::actor::Actor;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::event::{Event, RemovedExecution};
use rutter_core::port::journal::{EnqueueOutcome, IdempotentRequest, Journal, NewCommand};
use rutter_core::port::proof::LedgerProof;
use rutter_core::port::query::{EntryFilter, ExecutionFilter, Pagination, PlanFilter, StoreQuery, StoreTotals};
use rutter_core::port::upkeep::{CleanedPart, CleanedTotals, CleaningRequest, StoreMaintenance};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use serde_json::json;

fn cleaning(what: CleanedPart) -> CleaningRequest {
    CleaningRequest {
        tenant: acme(),
        statuses: Vec::new(),
        untouched_since: Timestamp(100),
        what,
        dry_run: false,
        actor: Actor::person("operator"),
        at: Timestamp(200),
        reason: "a year has passed".into(),
    }
}

fn all() -> ExecutionFilter {
    ExecutionFilter::default()
}

/// Inputs and details of one execution of these tests.
const ONE: CleanedTotals = CleanedTotals { executions: 1, entries: 2, payloads: 2, bytes: 16 + 15 };

#[test]
fn a_removed_execution_is_gone_and_its_hashes_stay() {
    let fixture = QueryFixture::new();
    let tagged = plan("ship", json!({"tags": ["sea"]}));
    fixture.save("acme", "plan_2", &tagged, 1);
    let mut pen = fixture.open_of("acme", "plan_2", &tagged, "exec_1", 5);
    pen.row.status = ExecutionStatus::Completed;
    pen.note("the unmistakablesentence", json!({"of": "exec_1"}));
    fixture.open("exec_2", 5);
    let checkpoint = wait(fixture.store.sign(&acme())).unwrap();
    assert!(checkpoint.is_some());
    assert_eq!(wait(fixture.store.clean(cleaning(CleanedPart::Executions))), Ok(ONE));

    assert_eq!(verify(&fixture), (0, 2), "the tree still has the root that was signed");
    assert_eq!(wait(fixture.store.execution(&pen.identity)), Ok(None));
    assert_eq!(wait(fixture.store.load(&pen.identity)).unwrap_err().code(), "store.not_found");
    assert_eq!(fixture.executions(all()), ["exec_2"]);
    for filter in [
        ExecutionFilter { tag: Some("sea".into()), ..all() },
        ExecutionFilter { plan: Some(PlanId::new("plan_2")), ..all() },
        ExecutionFilter { statuses: vec![ExecutionStatus::Completed], ..all() },
        ExecutionFilter { text: Some("unmistakablesentence".into()), ..all() },
    ] {
        assert!(fixture.executions(filter).is_empty());
    }
    let any = EntryFilter::default;
    for filter in [
        of("exec_1"),
        EntryFilter { text: Some("unmistakablesentence".into()), ..any() },
        EntryFilter { kinds: vec!["decision_recorded".into()], ..any() },
    ] {
        assert!(fixture.entries(filter).is_empty());
    }
    assert_eq!(fixture.labels(any()), ["ledger 3", "exec_2 1", "ledger 2", "ledger 1"]);
    let executions = [("pending", 1)].into_iter().collect();
    assert_eq!(wait(fixture.store.totals(&acme())), Ok(StoreTotals { executions, entries: 6, plans: 2 }));
    assert_eq!(fixture.plans(PlanFilter::default()).len(), 2, "a plan without executions stays");

    let own = fixture.entries(of("ledger")).pop().unwrap().record;
    let removed = RemovedExecution { execution: ExecutionId::new("exec_1"), entries: 2, head: pen.chain.head().hash };
    let event = Event::ExecutionsRemoved { executions: vec![removed], reason: "a year has passed".into() };
    assert_eq!((own.event, own.at, own.actor), (event, Timestamp(200), Actor::person("operator")));
    assert_eq!(files_with(fixture.directory.path(), b"unmistakablesentence"), [""; 0]);
}

#[test]
fn only_old_ended_executions_without_lease_or_commands_are_cleaned() {
    let fixture = QueryFixture::new();
    for status in ExecutionStatus::ALL {
        fixture.ended(&format!("exec_{}", status.as_str()), status, 1);
    }
    fixture.ended("exec_late", ExecutionStatus::Completed, 100);
    let pen = fixture.ended("exec_written_to", ExecutionStatus::Completed, 1);
    let command = NewCommand {
        identity: pen.identity.clone(),
        request: None,
        actor: Actor::person("operator"),
        at: Timestamp(2),
        bytes: b"undo".to_vec(),
    };
    assert!(matches!(wait(fixture.store.enqueue(command)), Ok(EnqueueOutcome::New { .. })));
    for what in [CleanedPart::Payloads, CleanedPart::Executions] {
        let cleaned = wait(fixture.store.clean(cleaning(what))).unwrap();
        assert_eq!(cleaned.executions, 5);
    }
    let left = fixture.executions(all());
    assert_eq!(left.len(), 8);
    assert!(left.contains(&"exec_late".into()) && left.contains(&"exec_written_to".into()));
}

#[test]
fn an_execution_with_a_live_lease_is_not_cleaned() {
    let fixture = QueryFixture::new();
    fixture.ended("exec_1", ExecutionStatus::Completed, 1);
    wait(fixture.store.renew(&WorkerId::new("w"), Timestamp(200))).unwrap();
    assert_eq!(wait(fixture.store.clean(cleaning(CleanedPart::Executions))), Ok(CleanedTotals::default()));
    let later = CleaningRequest { at: Timestamp(201), ..cleaning(CleanedPart::Executions) };
    assert_eq!(wait(fixture.store.clean(later)).unwrap().executions, 1);
}

#[test]
fn only_the_statuses_that_were_named_are_cleaned_and_open_ones_cannot_be() {
    let fixture = QueryFixture::new();
    fixture.ended("exec_1", ExecutionStatus::Completed, 1);
    fixture.ended("exec_2", ExecutionStatus::Failed, 1);
    let some = |statuses: Vec<ExecutionStatus>| CleaningRequest { statuses, ..cleaning(CleanedPart::Executions) };
    let refused = wait(fixture.store.clean(some(vec![ExecutionStatus::Failed, ExecutionStatus::Running]))).unwrap_err();
    assert_eq!(refused.code(), "store.invalid");
    assert_eq!(wait(fixture.store.clean(some(vec![ExecutionStatus::Failed]))), Ok(ONE));
    assert_eq!(fixture.executions(all()), ["exec_1"]);
    let nobody = CleaningRequest { tenant: TenantId::new("nobody"), ..some(Vec::new()) };
    assert_eq!(wait(fixture.store.clean(nobody)), Ok(CleanedTotals::default()));
}

#[test]
fn payloads_can_be_erased_without_their_journal() {
    let fixture = QueryFixture::new();
    let pen = fixture.ended("exec_1", ExecutionStatus::Completed, 1);
    let payloads = || cleaning(CleanedPart::Payloads);
    assert_eq!(wait(fixture.store.clean(payloads())), Ok(CleanedTotals { entries: 0, ..ONE }));
    assert_eq!(wait(fixture.store.clean(payloads())), Ok(CleanedTotals::default()));
    let loaded = wait(fixture.store.load(&pen.identity)).unwrap();
    assert_eq!((loaded.head, loaded.records.len()), (pen.chain.head(), 2));
    let own = fixture.entries(of("ledger"));
    let (execution, reason) = (ExecutionId::new("exec_1"), "a year has passed".to_owned());
    assert_eq!(own[1].record.event, Event::PayloadsErased { execution, payloads: 2, reason });
    assert_eq!(own.len(), 2);
}

#[test]
fn a_dry_run_counts_the_same_over_several_batches_and_changes_nothing() {
    const MANY: u64 = 230;
    let fixture = QueryFixture::new();
    let mut heads: Vec<(ExecutionId, Hash)> = Vec::new();
    for number in 0..MANY {
        let status = if number % 3 == 0 { ExecutionStatus::Failed } else { ExecutionStatus::Completed };
        let pen = fixture.ended(&format!("exec_{number:03}"), status, 1);
        heads.push((pen.identity.execution.clone(), pen.chain.head().hash));
    }
    for what in [CleanedPart::Payloads, CleanedPart::Executions] {
        let state = || (fixture.entries(EntryFilter::default()), wait(fixture.store.totals(&acme())));
        let before = state();
        let cleaned_totals = wait(fixture.store.clean(CleaningRequest { dry_run: true, ..cleaning(what) })).unwrap();
        assert_eq!((cleaned_totals.executions, &state()), (MANY, &before));
        assert_eq!(wait(fixture.store.clean(cleaning(what))), Ok(cleaned_totals));
    }
    assert!(fixture.executions(all()).is_empty());
    let removed = fixture.entries(of("ledger")).into_iter().filter_map(|entry| match entry.record.event {
        Event::ExecutionsRemoved { executions, .. } => Some(executions),
        _ => None,
    });
    let batches: Vec<Vec<RemovedExecution>> = removed.collect();
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [100, 53, 77]);
    let mut removed: Vec<_> = batches.concat().into_iter().map(|gone| (gone.execution, gone.head)).collect();
    removed.sort();
    assert_eq!(removed, heads);
}

#[test]
fn old_requests_are_forgotten_with_the_executions() {
    let day = 24 * 3_600_000;
    let fixture = QueryFixture::new();
    let pen = fixture.open("exec_1", 1);
    let post = |key: &str, at: i64| {
        let command = NewCommand {
            identity: pen.identity.clone(),
            request: Some(IdempotentRequest { key: key.into(), digest: Hash::ZERO }),
            actor: Actor::person("operator"),
            at: Timestamp(at),
            bytes: Vec::new(),
        };
        wait(fixture.store.enqueue(command)).unwrap()
    };
    post("old", 0);
    post("new", 1);
    let clean = |what| CleaningRequest { at: Timestamp(30 * day + 1), ..cleaning(what) };
    wait(fixture.store.clean(clean(CleanedPart::Payloads))).unwrap();
    assert_eq!(post("old", 2), EnqueueOutcome::Already);
    wait(fixture.store.clean(clean(CleanedPart::Executions))).unwrap();
    assert!(matches!(post("old", 2), EnqueueOutcome::New { .. }));
    assert_eq!(post("new", 2), EnqueueOutcome::Already);
}

#[test]
fn another_tenants_executions_are_not_cleaned() {
    let fixture = QueryFixture::new();
    let theirs = plan("theirs", json!({}));
    fixture.save("other", PLAN, &theirs, 1);
    let mut pen = fixture.open_of("other", PLAN, &theirs, "exec_1", 1);
    pen.row.status = ExecutionStatus::Completed;
    pen.note("the end", json!(1));
    for what in [CleanedPart::Payloads, CleanedPart::Executions] {
        assert_eq!(wait(fixture.store.clean(cleaning(what))), Ok(CleanedTotals::default()));
    }
    let found = wait(fixture.store.executions(&TenantId::new("other"), all(), Pagination::first(9))).unwrap();
    assert_eq!(found.items.len(), 1);
}
