//! Cleaning up: old executions are removed, their hashes stay.

use super::fixture::{ConformanceFixture, WORKER, done, refused};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::actor::Actor;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::hash::Hash;
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::{Event, EventRecord, RemovedExecution};
use rutter_core::port::query::{EntryFilter, EntrySummary, ExecutionFilter, Pagination};
use rutter_core::port::upkeep::{CleanedPart, CleanedTotals, CleaningRequest, ErasureRequest};
use rutter_core::time::Timestamp;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    ended_executions_are_removed,
    what_was_touched_since_is_retained,
    open_executions_are_never_removed,
    only_the_wanted_statuses_are_removed,
    executions_with_commands_are_retained,
    what_a_living_worker_holds_is_retained,
    a_dry_run_says_the_same_and_changes_nothing,
    cleaning_twice_finds_nothing,
    a_removed_execution_is_gone_for_every_reader,
    entries_of_a_removed_execution_are_not_listed,
    removing_is_recorded_in_the_ledgers_own_journal,
    totals_forget_removed_executions,
    another_tenants_executions_are_retained,
    payloads_alone_can_be_cleaned,
    many_executions_are_removed_at_once,
];

fn cleaning(stage: &ConformanceFixture<'_>, what: CleanedPart) -> CleaningRequest {
    CleaningRequest {
        tenant: stage.tenant(),
        statuses: Vec::new(),
        untouched_since: Timestamp(100),
        what,
        dry_run: false,
        actor: Actor::person("operator"),
        at: Timestamp(200),
        reason: "a year has passed".into(),
    }
}

fn executions(stage: &ConformanceFixture<'_>) -> Vec<String> {
    let listing = done(stage.store.executions(&stage.tenant(), ExecutionFilter::default(), Pagination::first(100)));
    listing.items.iter().map(|execution| execution.id.to_string()).collect()
}

fn entries(stage: &ConformanceFixture<'_>, filter: EntryFilter) -> Vec<EntrySummary> {
    done(stage.store.entries(&stage.tenant(), filter, Pagination::first(1_000))).items
}

fn of(execution: &str) -> EntryFilter {
    EntryFilter { execution: Some(ExecutionId::new(execution)), ..EntryFilter::default() }
}

/// Two entries: `{"items":[1,2]}` and `{"about":"the end"}`.
const ONE: CleanedTotals = CleanedTotals { executions: 1, entries: 2, payloads: 2, bytes: 34 };

fn ended_executions_are_removed(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.ended("exec_1", ExecutionStatus::Completed, 50);
    assert_eq!(done(store.clean(cleaning(&stage, CleanedPart::Executions))), ONE);
    assert!(executions(&stage).is_empty());
}

fn what_was_touched_since_is_retained(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for at in [99, 100, 101] {
        stage.ended(&format!("exec_{at}"), ExecutionStatus::Completed, at);
    }
    assert_eq!(done(store.clean(cleaning(&stage, CleanedPart::Executions))).executions, 1);
    assert_eq!(executions(&stage), ["exec_101", "exec_100"]);
}

fn open_executions_are_never_removed(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for status in ExecutionStatus::ALL.into_iter().filter(|status| !status.has_ended()) {
        stage.ended(&format!("exec_{}", status.as_str()), status, 1);
        let statuses = vec![ExecutionStatus::Completed, status];
        let open = CleaningRequest { statuses, ..cleaning(&stage, CleanedPart::Executions) };
        refused(store.clean(open), "store.invalid");
    }
    assert_eq!(done(store.clean(cleaning(&stage, CleanedPart::Executions))), CleanedTotals::default());
    assert_eq!(executions(&stage).len(), 6);
}

fn only_the_wanted_statuses_are_removed(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for status in ExecutionStatus::ALL {
        stage.ended(&format!("exec_{}", status.as_str()), status, 1);
    }
    let statuses = vec![ExecutionStatus::Completed, ExecutionStatus::Cancelled];
    let some = CleaningRequest { statuses, ..cleaning(&stage, CleanedPart::Executions) };
    assert_eq!(done(store.clean(some)).executions, 2);
    let left = executions(&stage);
    assert_eq!(left.len(), 9);
    assert!(!left.contains(&"exec_completed".into()) && !left.contains(&"exec_cancelled".into()));
}

fn executions_with_commands_are_retained(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.ended("exec_1", ExecutionStatus::Completed, 1);
    let command = stage.enqueue("exec_1", 2);
    for what in [CleanedPart::Payloads, CleanedPart::Executions] {
        assert_eq!(done(store.clean(cleaning(&stage, what))), CleanedTotals::default());
    }
    stage.settle(&pen, &[command]);
    assert_eq!(done(store.clean(cleaning(&stage, CleanedPart::Executions))), ONE);
}

fn what_a_living_worker_holds_is_retained(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.ended("exec_1", ExecutionStatus::Completed, 1);
    stage.renew(WORKER, 200);
    assert_eq!(done(store.clean(cleaning(&stage, CleanedPart::Executions))), CleanedTotals::default());
    let later = CleaningRequest { at: Timestamp(201), ..cleaning(&stage, CleanedPart::Executions) };
    assert_eq!(done(store.clean(later)), ONE);
}

fn a_dry_run_says_the_same_and_changes_nothing(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for name in ["exec_1", "exec_2"] {
        stage.ended(name, ExecutionStatus::Failed, 1);
    }
    for what in [CleanedPart::Payloads, CleanedPart::Executions] {
        let before = (executions(&stage), entries(&stage, EntryFilter::default()), done(store.totals(&stage.tenant())));
        let cleaned_totals = done(store.clean(CleaningRequest { dry_run: true, ..cleaning(&stage, what) }));
        let after = (executions(&stage), entries(&stage, EntryFilter::default()), done(store.totals(&stage.tenant())));
        assert_eq!(before, after);
        assert_eq!(done(store.clean(cleaning(&stage, what))), cleaned_totals);
        assert_eq!(cleaned_totals.executions, 2);
    }
}

fn cleaning_twice_finds_nothing(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.ended("exec_1", ExecutionStatus::Completed, 1);
    for what in [CleanedPart::Payloads, CleanedPart::Executions] {
        assert_eq!(done(store.clean(cleaning(&stage, what))).executions, 1);
        let before = entries(&stage, EntryFilter::default());
        assert_eq!(done(store.clean(cleaning(&stage, what))), CleanedTotals::default());
        assert_eq!(entries(&stage, EntryFilter::default()), before);
    }
}

fn a_removed_execution_is_gone_for_every_reader(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    pen.row.status = ExecutionStatus::Completed;
    pen.row.due_at = Some(Timestamp(0));
    stage.write(&mut pen, "the end");
    done(store.clean(cleaning(&stage, CleanedPart::Executions)));
    assert!(done(store.execution(&pen.identity)).is_none());
    refused(store.load(&pen.identity), "store.not_found");
    refused(store.append(pen.append(pen.head(), Vec::new())), "store.not_found");
    refused(store.release(pen.lease.clone()), "store.not_found");
    refused(store.enqueue(stage.new_command("exec_1", 1)), "store.not_found");
    let (identity, actor) = (pen.identity.clone(), Actor::person("operator"));
    let erasure = ErasureRequest { identity, entries: None, actor, at: Timestamp(0), reason: String::new() };
    refused(store.erase(erasure), "store.not_found");
    assert!(stage.claim(WORKER, 1_000, 10).is_empty());
}

fn entries_of_a_removed_execution_are_not_listed(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.ended("exec_1", ExecutionStatus::Completed, 1);
    stage.opened("exec_2");
    let before = entries(&stage, EntryFilter::default());
    done(store.clean(cleaning(&stage, CleanedPart::Executions)));
    assert!(entries(&stage, of("exec_1")).is_empty());
    let after = entries(&stage, EntryFilter::default());
    let left: Vec<_> = before.into_iter().filter(|entry| entry.execution.as_str() != "exec_1").collect();
    assert_eq!(after[1..], left, "the first records the removal");
    let says = Some("end".to_owned());
    let filter = EntryFilter { text: says.clone(), ..EntryFilter::default() };
    assert!(entries(&stage, filter).is_empty());
    let filter = ExecutionFilter { text: says, ..ExecutionFilter::default() };
    assert!(done(store.executions(&stage.tenant(), filter, Pagination::first(10))).items.is_empty());
}

fn removals(stage: &ConformanceFixture<'_>) -> Vec<(EventRecord, Vec<RemovedExecution>)> {
    let records = entries(stage, of("ledger")).into_iter().map(|entry| entry.record);
    let removals = records.filter_map(|record| match &record.event {
        Event::ExecutionsRemoved { executions, .. } => Some((record.clone(), executions.clone())),
        _ => None,
    });
    removals.collect()
}

fn removing_is_recorded_in_the_ledgers_own_journal(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.ended("exec_1", ExecutionStatus::Completed, 1);
    done(store.clean(cleaning(&stage, CleanedPart::Executions)));
    let (execution, head) = (pen.identity.execution.clone(), pen.head().hash);
    let executions = vec![RemovedExecution { execution, entries: 2, head }];
    let event = Event::ExecutionsRemoved { executions: executions.clone(), reason: "a year has passed".into() };
    let record = EventRecord { at: Timestamp(200), actor: Actor::person("operator"), event };
    assert_eq!(removals(&stage), [(record, executions)]);
}

fn totals_forget_removed_executions(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.ended("exec_1", ExecutionStatus::Completed, 1);
    stage.ended("exec_2", ExecutionStatus::Failed, 1);
    let statuses = vec![ExecutionStatus::Completed];
    done(store.clean(CleaningRequest { statuses, ..cleaning(&stage, CleanedPart::Executions) }));
    let totals = done(store.totals(&stage.tenant()));
    assert_eq!(totals.executions.into_iter().collect::<Vec<_>>(), [("failed", 1)]);
}

fn another_tenants_executions_are_retained(store: &dyn ConformingStore) {
    let (mine, theirs) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "elsewhere"));
    theirs.ended("exec_1", ExecutionStatus::Completed, 1);
    assert_eq!(done(store.clean(cleaning(&mine, CleanedPart::Executions))), CleanedTotals::default());
    assert_eq!(executions(&theirs), ["exec_1"]);
}

fn payloads_alone_can_be_cleaned(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.ended("exec_1", ExecutionStatus::Completed, 1);
    let cleaned = done(store.clean(cleaning(&stage, CleanedPart::Payloads)));
    assert_eq!(cleaned, CleanedTotals { entries: 0, ..ONE }, "no entry was removed");
    let loaded = done(store.load(&pen.identity));
    assert_eq!((loaded.head, loaded.records.len()), (pen.head(), 2));
    let own = entries(&stage, of("ledger")).pop().expect("the cleaning is journaled").record;
    let (execution, reason) = (pen.identity.execution, "a year has passed".to_owned());
    assert_eq!(own.event, Event::PayloadsErased { execution, payloads: 2, reason });
}

/// More than any batch, so that errors at batch boundaries are found.
fn many_executions_are_removed_at_once(store: &dyn ConformingStore) {
    const MANY: u64 = 250;
    let stage = ConformanceFixture::new(store);
    let mut heads: Vec<(String, Hash)> = Vec::new();
    for at in 0..MANY {
        let name = format!("exec_{at}");
        let pen = stage.ended(&name, ExecutionStatus::Completed, 1);
        heads.push((name, pen.head().hash));
    }
    let cleaned_totals =
        done(store.clean(CleaningRequest { dry_run: true, ..cleaning(&stage, CleanedPart::Executions) }));
    assert_eq!(done(store.clean(cleaning(&stage, CleanedPart::Executions))), cleaned_totals);
    let CleanedTotals { executions: count, entries, payloads, bytes } = ONE;
    let all =
        CleanedTotals { executions: MANY, entries: MANY * entries, payloads: MANY * payloads, bytes: MANY * bytes };
    assert_eq!((cleaned_totals, count), (all, 1));
    assert!(executions(&stage).is_empty());
    let removed = removals(&stage).into_iter().flat_map(|(_, removed)| removed);
    let mut removed: Vec<_> = removed.map(|gone| (gone.execution.to_string(), gone.head)).collect();
    removed.sort();
    heads.sort();
    assert_eq!(removed, heads);
}
