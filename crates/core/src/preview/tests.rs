//! The consequences of each failure policy, step by step.

use super::*;
use crate::plan::check::read_and_check;
use crate::plan::document::DocumentFormat;
use crate::plan::{Driver, Plan};
use crate::tool::ToolCatalog;
use serde_json::{Value, json};

fn catalog() -> ToolCatalog {
    let catalog = json!({"tools": [
        {"name": "a.read", "safety": "read_only"},
        {"name": "a.put", "safety": "idempotent"},
        {"name": "a.send", "safety": "once"},
        {"name": "a.pay", "safety": "once", "key_parameter": "key"},
    ]});
    ToolCatalog::from_json(&catalog).unwrap()
}

#[track_caller]
fn plan(plan: &Value) -> std::sync::Arc<Plan> {
    let checked = read_and_check(plan.to_string().as_bytes(), DocumentFormat::Json, &catalog(), Driver::Agent, None);
    checked.plan.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics))
}

/// Five steps: b fails; c reads it, d comes after it, e has nothing to do with it, a came before.
fn failing(policy: Value) -> WhatIfScenario {
    let undo = json!({"tool": "a.put"});
    let plan = plan(&json!({"name": "p", "steps": [
        {"id": "a", "tool": "a.send", "compensation": undo},
        {"id": "b", "tool": "a.send", "depends_on": ["a"], "compensation": undo, "failure_policy": policy},
        {"id": "c", "tool": "a.send", "parameters": {"x": "{{ steps.b.result }}"}, "compensation": undo},
        {"id": "d", "tool": "a.send", "depends_on": ["b"], "cancellable": "irreversible"},
        {"id": "e", "tool": "a.put", "compensation": undo},
        {"id": "f", "tool": "a.read", "parameters": {"x": "{{ steps.c.result if steps.c.status == 'completed' else 0 }}"}},
    ]}));
    what_if(&plan, "b").unwrap()
}

fn names(steps: &[StepId]) -> String {
    steps.iter().map(StepId::as_str).collect::<Vec<_>>().join("")
}

#[test]
fn every_policy_does_what_its_table_says() {
    use ScenarioOutcome::*;
    for (policy, continue_with, held, cancelled, skipped, undone, undoable, remains, ends) in [
        (json!("manual_decision"), "", "cdef", "", "", "", "a", "", WaitsForDecision),
        (json!("cancel_all"), "", "", "cdef", "", "", "a", "", Failed),
        (json!("compensate"), "", "", "cdef", "", "a", "", "", Compensated),
        (json!("cancel_dependent"), "e", "", "cdf", "", "", "ea", "", Partial),
        (json!({"action": "cancel_dependent", "propagate_to": ["e"]}), "", "", "cdef", "", "", "a", "", Partial),
        (json!("continue_others"), "def", "", "", "c", "", "ea", "d", Partial),
        (json!({"action": "continue_others", "propagate_to": ["d"]}), "ef", "", "d", "c", "", "ea", "", Partial),
    ] {
        let what_if = failing(policy.clone());
        assert_eq!(names(&what_if.completed), "a", "{policy}");
        assert_eq!(names(&what_if.continue_with), continue_with, "{policy}: continue with");
        assert_eq!(names(&what_if.held), held, "{policy}: held");
        assert_eq!(names(&what_if.cancelled), cancelled, "{policy}: cancelled");
        assert_eq!(names(&what_if.skipped), skipped, "{policy}: skipped");
        assert_eq!(names(&what_if.undone), undone, "{policy}: undone");
        assert_eq!(names(&what_if.undoable), undoable, "{policy}: undoable");
        assert_eq!(names(&what_if.remains), remains, "{policy}: remains");
        assert_eq!(what_if.ends, ends, "{policy}");
    }
}

#[test]
fn failure_does_not_travel_along_the_order_of_a_flat_list() {
    let step = |id: &str, policy: &str| json!({"id": id, "name": id, "tool": "a.send", "parameters": {}, "cancellable": "irreversible", "failure_policy": {"action": policy}});
    let plan = plan(&json!({"name": "p", "description": "d", "steps": [
        step("a", "cancel_dependent"), step("b", "continue_others"), step("c", "cancel_all"),
    ]}));
    let continued = |id: &str| names(&what_if(&plan, id).unwrap().continue_with);
    assert_eq!((continued("a"), continued("b"), continued("c")), ("bc".to_owned(), "c".to_owned(), String::new()));
}

#[test]
fn undoing_goes_backwards_and_says_what_it_leaves() {
    let undo = json!({"tool": "a.put"});
    let plan = plan(&json!({"name": "p", "on_failure": "compensate", "steps": [
        {"id": "a", "tool": "a.send", "compensation": undo},
        {"id": "b", "tool": "a.send", "depends_on": ["a"], "compensation": undo, "cancellable": "partially-reversible"},
        {"id": "c", "tool": "a.read", "depends_on": ["b"]},
        {"id": "d", "tool": "a.send", "depends_on": ["c"], "cancellable": "irreversible"},
        {"id": "e", "tool": "a.send", "depends_on": ["d"]},
    ]}));
    let last = what_if(&plan, "e").unwrap();
    assert_eq!(
        (names(&last.completed), names(&last.undone), names(&last.remains)),
        ("abcd".into(), "ba".into(), "bd".into())
    );
    let first = what_if(&plan, "a").unwrap();
    assert_eq!((first.undone.len(), first.ends), (0, ScenarioOutcome::Failed));
}

#[test]
fn steps_come_in_the_order_of_executions() {
    let plan = plan(&json!({"name": "p", "steps": [
        {"id": "a", "tool": "a.read"},
        {"id": "b", "tool": "a.read", "priority": 5},
        {"id": "c", "tool": "a.read", "depends_on": ["b"]},
    ]}));
    let steps: Vec<StepId> = preview(&plan).steps.into_iter().map(|step| step.step).collect();
    assert_eq!(names(&steps), "bac");
}

#[test]
fn coverage_and_guarantee_say_why() {
    use GuaranteeKind::*;
    use UndoCoverage::*;
    let undo = json!({"tool": "a.put"});
    for (step, coverage, kind, in_doubt) in [
        (json!({"tool": "a.read"}), NothingToUndo, NoEffect, "it is tried again"),
        (json!({"tool": "a.put", "compensation": undo}), Undoable, AtLeastOnce, "it is tried again"),
        (json!({"tool": "a.send"}), NotUndoable, AtMostOnce, "a person decides"),
        (json!({"tool": "a.send", "cancellable": "reversible"}), NotUndoable, AtMostOnce, "a person decides"),
        (json!({"tool": "a.read", "safety": "once"}), NotUndoable, AtMostOnce, "a person decides"),
        (json!({"tool": "no.body"}), NotUndoable, AtMostOnce, "a person decides"),
        (
            json!({"tool": "a.send", "compensation": undo, "cancellable": "irreversible"}),
            Partly,
            AtMostOnce,
            "a person decides",
        ),
        (
            json!({"tool": "a.send", "compensation": undo, "fallback": {"tool": "a.send"}}),
            Partly,
            AtMostOnce,
            "a person decides",
        ),
        (
            json!({"tool": "a.read", "fallback": {"tool": "a.send", "compensation": undo}}),
            Undoable,
            NoEffect,
            "it is tried again",
        ),
        (
            json!({"tool": "a.pay", "parameters": {"key": "{{ key }}"}}),
            NotUndoable,
            Deduplicated,
            "it is tried again with the same key",
        ),
        (
            json!({"tool": "a.send", "probe": {"tool": "a.read", "happened": "result.x"}}),
            NotUndoable,
            AtMostOnce,
            "a.read finds out whether it happened; if that fails, a person decides",
        ),
    ] {
        let mut written = step.clone();
        written["id"] = "s".into();
        let preview = preview(&plan(&json!({"name": "p", "goal": "g", "steps": [written]})));
        let found = &preview.steps[0];
        assert_eq!((found.undo.coverage, found.guarantee.kind), (coverage, kind), "{step}");
        assert_eq!(found.guarantee.in_doubt, in_doubt, "{step}");
        assert_eq!(preview.point_of_no_return.is_some(), coverage.leaves_something(), "{step}");
    }
}
