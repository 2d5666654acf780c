//! Opening executions, once.

use super::stage::{PLAN, Pen, Stage, WORKER, done, plan, refused, request, worker};
use super::{Case, Store, cases};
use rutter_core::hash::Hash;
use rutter_core::id::ExecutionId;
use rutter_core::journal::chain::Chain;
use rutter_core::journal::event::Event;
use rutter_core::port::journal::{Lease, NewLetter, Opened, Opening};
use rutter_core::time::Timestamp;

pub(super) const CASES: &[(&str, Case)] = cases![
    an_opened_execution_is_there_at_once,
    whoever_opens_it_for_itself_holds_it,
    several_entries_can_begin_a_journal,
    the_plan_must_have_been_saved,
    the_plan_must_have_been_saved_by_this_tenant,
    the_hash_must_be_a_revision_of_the_plan,
    an_older_revision_can_be_opened,
    the_same_request_gives_the_same_execution,
    the_same_request_is_known_after_the_execution_has_moved_on,
    another_request_under_a_used_key_is_refused,
    a_refused_opening_does_not_use_up_its_key,
    keys_of_tenants_are_apart,
    the_same_opening_twice_is_answered_once,
    a_taken_name_is_a_conflict,
    executions_of_tenants_may_share_a_name,
    a_journal_begins_at_one,
    a_journal_begins_at_its_own_beginning,
    an_execution_without_entries_is_invalid,
    a_journal_begins_with_the_opening,
    a_request_key_is_visible,
    the_name_of_the_ledger_is_not_for_executions,
];

fn an_opened_execution_is_there_at_once(store: &dyn Store) {
    let stage = Stage::new(store);
    let pen = stage.opened("exec_1");
    let found = done(store.execution(&pen.identity)).expect("it was opened");
    assert_eq!((found.id.as_str(), found.plan.as_str(), found.name.as_str()), ("exec_1", PLAN, "simple"));
    assert_eq!((found.row, found.entries, found.letters), (pen.row, 1, 0));
}

fn whoever_opens_it_for_itself_holds_it(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.driven("exec_1");
    stage.write(&mut pen, "mine");
}

fn several_entries_can_begin_a_journal(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.pen("exec_1");
    let mut opening = pen.opening();
    opening.entries.extend([pen.note("a"), pen.note("b")]);
    done(store.open(opening));
    let loaded = done(store.load(&pen.identity));
    assert_eq!((loaded.head, loaded.records.len()), (pen.head(), 3));
}

fn the_plan_must_have_been_saved(store: &dyn Store) {
    let stage = Stage::new(store);
    let pen = Pen::new(stage.identity("exec_1"), PLAN, &plan("simple"), Timestamp(0));
    refused(store.open(pen.opening()), "store.not_found");
    assert!(done(store.execution(&pen.identity)).is_none());
}

fn the_plan_must_have_been_saved_by_this_tenant(store: &dyn Store) {
    let stage = Stage::new(store);
    Stage::of(store, "elsewhere").save(PLAN, &plan("simple"));
    let pen = Pen::new(stage.identity("exec_1"), PLAN, &plan("simple"), Timestamp(0));
    refused(store.open(pen.opening()), "store.not_found");
}

fn the_hash_must_be_a_revision_of_the_plan(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.save(PLAN, &plan("simple"));
    stage.save("plan_2", &plan("other"));
    let other = Pen::new(stage.identity("exec_1"), PLAN, &plan("other"), Timestamp(0));
    refused(store.open(other.opening()), "store.not_found");
    let mut pen = stage.pen("exec_1");
    pen.row.plan = Hash::of(&[b"unknown"]);
    refused(store.open(pen.opening()), "store.not_found");
}

fn an_older_revision_can_be_opened(store: &dyn Store) {
    let stage = Stage::new(store);
    let pen = stage.pen("exec_1");
    stage.save(PLAN, &plan("newer"));
    stage.open(&pen);
    let loaded = done(store.load(&pen.identity));
    let Event::ExecutionOpened { plan, .. } = &loaded.records[0].event else { panic!("{loaded:?}") };
    assert_eq!(plan.plan.as_ref().map(|plan| plan.name.as_str()), Some("simple"));
}

fn the_same_request_gives_the_same_execution(store: &dyn Store) {
    let stage = Stage::new(store);
    let ask = |name: &str| Opening { request: request("key", "a"), ..stage.pen(name).opening() };
    assert_eq!(done(store.open(ask("exec_1"))), Opened::New { lease: None });
    let first = Opened::Already { execution: ExecutionId::new("exec_1") };
    assert_eq!(done(store.open(ask("exec_2"))), first);
    assert_eq!(done(store.open(ask("exec_1"))), first);
    assert!(done(store.execution(&stage.identity("exec_2"))).is_none());
}

fn the_same_request_is_known_after_the_execution_has_moved_on(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.pen("exec_1");
    let ask = Opening { request: request("key", "a"), worker: Some(worker(WORKER)), ..pen.opening() };
    let lease = Lease { identity: pen.identity.clone(), worker: worker(WORKER), epoch: 1 };
    assert_eq!(done(store.open(ask.clone())), Opened::New { lease: Some(lease.clone()) });
    pen.lease = lease;
    stage.write(&mut pen, "on");
    assert_eq!(done(store.open(ask)), Opened::Already { execution: ExecutionId::new("exec_1") });
    stage.write(&mut pen, "and on");
}

fn another_request_under_a_used_key_is_refused(store: &dyn Store) {
    let stage = Stage::new(store);
    done(store.open(Opening { request: request("key", "a"), ..stage.pen("exec_1").opening() }));
    let other = Opening { request: request("key", "b"), ..stage.pen("exec_2").opening() };
    refused(store.open(other), "store.key_reused");
    assert!(done(store.execution(&stage.identity("exec_2"))).is_none());
}

fn a_refused_opening_does_not_use_up_its_key(store: &dyn Store) {
    let stage = Stage::new(store);
    let unsaved = Pen::new(stage.identity("exec_1"), PLAN, &plan("simple"), Timestamp(0));
    let ask = Opening { request: request("key", "a"), ..unsaved.opening() };
    refused(store.open(ask), "store.not_found");
    let ask = Opening { request: request("key", "b"), ..stage.pen("exec_1").opening() };
    assert_eq!(done(store.open(ask)), Opened::New { lease: None });
}

fn keys_of_tenants_are_apart(store: &dyn Store) {
    for (tenant, about) in [("harbour", "a"), ("elsewhere", "b")] {
        let stage = Stage::of(store, tenant);
        let ask = Opening { request: request("key", about), ..stage.pen("exec_1").opening() };
        assert_eq!(done(store.open(ask)), Opened::New { lease: None });
    }
}

fn the_same_opening_twice_is_answered_once(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.driven("exec_1");
    let again = || Opening { worker: Some(worker(WORKER)), ..pen.opening() };
    let already = Opened::Already { execution: ExecutionId::new("exec_1") };
    assert_eq!(done(store.open(again())), already);
    let again = again();
    stage.write(&mut pen, "the lease is as it was");
    assert_eq!(done(store.open(again)), already);
    assert_eq!(done(store.load(&pen.identity)).head, pen.head());
}

fn a_taken_name_is_a_conflict(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.opened("exec_1");
    let later = Pen::new(stage.identity("exec_1"), PLAN, &plan("simple"), Timestamp(7));
    refused(store.open(later.opening()), "store.conflict");
}

fn executions_of_tenants_may_share_a_name(store: &dyn Store) {
    let (mine, theirs) = (Stage::new(store), Stage::of(store, "elsewhere"));
    let mut pen = mine.driven("exec_1");
    let other = theirs.driven("exec_1");
    mine.write(&mut pen, "mine");
    assert_eq!(done(store.load(&pen.identity)).records.len(), 2);
    assert_eq!(done(store.load(&other.identity)).records.len(), 1);
}

fn a_journal_begins_at_one(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.pen("exec_1");
    let second = pen.note("second");
    refused(store.open(Opening { entries: vec![second], ..pen.opening() }), "store.invalid");
}

fn a_journal_begins_at_its_own_beginning(store: &dyn Store) {
    let stage = Stage::new(store);
    let (pen, other) = (stage.pen("exec_1"), stage.pen("exec_2"));
    let mixed = Opening { entries: other.opening().entries, ..pen.opening() };
    refused(store.open(mixed), "store.invalid");
    assert!(done(store.execution(&pen.identity)).is_none());
}

fn an_execution_without_entries_is_invalid(store: &dyn Store) {
    let pen = Stage::new(store).pen("exec_1");
    refused(store.open(Opening { entries: Vec::new(), ..pen.opening() }), "store.invalid");
}

fn a_journal_begins_with_the_opening(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.pen("exec_1");
    pen.chain = Chain::new(pen.identity.tenant.clone(), pen.identity.execution.clone());
    let entry = pen.note("something else first");
    refused(store.open(Opening { entries: vec![entry], ..pen.opening() }), "store.invalid");
}

fn a_request_key_is_visible(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.opened("exec_1");
    for key in ["", " ", "a b", "a\n", "ä", "a\u{0}"] {
        let opening = Opening { request: request(key, "a"), ..stage.pen("exec_2").opening() };
        refused(store.open(opening), "store.invalid");
        let letter = NewLetter { request: request(key, "a"), ..stage.letter("exec_1", 1) };
        refused(store.post(letter), "store.invalid");
    }
}

fn the_name_of_the_ledger_is_not_for_executions(store: &dyn Store) {
    let stage = Stage::new(store);
    refused(store.open(stage.pen("ledger").opening()), "store.invalid");
    refused(store.post(stage.letter("ledger", 1)), "store.not_found");
    refused(store.load(&stage.identity("ledger")), "store.not_found");
}
