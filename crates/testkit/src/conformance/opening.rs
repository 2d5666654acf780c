//! Opening executions, once.

use super::fixture::{ConformanceFixture, ConformanceWriter, PLAN, WORKER, done, plan, refused, request, worker};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::Event;
use rutter_core::port::journal::{ExecutionOpening, Lease, NewCommand, OpenOutcome};
use rutter_core::port::query::KnownRequest;
use rutter_core::time::Timestamp;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    an_opened_execution_is_there_at_once,
    the_worker_that_opens_it_for_itself_holds_it,
    several_entries_can_begin_a_journal,
    the_plan_must_have_been_saved,
    the_plan_must_have_been_saved_by_this_tenant,
    the_hash_must_be_a_revision_of_the_plan,
    an_older_revision_can_be_opened,
    the_same_request_gives_the_same_execution,
    the_same_request_is_known_after_the_execution_has_moved_on,
    another_request_under_a_used_key_is_refused,
    a_used_key_names_its_request,
    a_refused_opening_does_not_use_up_its_key,
    keys_of_tenants_are_separate,
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

fn an_opened_execution_is_there_at_once(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.opened("exec_1");
    let found = done(store.execution(&pen.identity)).expect("it was opened");
    assert_eq!((found.id.as_str(), found.plan.as_str(), found.name.as_str()), ("exec_1", PLAN, "simple"));
    assert_eq!((found.row, found.entries, found.pending_commands), (pen.row.clone(), 1, 0));
}

fn the_worker_that_opens_it_for_itself_holds_it(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.write(&mut pen, "mine");
}

fn several_entries_can_begin_a_journal(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    let mut opening = pen.opening();
    opening.entries.extend([pen.note("a"), pen.note("b")]);
    done(store.open(opening));
    let loaded = done(store.load(&pen.identity));
    assert_eq!((loaded.head, loaded.records.len()), (pen.head(), 3));
}

fn the_plan_must_have_been_saved(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = ConformanceWriter::new(stage.identity("exec_1"), PLAN, &plan("simple"), Timestamp(0));
    refused(store.open(pen.opening()), "store.not_found");
    assert!(done(store.execution(&pen.identity)).is_none());
}

fn the_plan_must_have_been_saved_by_this_tenant(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    ConformanceFixture::of(store, "elsewhere").save(PLAN, &plan("simple"));
    let pen = ConformanceWriter::new(stage.identity("exec_1"), PLAN, &plan("simple"), Timestamp(0));
    refused(store.open(pen.opening()), "store.not_found");
}

fn the_hash_must_be_a_revision_of_the_plan(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save(PLAN, &plan("simple"));
    stage.save("plan_2", &plan("other"));
    let other = ConformanceWriter::new(stage.identity("exec_1"), PLAN, &plan("other"), Timestamp(0));
    refused(store.open(other.opening()), "store.not_found");
    let mut pen = stage.pen("exec_1");
    pen.row.plan = Hash::of(&[b"unknown"]);
    refused(store.open(pen.opening()), "store.not_found");
}

fn an_older_revision_can_be_opened(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.pen("exec_1");
    stage.save(PLAN, &plan("newer"));
    stage.open(&pen);
    let loaded = done(store.load(&pen.identity));
    let Event::ExecutionOpened { plan, .. } = &loaded.records[0].event else { panic!("{loaded:?}") };
    assert_eq!(plan.plan.as_ref().map(|plan| plan.name.as_str()), Some("simple"));
}

fn the_same_request_gives_the_same_execution(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let ask = |name: &str| ExecutionOpening { request: request("key", "a"), ..stage.pen(name).opening() };
    assert_eq!(done(store.open(ask("exec_1"))), OpenOutcome::New { lease: None });
    let first = OpenOutcome::Already { execution: ExecutionId::new("exec_1") };
    assert_eq!(done(store.open(ask("exec_2"))), first);
    assert_eq!(done(store.open(ask("exec_1"))), first);
    assert!(done(store.execution(&stage.identity("exec_2"))).is_none());
}

fn the_same_request_is_known_after_the_execution_has_moved_on(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    let ask = ExecutionOpening { request: request("key", "a"), worker: Some(worker(WORKER)), ..pen.opening() };
    let lease = Lease { identity: pen.identity.clone(), worker: worker(WORKER), epoch: 1 };
    assert_eq!(done(store.open(ask.clone())), OpenOutcome::New { lease: Some(lease.clone()) });
    pen.lease = lease;
    stage.write(&mut pen, "on");
    assert_eq!(done(store.open(ask)), OpenOutcome::Already { execution: ExecutionId::new("exec_1") });
    stage.write(&mut pen, "and on");
}

fn another_request_under_a_used_key_is_refused(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    done(store.open(ExecutionOpening { request: request("key", "a"), ..stage.pen("exec_1").opening() }));
    let other = ExecutionOpening { request: request("key", "b"), ..stage.pen("exec_2").opening() };
    refused(store.open(other), "store.key_reused");
    assert!(done(store.execution(&stage.identity("exec_2"))).is_none());
}

fn a_used_key_names_its_request(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    assert_eq!(done(store.request(&stage.tenant(), "key")), None);
    let asked = request("key", "a");
    done(store.open(ExecutionOpening { request: asked.clone(), ..stage.pen("exec_1").opening() }));
    let digest = asked.expect("it has a key").digest;
    let known = Some(KnownRequest { digest, execution: ExecutionId::new("exec_1") });
    assert_eq!(done(store.request(&stage.tenant(), "key")), known);
    assert_eq!(done(store.request(&stage.tenant(), "other")), None);
    assert_eq!(done(store.request(&TenantId::new("elsewhere"), "key")), None);
}

fn a_refused_opening_does_not_use_up_its_key(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let unsaved = ConformanceWriter::new(stage.identity("exec_1"), PLAN, &plan("simple"), Timestamp(0));
    let ask = ExecutionOpening { request: request("key", "a"), ..unsaved.opening() };
    refused(store.open(ask), "store.not_found");
    let ask = ExecutionOpening { request: request("key", "b"), ..stage.pen("exec_1").opening() };
    assert_eq!(done(store.open(ask)), OpenOutcome::New { lease: None });
}

fn keys_of_tenants_are_separate(store: &dyn ConformingStore) {
    for (tenant, about) in [("harbour", "a"), ("elsewhere", "b")] {
        let stage = ConformanceFixture::of(store, tenant);
        let ask = ExecutionOpening { request: request("key", about), ..stage.pen("exec_1").opening() };
        assert_eq!(done(store.open(ask)), OpenOutcome::New { lease: None });
    }
}

fn the_same_opening_twice_is_answered_once(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let again = || ExecutionOpening { worker: Some(worker(WORKER)), ..pen.opening() };
    let already = OpenOutcome::Already { execution: ExecutionId::new("exec_1") };
    assert_eq!(done(store.open(again())), already);
    let again = again();
    stage.write(&mut pen, "the lease is unchanged");
    assert_eq!(done(store.open(again)), already);
    assert_eq!(done(store.load(&pen.identity)).head, pen.head());
}

fn a_taken_name_is_a_conflict(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    let later = ConformanceWriter::new(stage.identity("exec_1"), PLAN, &plan("simple"), Timestamp(7));
    refused(store.open(later.opening()), "store.conflict");
}

fn executions_of_tenants_may_share_a_name(store: &dyn ConformingStore) {
    let (mine, theirs) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "elsewhere"));
    let mut pen = mine.driven("exec_1");
    let other = theirs.driven("exec_1");
    mine.write(&mut pen, "mine");
    assert_eq!(done(store.load(&pen.identity)).records.len(), 2);
    assert_eq!(done(store.load(&other.identity)).records.len(), 1);
}

fn a_journal_begins_at_one(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    let second = pen.note("second");
    refused(store.open(ExecutionOpening { entries: vec![second], ..pen.opening() }), "store.invalid");
}

fn a_journal_begins_at_its_own_beginning(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (pen, other) = (stage.pen("exec_1"), stage.pen("exec_2"));
    let mixed = ExecutionOpening { entries: other.opening().entries, ..pen.opening() };
    refused(store.open(mixed), "store.invalid");
    assert!(done(store.execution(&pen.identity)).is_none());
}

fn an_execution_without_entries_is_invalid(store: &dyn ConformingStore) {
    let pen = ConformanceFixture::new(store).pen("exec_1");
    refused(store.open(ExecutionOpening { entries: Vec::new(), ..pen.opening() }), "store.invalid");
}

fn a_journal_begins_with_the_opening(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    pen.chain = HashChain::new(pen.identity.tenant.clone(), pen.identity.execution.clone());
    let entry = pen.note("something else first");
    refused(store.open(ExecutionOpening { entries: vec![entry], ..pen.opening() }), "store.invalid");
}

fn a_request_key_is_visible(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    for key in ["", " ", "a b", "a\n", "ä", "a\u{0}"] {
        let opening = ExecutionOpening { request: request(key, "a"), ..stage.pen("exec_2").opening() };
        refused(store.open(opening), "store.invalid");
        let command = NewCommand { request: request(key, "a"), ..stage.new_command("exec_1", 1) };
        refused(store.enqueue(command), "store.invalid");
    }
}

fn the_name_of_the_ledger_is_not_for_executions(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    refused(store.open(stage.pen("ledger").opening()), "store.invalid");
    refused(store.enqueue(stage.new_command("ledger", 1)), "store.not_found");
    refused(store.load(&stage.identity("ledger")), "store.not_found");
}
