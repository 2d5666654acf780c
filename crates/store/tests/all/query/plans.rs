//! Finding plans.

use crate::query::fixture::{PLAN, QueryFixture, acme, plan};
use rutter_core::actor::Actor;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::port::query::{Pagination, PlanFilter, StoreQuery};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use serde_json::json;

fn any() -> PlanFilter {
    PlanFilter::default()
}

#[test]
fn plans_are_found_by_name_tag_and_words_of_their_newest_revision() {
    let fixture = QueryFixture::new();
    fixture.save("acme", "plan_2", &plan("refund", json!({"tags": ["money"], "goal": "pay back"})), 2);
    fixture.save("acme", "plan_3", &plan("ship", json!({"tags": ["sea"], "goal": "first"})), 3);
    fixture.save("acme", "plan_3", &plan("ship", json!({"tags": ["sea", "money"], "goal": "second"})), 4);
    assert_eq!(fixture.plans(any()), ["plan_3 2 ship", "plan_2 1 refund", "plan_1 1 order"]);
    let named = |name: &str| PlanFilter { name: Some(name.into()), ..any() };
    let tagged = |tag: &str| PlanFilter { tag: Some(tag.into()), ..any() };
    let says = |text: &str| PlanFilter { text: Some(text.into()), ..any() };
    assert_eq!(fixture.plans(named("refund")), ["plan_2 1 refund"]);
    assert_eq!(fixture.plans(tagged("money")), ["plan_3 2 ship", "plan_2 1 refund"]);
    assert_eq!(fixture.plans(tagged("sea")), ["plan_3 2 ship"]);
    assert_eq!(fixture.plans(says("BACK pay")), ["plan_2 1 refund"]);
    assert_eq!(fixture.plans(says("second")), ["plan_3 2 ship"]);
    for nothing in [named("refun"), tagged("mon"), says("first"), says("pay second")] {
        assert!(fixture.plans(nothing.clone()).is_empty(), "{nothing:?}");
    }
    let all = PlanFilter { name: Some("ship".into()), tag: Some("money".into()), text: Some("sea".into()), ..any() };
    assert_eq!(fixture.plans(all.clone()), ["plan_3 2 ship"]);
    assert_eq!(fixture.plans(PlanFilter { text: None, ..all.clone() }), ["plan_3 2 ship"]);
    assert!(fixture.plans(PlanFilter { tag: Some("land".into()), ..all.clone() }).is_empty());
    assert!(fixture.plans(PlanFilter { name: Some("refund".into()), ..all }).is_empty());
}

#[test]
fn every_revision_is_read_back_as_it_was_saved() {
    let fixture = QueryFixture::new();
    let second = plan("renamed", json!({"tags": ["x", "y"], "goal": "more"}));
    fixture.save("acme", PLAN, &second, 9);
    for (revision, expected, at) in [(Some(1), &fixture.plan, 1), (Some(2), &second, 9), (None, &second, 9)] {
        let found = wait(fixture.store.plan(&acme(), &PlanId::new(PLAN), revision)).unwrap().unwrap();
        assert_eq!((found.plan.hash, &found.plan.tools), (expected.hash, &expected.tools));
        let summary = found.summary;
        assert_eq!((summary.id, summary.hash), (PlanId::new(PLAN), expected.hash));
        assert_eq!((summary.name, summary.goal), (expected.name.clone(), expected.goal.clone()));
        assert_eq!((summary.tags, summary.steps), (expected.about.tags.clone(), 1));
        assert_eq!((summary.actor, summary.saved_at), (Actor::agent("author"), Timestamp(at)));
    }
    for (id, revision) in [(PLAN, Some(0)), (PLAN, Some(3)), ("plan_9", None)] {
        assert!(wait(fixture.store.plan(&acme(), &PlanId::new(id), revision)).unwrap().is_none());
    }
}

#[test]
fn another_tenant_finds_none_of_them() {
    let fixture = QueryFixture::new();
    fixture.save("acme", "plan_2", &plan("mine", json!({"tags": ["sea"]})), 2);
    fixture.save("other", "plan_3", &plan("theirs", json!({})), 2);
    let other = TenantId::new("other");
    for filter in [
        PlanFilter { name: Some("mine".into()), ..any() },
        PlanFilter { tag: Some("sea".into()), ..any() },
        PlanFilter { text: Some("mine".into()), ..any() },
    ] {
        assert_eq!(fixture.plans(filter.clone()), ["plan_2 1 mine"]);
        assert!(wait(fixture.store.plans(&other, filter, Pagination::first(9))).unwrap().items.is_empty());
    }
    assert_eq!(wait(fixture.store.plans(&other, any(), Pagination::first(9))).unwrap().items.len(), 1);
    assert!(wait(fixture.store.plan(&other, &PlanId::new("plan_2"), None)).unwrap().is_none());
}
