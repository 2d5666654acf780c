//! Finding plans.

use crate::stage::{PLAN, Stage, acme, plan};
use rutter_core::actor::Actor;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::port::query::{Page, PlanFilter, Query};
use rutter_core::time::Timestamp;
use rutter_store::wait;
use serde_json::json;

fn any() -> PlanFilter {
    PlanFilter::default()
}

#[test]
fn plans_are_found_by_name_tag_and_words_of_their_newest_revision() {
    let stage = Stage::new();
    stage.save("acme", "plan_2", &plan("refund", json!({"tags": ["money"], "goal": "pay back"})), 2);
    stage.save("acme", "plan_3", &plan("ship", json!({"tags": ["sea"], "goal": "first"})), 3);
    stage.save("acme", "plan_3", &plan("ship", json!({"tags": ["sea", "money"], "goal": "second"})), 4);
    assert_eq!(stage.plans(any()), ["plan_3 2 ship", "plan_2 1 refund", "plan_1 1 order"]);
    let named = |name: &str| PlanFilter { name: Some(name.into()), ..any() };
    let tagged = |tag: &str| PlanFilter { tag: Some(tag.into()), ..any() };
    let says = |text: &str| PlanFilter { text: Some(text.into()), ..any() };
    assert_eq!(stage.plans(named("refund")), ["plan_2 1 refund"]);
    assert_eq!(stage.plans(tagged("money")), ["plan_3 2 ship", "plan_2 1 refund"]);
    assert_eq!(stage.plans(tagged("sea")), ["plan_3 2 ship"]);
    assert_eq!(stage.plans(says("BACK pay")), ["plan_2 1 refund"]);
    assert_eq!(stage.plans(says("second")), ["plan_3 2 ship"]);
    for nothing in [named("refun"), tagged("mon"), says("first"), says("pay second")] {
        assert!(stage.plans(nothing.clone()).is_empty(), "{nothing:?}");
    }
    let all = PlanFilter { name: Some("ship".into()), tag: Some("money".into()), text: Some("sea".into()) };
    assert_eq!(stage.plans(all.clone()), ["plan_3 2 ship"]);
    assert_eq!(stage.plans(PlanFilter { text: None, ..all.clone() }), ["plan_3 2 ship"]);
    assert!(stage.plans(PlanFilter { tag: Some("land".into()), ..all.clone() }).is_empty());
    assert!(stage.plans(PlanFilter { name: Some("refund".into()), ..all }).is_empty());
}

#[test]
fn every_revision_is_read_back_as_it_was_saved() {
    let stage = Stage::new();
    let second = plan("renamed", json!({"tags": ["x", "y"], "goal": "more"}));
    stage.save("acme", PLAN, &second, 9);
    for (revision, expected, at) in [(Some(1), &stage.plan, 1), (Some(2), &second, 9), (None, &second, 9)] {
        let found = wait(stage.store.plan(&acme(), &PlanId::new(PLAN), revision)).unwrap().unwrap();
        assert_eq!((found.plan.hash, &found.plan.tools), (expected.hash, &expected.tools));
        let summary = found.summary;
        assert_eq!((summary.id, summary.hash), (PlanId::new(PLAN), expected.hash));
        assert_eq!((summary.name, summary.goal), (expected.name.clone(), expected.goal.clone()));
        assert_eq!((summary.tags, summary.steps), (expected.about.tags.clone(), 1));
        assert_eq!((summary.actor, summary.saved_at), (Actor::agent("author"), Timestamp(at)));
    }
    for (id, revision) in [(PLAN, Some(0)), (PLAN, Some(3)), ("plan_9", None)] {
        assert!(wait(stage.store.plan(&acme(), &PlanId::new(id), revision)).unwrap().is_none());
    }
}

#[test]
fn another_tenant_finds_none_of_them() {
    let stage = Stage::new();
    stage.save("acme", "plan_2", &plan("mine", json!({"tags": ["sea"]})), 2);
    stage.save("other", "plan_3", &plan("theirs", json!({})), 2);
    let other = TenantId::new("other");
    for filter in [
        PlanFilter { name: Some("mine".into()), ..any() },
        PlanFilter { tag: Some("sea".into()), ..any() },
        PlanFilter { text: Some("mine".into()), ..any() },
    ] {
        assert_eq!(stage.plans(filter.clone()), ["plan_2 1 mine"]);
        assert!(wait(stage.store.plans(&other, filter, Page::first(9))).unwrap().items.is_empty());
    }
    assert_eq!(wait(stage.store.plans(&other, any(), Page::first(9))).unwrap().items.len(), 1);
    assert!(wait(stage.store.plan(&other, &PlanId::new("plan_2"), None)).unwrap().is_none());
}
