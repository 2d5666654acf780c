//! Finding executions.

use crate::stage::{PLAN, Stage, acme, plan};
use rutter_core::execution::view::Status;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::journal::event::Event;
use rutter_core::port::Error;
use rutter_core::port::query::{Between, ExecutionFilter, Page, Query, Totals};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use serde_json::json;

fn any() -> ExecutionFilter {
    ExecutionFilter::default()
}

#[test]
fn each_filter_finds_what_it_names_and_all_of_them_together_too() {
    let stage = Stage::new();
    let tagged = plan("ship", json!({"tags": ["sea", "slow"], "goal": "send the parcel"}));
    stage.save("acme", "plan_2", &tagged, 2);
    stage.open("exec_1", 10);
    let mut pen = stage.open_of("acme", "plan_2", &tagged, "exec_2", 20);
    pen.row.questions = 1;
    pen.row.status = Status::Waiting;
    pen.note("what now", json!(1));
    stage.ended("exec_3", Status::Failed, 30);
    stage.open_of("acme", "plan_2", &tagged, "exec_4", 40);

    assert_eq!(stage.executions(any()), ["exec_4", "exec_3", "exec_2", "exec_1"]);
    let plan = Some(PlanId::new("plan_2"));
    assert_eq!(stage.executions(ExecutionFilter { plan: plan.clone(), ..any() }), ["exec_4", "exec_2"]);
    let tag = Some("sea".to_owned());
    assert_eq!(stage.executions(ExecutionFilter { tag: tag.clone(), ..any() }), ["exec_4", "exec_2"]);
    assert_eq!(stage.executions(ExecutionFilter { asking: true, ..any() }), ["exec_2"]);
    let statuses = vec![Status::Failed, Status::Waiting, Status::Failed];
    let filter = ExecutionFilter { statuses: statuses.clone(), ..any() };
    assert_eq!(stage.executions(filter), ["exec_3", "exec_2"]);
    let opened = Between { from: Some(Timestamp(20)), until: Some(Timestamp(40)) };
    assert_eq!(stage.executions(ExecutionFilter { opened, ..any() }), ["exec_3", "exec_2"]);
    let text = Some("parcel".to_owned());
    assert_eq!(stage.executions(ExecutionFilter { text: text.clone(), ..any() }), ["exec_4", "exec_2"]);

    let all = ExecutionFilter { plan, tag, statuses, asking: true, opened, text };
    assert_eq!(stage.executions(all.clone()), ["exec_2"]);
    for nothing in [
        ExecutionFilter { plan: Some(PlanId::new(PLAN)), ..all.clone() },
        ExecutionFilter { tag: Some("land".into()), ..all.clone() },
        ExecutionFilter { statuses: vec![Status::Failed], ..all.clone() },
        ExecutionFilter { opened: Between { from: Some(Timestamp(21)), until: None }, ..all.clone() },
        ExecutionFilter { text: Some("letter".into()), ..all },
    ] {
        assert!(stage.executions(nothing.clone()).is_empty(), "{nothing:?}");
    }
}

#[test]
fn unknown_names_find_nothing() {
    let stage = Stage::new();
    stage.open("exec_1", 1);
    for nothing in [
        ExecutionFilter { plan: Some(PlanId::new("plan_9")), ..any() },
        ExecutionFilter { tag: Some("none".into()), ..any() },
        ExecutionFilter { text: Some("none".into()), ..any() },
    ] {
        assert!(stage.executions(nothing).is_empty());
    }
    let listing = wait(stage.store.executions(&TenantId::new("nobody"), any(), Page::first(1))).unwrap();
    assert_eq!((listing.items, listing.next), (vec![], None));
}

#[test]
fn words_are_found_in_the_plan_or_in_one_entry() {
    let stage = Stage::new();
    let mut first = stage.open("exec_1", 1);
    first.note("turn back, said the captain", json!(1));
    first.note("said it again", json!(1));
    stage.open("exec_2", 2).note("dinner, said the cook", json!(1));
    let says = |text: &str| stage.executions(ExecutionFilter { text: Some(text.into()), ..any() });
    assert_eq!(says("said"), ["exec_2", "exec_1"]);
    assert_eq!(says("Captain BACK"), ["exec_1"]);
    assert_eq!(says("order"), ["exec_2", "exec_1"]);
    assert!(says("captain again").is_empty(), "not in one place");
    assert!(says("capt").is_empty());
}

#[test]
fn one_execution_is_summed_up_as_it_is_listed() {
    let stage = Stage::new();
    let mut pen = stage.open("exec_1", 7);
    pen.note("more", json!(1));
    let found = wait(stage.store.execution(&pen.identity)).unwrap().unwrap();
    assert_eq!((found.entries, found.letters, found.name.as_str()), (2, 0, "order"));
    assert_eq!((found.plan.as_str(), found.row), (PLAN, pen.row));
    let listed = wait(stage.store.executions(&acme(), any(), Page::first(1))).unwrap();
    assert_eq!(listed.items, [found]);
}

#[test]
fn the_name_is_that_of_the_revision_that_is_carried_out() {
    let stage = Stage::new();
    let pen = stage.open("exec_1", 7);
    stage.save("acme", PLAN, &plan("renamed", json!({})), 8);
    let found = wait(stage.store.execution(&pen.identity)).unwrap().unwrap();
    assert_eq!(found.name, "order");
}

#[test]
fn another_tenant_sees_none_of_it() {
    let stage = Stage::new();
    let tagged = plan("mine", json!({"tags": ["sea"]}));
    stage.save("acme", "plan_2", &tagged, 2);
    stage.save("other", "plan_3", &tagged, 2);
    let mut pen = stage.open_of("acme", "plan_2", &tagged, "exec_1", 1);
    pen.row.questions = 1;
    pen.note("secret", json!(1));
    let other = TenantId::new("other");
    for filter in [
        any(),
        ExecutionFilter { plan: Some(PlanId::new("plan_2")), ..any() },
        ExecutionFilter { tag: Some("sea".into()), ..any() },
        ExecutionFilter { statuses: Status::ALL.to_vec(), ..any() },
        ExecutionFilter { asking: true, ..any() },
        ExecutionFilter { text: Some("secret".into()), ..any() },
        ExecutionFilter { text: Some("mine".into()), ..any() },
    ] {
        assert!(!stage.executions(filter.clone()).is_empty(), "{filter:?}");
        let found = wait(stage.store.executions(&other, filter.clone(), Page::first(10))).unwrap();
        assert!(found.items.is_empty(), "{filter:?}");
    }
    let mut identity = pen.identity.clone();
    identity.tenant = other.clone();
    assert_eq!(wait(stage.store.execution(&identity)), Ok(None));
    let totals = wait(stage.store.totals(&other)).unwrap();
    assert_eq!(totals, Totals { plans: 1, entries: 1, ..Totals::default() });
}

#[test]
fn totals_are_kept_by_status() {
    let stage = Stage::new();
    let mut pen = stage.open("exec_1", 1);
    stage.ended("exec_2", Status::Completed, 2);
    pen.row.status = Status::Running;
    pen.write(rutter_core::actor::Actor::rutter(), Event::ExecutionStarted {});
    stage.save("acme", PLAN, &plan("again", json!({})), 3);
    let totals = wait(stage.store.totals(&acme())).unwrap();
    let executions = [("completed", 1), ("running", 1)].into_iter().collect();
    assert_eq!(totals, Totals { executions, entries: 6, plans: 1 });
    assert_eq!(wait(stage.store.totals(&TenantId::new("nobody"))), Ok(Totals::default()));
}

#[test]
fn a_query_that_takes_too_many_steps_is_refused_and_harms_no_other() {
    let stage = Stage::with(|options| {
        options.query_steps_max = 3_000;
        options.readers = 1;
    });
    for at in 0..200 {
        stage.open(&format!("exec_{at}"), at);
    }
    let all = wait(stage.store.executions(&acme(), any(), Page::first(1_000)));
    assert_eq!(all.unwrap_err().code(), "store.too_broad");
    assert_eq!(wait(stage.store.executions(&acme(), any(), Page::first(2))).unwrap().items.len(), 2);
    assert_eq!(wait(stage.store.totals(&acme())).unwrap().entries, 201);
}

#[test]
fn a_page_has_its_limits() {
    let stage = Stage::new();
    for limit in [0, 1_001] {
        let refused = wait(stage.store.executions(&acme(), any(), Page::first(limit)));
        assert_eq!(refused, Err(Error::Limit { limit: "page_max", max: 1_000, found: limit.into() }));
    }
    assert!(wait(stage.store.executions(&acme(), any(), Page::first(1_000))).is_ok());
}
