//! Finding executions.

use super::fixture::{ConformanceFixture, ConformanceWriter, PLAN, done, plan, plan_with};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::PlanId;
use rutter_core::port::query::{ExecutionFilter, Pagination, TimeRange};
use rutter_core::time::Timestamp;
use serde_json::json;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    executions_are_listed_newest_first,
    executions_of_another_tenant_are_not_listed,
    a_listed_execution_is_the_one_found_by_name,
    executions_are_found_by_plan,
    executions_are_found_by_tag,
    executions_are_found_by_status,
    executions_that_ask_are_found,
    executions_are_found_by_when_they_were_opened,
    executions_are_found_by_words_of_the_plan,
    executions_are_found_by_words_of_their_entries,
    words_must_occur_together,
    every_condition_must_hold,
    an_empty_store_lists_nothing,
    totals_count_by_status,
    totals_count_what_the_lists_show,
];

fn names(stage: &ConformanceFixture<'_>, filter: ExecutionFilter) -> Vec<String> {
    let listing = done(stage.store.executions(&stage.tenant(), filter, Pagination::first(100)));
    assert_eq!(listing.next, None);
    listing.items.into_iter().map(|execution| execution.id.to_string()).collect()
}

fn executions_are_listed_newest_first(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut first = stage.driven("exec_b");
    // By opening time; of those opened at the same time, the last one is the newest.
    for (name, at) in [("exec_d", 9), ("exec_c", 5), ("exec_a", 9)] {
        let pen = ConformanceWriter::new(stage.identity(name), PLAN, &plan("simple"), Timestamp(at));
        stage.open(&pen);
    }
    stage.write(&mut first, "touched last");
    assert_eq!(names(&stage, ExecutionFilter::default()), ["exec_a", "exec_d", "exec_c", "exec_b"]);
}

fn executions_of_another_tenant_are_not_listed(store: &dyn ConformingStore) {
    let (mine, theirs) = (ConformanceFixture::new(store), ConformanceFixture::of(store, "elsewhere"));
    mine.opened("exec_1");
    theirs.opened("exec_2");
    assert_eq!(names(&mine, ExecutionFilter::default()), ["exec_1"]);
    assert_eq!(names(&theirs, ExecutionFilter::default()), ["exec_2"]);
}

fn a_listed_execution_is_the_one_found_by_name(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.write(&mut pen, "more");
    stage.enqueue("exec_1", 3);
    let listed = done(store.executions(&stage.tenant(), ExecutionFilter::default(), Pagination::first(1))).items;
    let found = done(store.execution(&pen.identity)).expect("it is there");
    assert_eq!((found.entries, found.pending_commands), (2, 1));
    assert_eq!(listed, [found]);
}

fn executions_are_found_by_plan(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    stage.save("plan_2", &plan("other"));
    stage.open(&ConformanceWriter::new(stage.identity("exec_2"), "plan_2", &plan("other"), Timestamp(0)));
    let of = |id: &str| names(&stage, ExecutionFilter { plan: Some(PlanId::new(id)), ..Default::default() });
    assert_eq!((of(PLAN), of("plan_2")), (vec!["exec_1".into()], vec!["exec_2".into()]));
    assert!(of("plan_3").is_empty());
}

fn executions_are_found_by_tag(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for (at, tags) in [(1, json!(["old", "both"])), (2, json!(["both"]))] {
        let (id, plan) = (format!("plan_{at}"), plan_with("p", json!({ "tags": tags })));
        stage.save(&id, &plan);
        stage.open(&ConformanceWriter::new(stage.identity(&format!("exec_{at}")), &id, &plan, Timestamp(0)));
    }
    let tagged = |tag: &str| names(&stage, ExecutionFilter { tag: Some(tag.into()), ..Default::default() });
    assert_eq!(tagged("both"), ["exec_2", "exec_1"]);
    assert_eq!(tagged("old"), ["exec_1"]);
    assert!(tagged("ol").is_empty());
}

fn executions_are_found_by_status(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for (at, status) in ExecutionStatus::ALL.into_iter().enumerate() {
        stage.ended(&format!("exec_{at}"), status, 5);
    }
    for (at, status) in ExecutionStatus::ALL.into_iter().enumerate() {
        let filter = ExecutionFilter { statuses: vec![status], ..Default::default() };
        assert_eq!(names(&stage, filter), [format!("exec_{at}")]);
    }
    let filter =
        ExecutionFilter { statuses: vec![ExecutionStatus::ALL[0], ExecutionStatus::ALL[2]], ..Default::default() };
    assert_eq!(names(&stage, filter), ["exec_2", "exec_0"]);
}

fn executions_that_ask_are_found(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    let mut pen = stage.driven("exec_2");
    let asking = || names(&stage, ExecutionFilter { asking: true, ..Default::default() });
    assert!(asking().is_empty());
    pen.row.questions = 1;
    stage.write(&mut pen, "what now?");
    assert_eq!(asking(), ["exec_2"]);
    pen.row.questions = 0;
    stage.write(&mut pen, "never mind");
    assert!(asking().is_empty());
}

fn executions_are_found_by_when_they_were_opened(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save(PLAN, &plan("simple"));
    for at in [10, 20, 30] {
        let name = format!("exec_{at}");
        stage.open(&ConformanceWriter::new(stage.identity(&name), PLAN, &plan("simple"), Timestamp(at)));
    }
    let between = |from: Option<i64>, until: Option<i64>| {
        let opened = TimeRange { from: from.map(Timestamp), until: until.map(Timestamp) };
        names(&stage, ExecutionFilter { opened, ..Default::default() })
    };
    assert_eq!(between(Some(20), None), ["exec_30", "exec_20"]);
    assert_eq!(between(None, Some(20)), ["exec_10"]);
    assert_eq!(between(Some(10), Some(30)), ["exec_20", "exec_10"]);
    assert!(between(Some(30), Some(30)).is_empty());
}

fn says(stage: &ConformanceFixture<'_>, text: &str) -> Vec<String> {
    names(stage, ExecutionFilter { text: Some(text.into()), ..Default::default() })
}

fn executions_are_found_by_words_of_the_plan(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    let fields = json!({ "goal": "Send it", "description": "by sea", "tags": ["parcel"] });
    let shipping = plan_with("shipping", fields);
    stage.save("plan_2", &shipping);
    stage.open(&ConformanceWriter::new(stage.identity("exec_2"), "plan_2", &shipping, Timestamp(0)));
    for text in ["shipping", "SEND", "sea", "parcel", "it, by: sea!", "parcel shipping"] {
        assert_eq!(says(&stage, text), ["exec_2"], "{text}");
    }
    for text in ["ship", "shippings", "sea air"] {
        assert!(says(&stage, text).is_empty(), "{text}");
    }
}

fn executions_are_found_by_words_of_their_entries(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (mut first, mut second) = (stage.driven("exec_1"), stage.driven("exec_2"));
    stage.write(&mut first, "the captain said: turn back");
    stage.write(&mut first, "the captain said it again");
    stage.write(&mut second, "the cook said: dinner");
    assert_eq!(says(&stage, "Captain"), ["exec_1"]);
    assert_eq!(says(&stage, "said"), ["exec_2", "exec_1"]);
    assert_eq!(says(&stage, "back turn"), ["exec_1"]);
    assert!(says(&stage, "mutiny").is_empty());
    let theirs = ConformanceFixture::of(store, "elsewhere");
    theirs.opened("exec_1");
    assert!(says(&theirs, "captain").is_empty());
}

/// All in the plan, or all in one entry: words from different places say little about an execution.
fn words_must_occur_together(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.write(&mut pen, "anchor");
    stage.write(&mut pen, "sail");
    assert_eq!(says(&stage, "anchor"), ["exec_1"]);
    assert!(says(&stage, "anchor sail").is_empty());
    assert!(says(&stage, "simple anchor").is_empty());
}

fn every_condition_must_hold(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for (name, status) in [("exec_1", ExecutionStatus::Failed), ("exec_2", ExecutionStatus::Completed)] {
        stage.ended(name, status, 5);
    }
    let filter = ExecutionFilter {
        plan: Some(PlanId::new(PLAN)),
        statuses: vec![ExecutionStatus::Failed],
        text: Some("end".into()),
        ..Default::default()
    };
    assert_eq!(names(&stage, filter.clone()), ["exec_1"]);
    assert!(names(&stage, ExecutionFilter { asking: true, ..filter }).is_empty());
}

fn an_empty_store_lists_nothing(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    assert!(names(&stage, ExecutionFilter::default()).is_empty());
    assert!(says(&stage, "anything").is_empty());
    assert_eq!(done(store.totals(&stage.tenant())), Default::default());
}

/// A status without executions is not listed.
fn totals_count_by_status(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.opened("exec_2");
    ConformanceFixture::of(store, "elsewhere").opened("exec_1");
    let counts = || done(store.totals(&stage.tenant())).executions.into_iter().collect::<Vec<_>>();
    assert_eq!(counts(), [("pending", 2)]);
    pen.row.status = ExecutionStatus::Running;
    stage.write(&mut pen, "off we go");
    assert_eq!(counts(), [("pending", 1), ("running", 1)]);
    pen.row.status = ExecutionStatus::Completed;
    stage.write(&mut pen, "there");
    assert_eq!(counts(), [("completed", 1), ("pending", 1)]);
}

fn totals_count_what_the_lists_show(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.write(&mut pen, "more");
    stage.save(PLAN, &plan("newer"));
    let totals = done(store.totals(&stage.tenant()));
    assert_eq!((totals.entries, totals.plans), (4, 1), "two revisions, the opening, one more");
    assert!(done(store.ledger_tenants()).contains(&stage.tenant()));
    let listed = done(store.entries(&stage.tenant(), Default::default(), Pagination::first(100))).items;
    assert_eq!(listed.len(), 4);
}
