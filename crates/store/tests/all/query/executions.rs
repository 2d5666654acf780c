//! Finding executions.

use crate::query::fixture::{PLAN, QueryFixture, acme, plan};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::journal::event::Event;
use rutter_core::port::Error;
use rutter_core::port::query::{ExecutionFilter, Pagination, StoreQuery, StoreTotals, TimeRange};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use serde_json::json;

fn any() -> ExecutionFilter {
    ExecutionFilter::default()
}

#[test]
fn each_filter_finds_what_it_names_and_all_of_them_together_too() {
    let fixture = QueryFixture::new();
    let tagged = plan("ship", json!({"tags": ["sea", "slow"], "goal": "send the parcel"}));
    fixture.save("acme", "plan_2", &tagged, 2);
    fixture.open("exec_1", 10);
    let mut pen = fixture.open_of("acme", "plan_2", &tagged, "exec_2", 20);
    pen.row.questions = 1;
    pen.row.status = ExecutionStatus::Waiting;
    pen.note("what now", json!(1));
    fixture.ended("exec_3", ExecutionStatus::Failed, 30);
    fixture.open_of("acme", "plan_2", &tagged, "exec_4", 40);

    assert_eq!(fixture.executions(any()), ["exec_4", "exec_3", "exec_2", "exec_1"]);
    let plan = Some(PlanId::new("plan_2"));
    assert_eq!(fixture.executions(ExecutionFilter { plan: plan.clone(), ..any() }), ["exec_4", "exec_2"]);
    let tag = Some("sea".to_owned());
    assert_eq!(fixture.executions(ExecutionFilter { tag: tag.clone(), ..any() }), ["exec_4", "exec_2"]);
    assert_eq!(fixture.executions(ExecutionFilter { asking: true, ..any() }), ["exec_2"]);
    let statuses = vec![ExecutionStatus::Failed, ExecutionStatus::Waiting, ExecutionStatus::Failed];
    let filter = ExecutionFilter { statuses: statuses.clone(), ..any() };
    assert_eq!(fixture.executions(filter), ["exec_3", "exec_2"]);
    let opened = TimeRange { from: Some(Timestamp(20)), until: Some(Timestamp(40)) };
    assert_eq!(fixture.executions(ExecutionFilter { opened, ..any() }), ["exec_3", "exec_2"]);
    let text = Some("parcel".to_owned());
    assert_eq!(fixture.executions(ExecutionFilter { text: text.clone(), ..any() }), ["exec_4", "exec_2"]);

    let all = ExecutionFilter { plan, tag, statuses, asking: true, opened, text };
    assert_eq!(fixture.executions(all.clone()), ["exec_2"]);
    for nothing in [
        ExecutionFilter { plan: Some(PlanId::new(PLAN)), ..all.clone() },
        ExecutionFilter { tag: Some("land".into()), ..all.clone() },
        ExecutionFilter { statuses: vec![ExecutionStatus::Failed], ..all.clone() },
        ExecutionFilter { opened: TimeRange { from: Some(Timestamp(21)), until: None }, ..all.clone() },
        ExecutionFilter { text: Some("letter".into()), ..all },
    ] {
        assert!(fixture.executions(nothing.clone()).is_empty(), "{nothing:?}");
    }
}

#[test]
fn unknown_names_find_nothing() {
    let fixture = QueryFixture::new();
    fixture.open("exec_1", 1);
    for nothing in [
        ExecutionFilter { plan: Some(PlanId::new("plan_9")), ..any() },
        ExecutionFilter { tag: Some("none".into()), ..any() },
        ExecutionFilter { text: Some("none".into()), ..any() },
    ] {
        assert!(fixture.executions(nothing).is_empty());
    }
    let listing = wait(fixture.store.executions(&TenantId::new("nobody"), any(), Pagination::first(1))).unwrap();
    assert_eq!((listing.items, listing.next), (vec![], None));
}

#[test]
fn words_are_found_in_the_plan_or_in_one_entry() {
    let fixture = QueryFixture::new();
    let mut first = fixture.open("exec_1", 1);
    first.note("turn back, said the captain", json!(1));
    first.note("said it again", json!(1));
    fixture.open("exec_2", 2).note("dinner, said the cook", json!(1));
    let says = |text: &str| fixture.executions(ExecutionFilter { text: Some(text.into()), ..any() });
    assert_eq!(says("said"), ["exec_2", "exec_1"]);
    assert_eq!(says("Captain BACK"), ["exec_1"]);
    assert_eq!(says("order"), ["exec_2", "exec_1"]);
    assert!(says("captain again").is_empty(), "not in one entry");
    assert!(says("capt").is_empty());
}

#[test]
fn one_execution_is_summed_up_as_it_is_listed() {
    let fixture = QueryFixture::new();
    let mut pen = fixture.open("exec_1", 7);
    pen.note("more", json!(1));
    let found = wait(fixture.store.execution(&pen.identity)).unwrap().unwrap();
    assert_eq!((found.entries, found.pending_commands, found.name.as_str()), (2, 0, "order"));
    assert_eq!((found.plan.as_str(), &found.row), (PLAN, &pen.row));
    let listed = wait(fixture.store.executions(&acme(), any(), Pagination::first(1))).unwrap();
    assert_eq!(listed.items, [found]);
}

#[test]
fn the_name_is_that_of_the_revision_that_is_carried_out() {
    let fixture = QueryFixture::new();
    let pen = fixture.open("exec_1", 7);
    fixture.save("acme", PLAN, &plan("renamed", json!({})), 8);
    let found = wait(fixture.store.execution(&pen.identity)).unwrap().unwrap();
    assert_eq!(found.name, "order");
}

#[test]
fn another_tenant_sees_none_of_it() {
    let fixture = QueryFixture::new();
    let tagged = plan("mine", json!({"tags": ["sea"]}));
    fixture.save("acme", "plan_2", &tagged, 2);
    fixture.save("other", "plan_3", &tagged, 2);
    let mut pen = fixture.open_of("acme", "plan_2", &tagged, "exec_1", 1);
    pen.row.questions = 1;
    pen.note("secret", json!(1));
    let other = TenantId::new("other");
    for filter in [
        any(),
        ExecutionFilter { plan: Some(PlanId::new("plan_2")), ..any() },
        ExecutionFilter { tag: Some("sea".into()), ..any() },
        ExecutionFilter { statuses: ExecutionStatus::ALL.to_vec(), ..any() },
        ExecutionFilter { asking: true, ..any() },
        ExecutionFilter { text: Some("secret".into()), ..any() },
        ExecutionFilter { text: Some("mine".into()), ..any() },
    ] {
        assert!(!fixture.executions(filter.clone()).is_empty(), "{filter:?}");
        let found = wait(fixture.store.executions(&other, filter.clone(), Pagination::first(10))).unwrap();
        assert!(found.items.is_empty(), "{filter:?}");
    }
    let mut identity = pen.identity.clone();
    identity.tenant = other.clone();
    assert_eq!(wait(fixture.store.execution(&identity)), Ok(None));
    let totals = wait(fixture.store.totals(&other)).unwrap();
    assert_eq!(totals, StoreTotals { plans: 1, entries: 1, ..StoreTotals::default() });
}

#[test]
fn totals_are_kept_by_status() {
    let fixture = QueryFixture::new();
    let mut pen = fixture.open("exec_1", 1);
    fixture.ended("exec_2", ExecutionStatus::Completed, 2);
    pen.row.status = ExecutionStatus::Running;
    pen.write(rutter_core::actor::Actor::rutter(), Event::ExecutionStarted {});
    fixture.save("acme", PLAN, &plan("again", json!({})), 3);
    let totals = wait(fixture.store.totals(&acme())).unwrap();
    let executions = [("completed", 1), ("running", 1)].into_iter().collect();
    assert_eq!(totals, StoreTotals { executions, entries: 6, plans: 1 });
    assert_eq!(wait(fixture.store.totals(&TenantId::new("nobody"))), Ok(StoreTotals::default()));
}

#[test]
fn a_query_that_takes_too_many_steps_is_refused_and_harms_no_other() {
    let fixture = QueryFixture::with(|options| {
        options.query_steps_max = 3_000;
        options.readers = 1;
    });
    for at in 0..200 {
        fixture.open(&format!("exec_{at}"), at);
    }
    let all = wait(fixture.store.executions(&acme(), any(), Pagination::first(1_000)));
    assert_eq!(all.unwrap_err().code(), "store.too_broad");
    assert_eq!(wait(fixture.store.executions(&acme(), any(), Pagination::first(2))).unwrap().items.len(), 2);
    assert_eq!(wait(fixture.store.totals(&acme())).unwrap().entries, 201);
}

#[test]
fn a_page_has_its_limits() {
    let fixture = QueryFixture::new();
    for limit in [0, 1_001] {
        let refused = wait(fixture.store.executions(&acme(), any(), Pagination::first(limit)));
        assert_eq!(refused, Err(Error::Limit { limit: "page_max", max: 1_000, found: limit.into() }));
    }
    assert!(wait(fixture.store.executions(&acme(), any(), Pagination::first(1_000))).is_ok());
}
