//! Saving plans and finding them again.

use super::fixture::{ConformanceFixture, PLAN, done, plan, plan_with, refused};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::actor::Actor;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::Event;
use rutter_core::plan::Plan;
use rutter_core::port::Error;
use rutter_core::port::journal::{
    NewRevision, PlanState, PlanStateChange, PlanStateOutcome, RevisionScope, SaveOutcome,
};
use rutter_core::port::query::{EntryFilter, Pagination, PlanFilter};
use rutter_core::time::Timestamp;
use serde_json::json;
use std::sync::Arc;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    revisions_are_counted_from_one,
    the_newest_plan_once_more_is_no_revision,
    an_older_plan_again_is_a_new_revision,
    an_expectation_that_holds_is_accepted,
    an_expectation_that_does_not_hold_is_a_conflict,
    a_save_repeated_after_its_answer_was_lost_is_no_conflict,
    every_revision_can_be_read_back,
    a_plan_is_rebuilt_with_the_tools_it_pins,
    what_was_never_saved_is_not_there,
    plans_of_tenants_are_separate,
    saving_is_recorded_in_the_ledgers_own_journal,
    the_ledgers_own_journal_is_a_chain,
    plans_are_listed_newest_first_each_once,
    a_plan_is_found_by_name_tag_and_words,
    a_plan_is_found_by_its_newest_revision_only,
    a_plan_is_found_by_its_tools,
    an_archived_plan_is_listed_only_on_request,
    a_plan_in_use_is_not_deleted,
    a_deleted_plan_is_gone_and_its_name_is_free,
    the_text_of_a_deleted_plan_stays_while_a_journal_needs_it,
    changes_of_plans_are_on_record,
    a_revision_for_one_execution_is_nobody_elses,
    a_deleted_plan_still_takes_revisions_for_its_executions,
    a_plan_that_is_put_away_is_not_started,
];

fn revisions_are_counted_from_one(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    assert_eq!(stage.save(PLAN, &plan("a")), SaveOutcome::New { revision: 1 });
    assert_eq!(stage.save(PLAN, &plan("b")), SaveOutcome::New { revision: 2 });
    assert_eq!(stage.save("plan_2", &plan("b")), SaveOutcome::New { revision: 1 });
}

fn the_newest_plan_once_more_is_no_revision(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save(PLAN, &plan("a"));
    stage.save(PLAN, &plan("b"));
    assert_eq!(stage.save(PLAN, &plan("b")), SaveOutcome::Already { revision: 2 });
    assert_eq!(done(store.totals(&stage.tenant())).entries, 2);
}

fn an_older_plan_again_is_a_new_revision(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save(PLAN, &plan("a"));
    stage.save(PLAN, &plan("b"));
    assert_eq!(stage.save(PLAN, &plan("a")), SaveOutcome::New { revision: 3 });
}

fn an_expectation_that_holds_is_accepted(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let first = NewRevision { expected: Some(0), ..stage.new_plan(PLAN, &plan("a"), 1) };
    assert_eq!(done(store.save(first)), SaveOutcome::New { revision: 1 });
    let second = NewRevision { expected: Some(1), ..stage.new_plan(PLAN, &plan("b"), 2) };
    assert_eq!(done(store.save(second)), SaveOutcome::New { revision: 2 });
}

fn an_expectation_that_does_not_hold_is_a_conflict(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let first = NewRevision { expected: Some(1), ..stage.new_plan(PLAN, &plan("a"), 1) };
    refused(store.save(first), "store.conflict");
    stage.save(PLAN, &plan("a"));
    let late = NewRevision { expected: Some(0), ..stage.new_plan(PLAN, &plan("b"), 1) };
    let error = refused(store.save(late), "store.conflict");
    assert!(matches!(error, Error::Conflict { expected: 0, found: 1, .. }), "{error:?}");
    assert_eq!(done(store.totals(&stage.tenant())).entries, 1);
}

fn a_save_repeated_after_its_answer_was_lost_is_no_conflict(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save(PLAN, &plan("a"));
    let save = || NewRevision { expected: Some(1), ..stage.new_plan(PLAN, &plan("b"), 1) };
    assert_eq!(done(store.save(save())), SaveOutcome::New { revision: 2 });
    assert_eq!(done(store.save(save())), SaveOutcome::Already { revision: 2 });
}

fn every_revision_can_be_read_back(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let plans = [plan("a"), plan_with("b", json!({ "tags": ["x", "y"], "description": "more" }))];
    for (at, plan) in plans.iter().enumerate() {
        let saved = NewRevision { actor: Actor::person("operator"), ..stage.new_plan(PLAN, plan, at as i64) };
        done(store.save(saved));
    }
    for (revision, expected) in [(Some(1), 0), (Some(2), 1), (None, 1)] {
        let found = done(store.plan(&stage.tenant(), &PlanId::new(PLAN), revision)).expect("it was saved");
        let plan = &plans[expected];
        assert_eq!((found.plan.hash, &found.plan.source), (plan.hash, &plan.source));
        let summary = found.summary;
        assert_eq!((summary.id, summary.revision), (PlanId::new(PLAN), expected as u32 + 1));
        assert_eq!((summary.hash, summary.name, summary.goal), (plan.hash, plan.name.clone(), plan.goal.clone()));
        assert_eq!((summary.tags, summary.steps), (plan.about.tags.clone(), 1));
        assert_eq!(summary.actor, Actor::person("operator"));
        assert_eq!(summary.saved_at, Timestamp(expected as i64));
    }
}

fn a_plan_is_rebuilt_with_the_tools_it_pins(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let plan = plan("a");
    stage.save(PLAN, &plan);
    let found = done(store.plan(&stage.tenant(), &PlanId::new(PLAN), None)).expect("it was saved").plan;
    assert!(!found.tools.is_empty());
    assert_eq!(found.tools, plan.tools);
}

fn what_was_never_saved_is_not_there(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let find = |id: &str, revision| done(store.plan(&stage.tenant(), &PlanId::new(id), revision));
    assert!(find(PLAN, None).is_none());
    stage.save(PLAN, &plan("a"));
    assert!(find(PLAN, Some(0)).is_none());
    assert!(find(PLAN, Some(2)).is_none());
    assert!(find("plan_2", None).is_none());
}

fn plans_of_tenants_are_separate(store: &dyn ConformingStore) {
    let (mine, theirs) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "elsewhere"));
    assert_eq!(mine.save(PLAN, &plan("a")), SaveOutcome::New { revision: 1 });
    assert!(done(store.plan(&theirs.tenant(), &PlanId::new(PLAN), None)).is_none());
    assert_eq!(theirs.save(PLAN, &plan("a")), SaveOutcome::New { revision: 1 });
    assert_eq!(theirs.save(PLAN, &plan("b")), SaveOutcome::New { revision: 2 });
    assert_eq!(mine.save(PLAN, &plan("c")), SaveOutcome::New { revision: 2 });
    assert_eq!(done(store.totals(&mine.tenant())).plans, 1);
}

fn own_journal(stage: &ConformanceFixture<'_>) -> Vec<rutter_core::port::query::EntrySummary> {
    let filter = EntryFilter { execution: Some(ExecutionId::new("ledger")), ..EntryFilter::default() };
    done(stage.store.entries(&stage.tenant(), filter, Pagination::first(100))).items
}

fn saving_is_recorded_in_the_ledgers_own_journal(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (a, b) = (plan("a"), plan("b"));
    done(store.save(stage.new_plan(PLAN, &a, 5)));
    done(store.save(stage.new_plan(PLAN, &b, 6)));
    let entries = own_journal(&stage);
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2]);
    let record = entries[1].record.clone();
    assert_eq!((record.at, record.actor), (Timestamp(6), Actor::agent("author")));
    let (id, name) = (PlanId::new(PLAN), "b".to_owned());
    assert_eq!(record.event, Event::PlanSaved { id, revision: 2, plan: b.hash, name });
    assert!(done(store.execution(&stage.identity("ledger"))).is_none(), "it is not an execution");
}

/// Sealing the same records again gives the same hashes: they depend on nothing but the records.
fn the_ledgers_own_journal_is_a_chain(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for name in ["a", "b", "c"] {
        stage.save(PLAN, &plan(name));
    }
    let mut chain = HashChain::new(stage.tenant(), ExecutionId::new("ledger"));
    for found in own_journal(&stage) {
        let sealed = chain.seal(&found.record, &mut || unreachable!("there are no payloads"));
        assert_eq!(sealed.expect("there are no payloads").0.hash, found.hash);
    }
    assert_eq!(chain.head().seq, 3);
}

fn names(stage: &ConformanceFixture<'_>, filter: PlanFilter) -> Vec<String> {
    let listing = done(stage.store.plans(&stage.tenant(), filter, Pagination::first(100)));
    assert_eq!(listing.next, None);
    listing.items.into_iter().map(|plan| format!("{} {} {}", plan.id, plan.revision, plan.name)).collect()
}

fn plans_are_listed_newest_first_each_once(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for (at, id, name) in [(1, "plan_1", "a"), (2, "plan_2", "b"), (3, "plan_1", "c")] {
        done(store.save(stage.new_plan(id, &plan(name), at)));
    }
    assert_eq!(names(&stage, PlanFilter::default()), ["plan_1 2 c", "plan_2 1 b"]);
    assert_eq!(done(store.totals(&stage.tenant())).plans, 2);
}

fn a_plan_is_found_by_name_tag_and_words(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save("plan_1", &plan_with("ship-order", json!({ "tags": ["orders"], "goal": "send the parcel" })));
    stage.save("plan_2", &plan_with("refund", json!({ "tags": ["money", "old"], "description": "Pay BACK" })));
    let named = |name: &str| names(&stage, PlanFilter { name: Some(name.into()), ..PlanFilter::default() });
    assert_eq!(named("refund"), ["plan_2 1 refund"]);
    assert!(named("refun").is_empty() && named("REFUND").is_empty());
    let tagged = |tag: &str| names(&stage, PlanFilter { tag: Some(tag.into()), ..PlanFilter::default() });
    assert_eq!(tagged("old"), ["plan_2 1 refund"]);
    assert!(tagged("mon").is_empty());
    let says = |text: &str| names(&stage, PlanFilter { text: Some(text.into()), ..PlanFilter::default() });
    for (text, found) in [
        ("parcel", "plan_1 1 ship-order"),
        ("PARCEL send", "plan_1 1 ship-order"),
        ("order ship", "plan_1 1 ship-order"),
        ("back", "plan_2 1 refund"),
        ("money", "plan_2 1 refund"),
        ("refund \"pay", "plan_2 1 refund"),
        ("parc SEN", "plan_1 1 ship-order"),
        ("ship-ord", "plan_1 1 ship-order"),
        ("rder", "plan_1 1 ship-order"),
        ("fund", "plan_2 1 refund"),
    ] {
        assert_eq!(says(text), [found], "{text}");
    }
    for text in ["arcel", "parcel back", "nothing"] {
        assert!(says(text).is_empty(), "{text}");
    }
}

fn a_plan_is_found_by_its_newest_revision_only(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save("plan_1", &plan_with("first", json!({ "tags": ["old"] })));
    stage.save("plan_1", &plan_with("second", json!({ "tags": ["new"] })));
    let says = |text: &str| names(&stage, PlanFilter { text: Some(text.into()), ..PlanFilter::default() });
    let tagged = |tag: &str| names(&stage, PlanFilter { tag: Some(tag.into()), ..PlanFilter::default() });
    assert!(says("first").is_empty() && tagged("old").is_empty());
    assert_eq!((says("second"), tagged("new")), (vec!["plan_1 2 second".into()], vec!["plan_1 2 second".into()]));
}

fn a_plan_is_found_by_its_tools(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let plan = plan("a");
    stage.save("plan_1", &plan);
    let tool = plan.tools.keys().next().expect("it calls a tool").to_string();
    let filter = PlanFilter { text: Some(tool), ..PlanFilter::default() };
    assert_eq!(names(&stage, filter), ["plan_1 1 a"]);
}

fn change(stage: &ConformanceFixture<'_>, id: &str, to: PlanState) -> PlanStateChange {
    let (tenant, id, actor, at) = (stage.tenant(), PlanId::new(id), Actor::person("operator"), Timestamp(9));
    PlanStateChange { tenant, id, to, actor, at, reason: "tidying up".into() }
}

fn an_archived_plan_is_listed_only_on_request(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save("plan_1", &plan_with("a", json!({ "tags": ["t"] })));
    stage.save("plan_2", &plan_with("b", json!({ "tags": ["t"] })));
    let outcome = done(store.change_plan(change(&stage, "plan_1", PlanState::Archived)));
    assert_eq!(outcome, PlanStateOutcome { is_new: true, executions: 0 });
    let again = done(store.change_plan(change(&stage, "plan_1", PlanState::Archived)));
    assert_eq!(again, PlanStateOutcome { is_new: false, executions: 0 });
    for filter in [
        PlanFilter::default(),
        PlanFilter { tag: Some("t".into()), ..PlanFilter::default() },
        PlanFilter { tag: Some("t".into()), text: Some("t".into()), ..PlanFilter::default() },
    ] {
        assert_eq!(names(&stage, filter.clone()), ["plan_2 1 b"], "{filter:?}");
        assert_eq!(names(&stage, PlanFilter { archived: true, ..filter }), ["plan_1 1 a"]);
    }
    let named = PlanFilter { name: Some("a".into()), ..PlanFilter::default() };
    assert!(names(&stage, named.clone()).is_empty());
    assert_eq!(names(&stage, PlanFilter { archived: true, ..named.clone() }), ["plan_1 1 a"]);
    let found = done(store.plan(&stage.tenant(), &PlanId::new("plan_1"), None)).expect("it can be read");
    assert!(found.summary.is_archived);
    done(store.change_plan(change(&stage, "plan_1", PlanState::Active)));
    assert_eq!(names(&stage, named), ["plan_1 1 a"]);
}

fn a_plan_in_use_is_not_deleted(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    let error = refused(store.change_plan(change(&stage, PLAN, PlanState::Deleted)), "store.in_use");
    assert!(matches!(error, Error::InUse { executions: 1, .. }), "{error:?}");
    assert!(done(store.plan(&stage.tenant(), &PlanId::new(PLAN), None)).is_some());
    done(store.change_plan(change(&stage, PLAN, PlanState::Archived)));
}

fn a_deleted_plan_is_gone_and_its_name_is_free(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save("plan_1", &plan_with("a", json!({ "tags": ["t"] })));
    done(store.change_plan(change(&stage, "plan_1", PlanState::Deleted)));
    assert!(done(store.plan(&stage.tenant(), &PlanId::new("plan_1"), None)).is_none());
    for archived in [false, true] {
        assert!(names(&stage, PlanFilter { archived, ..PlanFilter::default() }).is_empty());
    }
    assert_eq!(done(store.totals(&stage.tenant())).plans, 0);
    for to in [PlanState::Deleted, PlanState::Archived, PlanState::Active] {
        refused(store.change_plan(change(&stage, "plan_1", to)), "store.not_found");
    }
    assert_eq!(stage.save("plan_1", &plan("a")), SaveOutcome::New { revision: 1 });
}

fn the_text_of_a_deleted_plan_stays_while_a_journal_needs_it(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.ended("exec_1", ExecutionStatus::Completed, 5);
    let outcome = done(store.change_plan(change(&stage, PLAN, PlanState::Deleted)));
    assert_eq!(outcome, PlanStateOutcome { is_new: true, executions: 1 });
    assert!(done(store.plan(&stage.tenant(), &PlanId::new(PLAN), None)).is_none());
    assert!(!done(store.load(&pen.identity)).records.is_empty(), "its journal can be read");
    refused(store.save(stage.new_plan(PLAN, &plan("b"), 9)), "store.not_found");
}

/// A revision that a replan of one execution made, which a person may yet refuse.
fn replanned(stage: &ConformanceFixture<'_>, plan: &Arc<Plan>) -> SaveOutcome {
    let new = NewRevision { scope: RevisionScope::Execution, ..stage.new_plan(PLAN, plan, 7) };
    done(stage.store.save(new))
}

fn a_revision_for_one_execution_is_nobody_elses(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let new = NewRevision { scope: RevisionScope::Execution, ..stage.new_plan(PLAN, &plan("a"), 1) };
    refused(store.save(new), "store.not_found");
    let pen = stage.pen("exec_1");
    stage.open(&pen);
    let theirs = plan_with("theirs", json!({ "tags": ["odd"], "goal": "elsewhere" }));
    assert_eq!(replanned(&stage, &theirs), SaveOutcome::New { revision: 2 });
    assert_eq!(replanned(&stage, &theirs), SaveOutcome::Already { revision: 2 });
    assert_eq!(names(&stage, PlanFilter::default()), [format!("{PLAN} 1 simple")]);
    for filter in [
        PlanFilter { name: Some("theirs".into()), ..PlanFilter::default() },
        PlanFilter { tag: Some("odd".into()), ..PlanFilter::default() },
        PlanFilter { text: Some("elsewhere".into()), ..PlanFilter::default() },
    ] {
        assert!(names(&stage, filter.clone()).is_empty(), "{filter:?}");
    }
    let read = |revision| done(store.plan(&stage.tenant(), &PlanId::new(PLAN), revision)).expect("it was saved");
    assert_eq!((read(None).summary.revision, read(None).summary.is_for_execution), (1, false));
    assert_eq!((read(Some(2)).plan.hash, read(Some(2)).summary.is_for_execution), (theirs.hash, true));
    let of_execution = done(store.plan_of(&pen.identity, 2)).expect("it was saved");
    assert_eq!(of_execution.plan.hash, theirs.hash);
    // The next revision for everybody has the next number; the author expects the newest of those for everybody.
    let next = NewRevision { expected: Some(1), ..stage.new_plan(PLAN, &theirs, 8) };
    assert_eq!(done(store.save(next)), SaveOutcome::New { revision: 3 });
    assert_eq!(names(&stage, PlanFilter::default()), [format!("{PLAN} 3 theirs")]);
}

fn a_deleted_plan_still_takes_revisions_for_its_executions(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.ended("exec_1", ExecutionStatus::Failed, 5);
    done(store.change_plan(change(&stage, PLAN, PlanState::Deleted)));
    let theirs = plan("theirs");
    assert_eq!(replanned(&stage, &theirs), SaveOutcome::New { revision: 2 });
    assert_eq!(done(store.plan_of(&pen.identity, 2)).expect("it was saved").plan.hash, theirs.hash);
    assert!(done(store.plan(&stage.tenant(), &PlanId::new(PLAN), Some(2))).is_none(), "the plan itself stays deleted");
    assert!(names(&stage, PlanFilter::default()).is_empty());
}

/// Checked where the execution is written: a start must not win over an archiving that is written meanwhile.
fn a_plan_that_is_put_away_is_not_started(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.pen("exec_1");
    done(store.change_plan(change(&stage, PLAN, PlanState::Archived)));
    refused(store.open(pen.opening()), "store.not_found");
    done(store.change_plan(change(&stage, PLAN, PlanState::Active)));
    stage.open(&pen);
}

fn changes_of_plans_are_on_record(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save(PLAN, &plan("a"));
    done(store.change_plan(change(&stage, PLAN, PlanState::Archived)));
    done(store.change_plan(change(&stage, PLAN, PlanState::Deleted)));
    let entries = own_journal(&stage);
    let said: Vec<Event> = entries.iter().skip(1).map(|entry| entry.record.event.clone()).collect();
    let event = |change: &str| Event::SettingChanged { setting: "plan".into(), id: PLAN.into(), change: change.into() };
    assert_eq!(said, [event("archived \"a\": tidying up"), event("deleted \"a\": tidying up")]);
    assert_eq!(entries[1].record.actor, Actor::person("operator"));
}
