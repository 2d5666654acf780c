//! Cleaning up: what ended long ago goes, its hashes stay.

use crate::erasing::{files_with, verify};
use crate::stage::{PLAN, Stage, acme, of, plan};
use rutter_core::actor::Actor;
use rutter_core::execution::view::Status;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::event::{Event, Removed};
use rutter_core::port::journal::{Journal, NewLetter, Posted, Request};
use rutter_core::port::proof::Proof;
use rutter_core::port::query::{EntryFilter, ExecutionFilter, Page, PlanFilter, Query, Totals};
use rutter_core::port::upkeep::{Cleaned, CleanedPart, Cleaning, Upkeep};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use serde_json::json;

fn cleaning(what: CleanedPart) -> Cleaning {
    Cleaning {
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
const ONE: Cleaned = Cleaned { executions: 1, entries: 2, payloads: 2, bytes: 16 + 15 };

#[test]
fn a_removed_execution_is_gone_and_its_hashes_stay() {
    let stage = Stage::new();
    let tagged = plan("ship", json!({"tags": ["sea"]}));
    stage.save("acme", "plan_2", &tagged, 1);
    let mut pen = stage.open_of("acme", "plan_2", &tagged, "exec_1", 5);
    pen.row.status = Status::Completed;
    pen.note("the unmistakablesentence", json!({"of": "exec_1"}));
    stage.open("exec_2", 5);
    let checkpoint = wait(stage.store.sign(&acme())).unwrap();
    assert!(checkpoint.is_some());
    assert_eq!(wait(stage.store.clean(cleaning(CleanedPart::Executions))), Ok(ONE));

    assert_eq!(verify(&stage), (0, 2), "the tree still has the root that was signed");
    assert_eq!(wait(stage.store.execution(&pen.identity)), Ok(None));
    assert_eq!(wait(stage.store.load(&pen.identity)).unwrap_err().code(), "store.not_found");
    assert_eq!(stage.executions(all()), ["exec_2"]);
    for filter in [
        ExecutionFilter { tag: Some("sea".into()), ..all() },
        ExecutionFilter { plan: Some(PlanId::new("plan_2")), ..all() },
        ExecutionFilter { statuses: vec![Status::Completed], ..all() },
        ExecutionFilter { text: Some("unmistakablesentence".into()), ..all() },
    ] {
        assert!(stage.executions(filter).is_empty());
    }
    let any = EntryFilter::default;
    for filter in [
        of("exec_1"),
        EntryFilter { text: Some("unmistakablesentence".into()), ..any() },
        EntryFilter { kinds: vec!["decision_recorded".into()], ..any() },
    ] {
        assert!(stage.entries(filter).is_empty());
    }
    assert_eq!(stage.labels(any()), ["ledger 3", "exec_2 1", "ledger 2", "ledger 1"]);
    let executions = [("pending", 1)].into_iter().collect();
    assert_eq!(wait(stage.store.totals(&acme())), Ok(Totals { executions, entries: 6, plans: 2 }));
    assert_eq!(stage.plans(PlanFilter::default()).len(), 2, "a plan without executions stays");

    let own = stage.entries(of("ledger")).pop().unwrap().record;
    let removed = Removed { execution: ExecutionId::new("exec_1"), entries: 2, head: pen.chain.head().hash };
    let event = Event::ExecutionsRemoved { executions: vec![removed], reason: "a year has passed".into() };
    assert_eq!((own.event, own.at, own.actor), (event, Timestamp(200), Actor::person("operator")));
    assert_eq!(files_with(stage.directory.path(), b"unmistakablesentence"), [""; 0]);
}

#[test]
fn only_what_ended_long_ago_and_nobody_holds_or_wrote_to_is_cleaned() {
    let stage = Stage::new();
    for status in Status::ALL {
        stage.ended(&format!("exec_{}", status.as_str()), status, 1);
    }
    stage.ended("exec_late", Status::Completed, 100);
    let pen = stage.ended("exec_written_to", Status::Completed, 1);
    let letter = NewLetter {
        identity: pen.identity.clone(),
        request: None,
        actor: Actor::person("operator"),
        at: Timestamp(2),
        bytes: b"undo".to_vec(),
    };
    assert!(matches!(wait(stage.store.post(letter)), Ok(Posted::New { .. })));
    for what in [CleanedPart::Payloads, CleanedPart::Executions] {
        let cleaned = wait(stage.store.clean(cleaning(what))).unwrap();
        assert_eq!(cleaned.executions, 5);
    }
    let left = stage.executions(all());
    assert_eq!(left.len(), 8);
    assert!(left.contains(&"exec_late".into()) && left.contains(&"exec_written_to".into()));
}

#[test]
fn an_execution_with_a_living_worker_is_kept_until_that_is_gone() {
    let stage = Stage::new();
    stage.ended("exec_1", Status::Completed, 1);
    wait(stage.store.renew(&WorkerId::new("w"), Timestamp(200))).unwrap();
    assert_eq!(wait(stage.store.clean(cleaning(CleanedPart::Executions))), Ok(Cleaned::default()));
    let later = Cleaning { at: Timestamp(201), ..cleaning(CleanedPart::Executions) };
    assert_eq!(wait(stage.store.clean(later)).unwrap().executions, 1);
}

#[test]
fn only_the_statuses_that_were_named_are_cleaned_and_open_ones_cannot_be() {
    let stage = Stage::new();
    stage.ended("exec_1", Status::Completed, 1);
    stage.ended("exec_2", Status::Failed, 1);
    let some = |statuses: Vec<Status>| Cleaning { statuses, ..cleaning(CleanedPart::Executions) };
    let refused = wait(stage.store.clean(some(vec![Status::Failed, Status::Running]))).unwrap_err();
    assert_eq!(refused.code(), "store.invalid");
    assert_eq!(wait(stage.store.clean(some(vec![Status::Failed]))), Ok(ONE));
    assert_eq!(stage.executions(all()), ["exec_1"]);
    let nobody = Cleaning { tenant: TenantId::new("nobody"), ..some(Vec::new()) };
    assert_eq!(wait(stage.store.clean(nobody)), Ok(Cleaned::default()));
}

#[test]
fn payloads_alone_can_go_and_the_story_stays() {
    let stage = Stage::new();
    let pen = stage.ended("exec_1", Status::Completed, 1);
    let payloads = || cleaning(CleanedPart::Payloads);
    assert_eq!(wait(stage.store.clean(payloads())), Ok(Cleaned { entries: 0, ..ONE }));
    assert_eq!(wait(stage.store.clean(payloads())), Ok(Cleaned::default()));
    let loaded = wait(stage.store.load(&pen.identity)).unwrap();
    assert_eq!((loaded.head, loaded.records.len()), (pen.chain.head(), 2));
    let own = stage.entries(of("ledger"));
    let (execution, reason) = (ExecutionId::new("exec_1"), "a year has passed".to_owned());
    assert_eq!(own[1].record.event, Event::PayloadsErased { execution, payloads: 2, reason });
    assert_eq!(own.len(), 2);
}

#[test]
fn a_dry_run_says_the_same_over_several_batches_and_changes_nothing() {
    const MANY: u64 = 230;
    let stage = Stage::new();
    let mut heads: Vec<(ExecutionId, Hash)> = Vec::new();
    for number in 0..MANY {
        let status = if number % 3 == 0 { Status::Failed } else { Status::Completed };
        let pen = stage.ended(&format!("exec_{number:03}"), status, 1);
        heads.push((pen.identity.execution.clone(), pen.chain.head().hash));
    }
    for what in [CleanedPart::Payloads, CleanedPart::Executions] {
        let state = || (stage.entries(EntryFilter::default()), wait(stage.store.totals(&acme())));
        let before = state();
        let told = wait(stage.store.clean(Cleaning { dry_run: true, ..cleaning(what) })).unwrap();
        assert_eq!((told.executions, &state()), (MANY, &before));
        assert_eq!(wait(stage.store.clean(cleaning(what))), Ok(told));
    }
    assert!(stage.executions(all()).is_empty());
    let removed = stage.entries(of("ledger")).into_iter().filter_map(|entry| match entry.record.event {
        Event::ExecutionsRemoved { executions, .. } => Some(executions),
        _ => None,
    });
    let batches: Vec<Vec<Removed>> = removed.collect();
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [100, 53, 77]);
    let mut removed: Vec<_> = batches.concat().into_iter().map(|gone| (gone.execution, gone.head)).collect();
    removed.sort();
    assert_eq!(removed, heads);
}

#[test]
fn old_requests_are_forgotten_with_the_executions() {
    let day = 24 * 3_600_000;
    let stage = Stage::new();
    let pen = stage.open("exec_1", 1);
    let post = |key: &str, at: i64| {
        let letter = NewLetter {
            identity: pen.identity.clone(),
            request: Some(Request { key: key.into(), digest: Hash::ZERO }),
            actor: Actor::person("operator"),
            at: Timestamp(at),
            bytes: Vec::new(),
        };
        wait(stage.store.post(letter)).unwrap()
    };
    post("old", 0);
    post("new", 1);
    let clean = |what| Cleaning { at: Timestamp(30 * day + 1), ..cleaning(what) };
    wait(stage.store.clean(clean(CleanedPart::Payloads))).unwrap();
    assert_eq!(post("old", 2), Posted::Already);
    wait(stage.store.clean(clean(CleanedPart::Executions))).unwrap();
    assert!(matches!(post("old", 2), Posted::New { .. }));
    assert_eq!(post("new", 2), Posted::Already);
}

#[test]
fn another_tenants_executions_are_kept() {
    let stage = Stage::new();
    let theirs = plan("theirs", json!({}));
    stage.save("other", PLAN, &theirs, 1);
    let mut pen = stage.open_of("other", PLAN, &theirs, "exec_1", 1);
    pen.row.status = Status::Completed;
    pen.note("the end", json!(1));
    for what in [CleanedPart::Payloads, CleanedPart::Executions] {
        assert_eq!(wait(stage.store.clean(cleaning(what))), Ok(Cleaned::default()));
    }
    let found = wait(stage.store.executions(&TenantId::new("other"), all(), Page::first(9))).unwrap();
    assert_eq!(found.items.len(), 1);
}
