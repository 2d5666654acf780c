//! What an agent or a person records besides the plan: context, decisions, actions.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::limits;
use rutter_testkit::scene::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn save(values: Value) -> ExecutionInput {
    let Value::Object(values) = values else { panic!("a context is an object") };
    ExecutionInput::SaveContext { values }
}

#[test]
fn values_are_saved_replaced_and_survive_a_crash() {
    let mut scene = ExecutionScenario::of("steps: [{id: a, tool: t.once}]");
    scene.give(&agent(), save(json!({"file": "x.csv", "row": 1})));
    scene.give(&agent(), save(json!({"row": 2})));
    scene.crash();
    assert_eq!(Value::Object(scene.execution.context().clone()), json!({"file": "x.csv", "row": 2}));
    assert!(scene.execution.brief().contains("file=\"x.csv\""), "{}", scene.execution.brief());
}

#[test]
fn a_context_can_be_saved_in_every_phase_and_calls_nothing() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    scene.give(&agent(), save(json!({"n": 1})));
    assert_eq!(scene.events(), ["ContextSaved"]);
    scene.returns("a", done(json!({})));
    scene.give(&agent(), save(json!({"n": 2})));
    assert_eq!(scene.execution.context()["n"], 2);
    scene.give(&agent(), ExecutionInput::SaveContext { values: Map::new() });
}

#[test]
fn a_context_has_a_size_over_all_that_is_saved() {
    let mut scene = ExecutionScenario::of("steps: [{id: a, tool: t.once}]");
    let text = |key: &str, bytes: usize| json!({ key: "x".repeat(bytes) });
    let half = limits::VALUE_BYTES_MAX / 2 - 16;
    assert_eq!(scene.refused(&agent(), save(text("a", limits::VALUE_BYTES_MAX))), "execution.too_large");
    scene.give(&agent(), save(text("a", half)));
    scene.give(&agent(), save(text("b", half)));
    assert_eq!(scene.refused(&agent(), save(text("c", half))), "execution.too_large");
}

#[test]
fn decisions_and_actions_are_recorded_and_change_nothing_else() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    let decision = |step| ExecutionInput::RecordDecision {
        step,
        decision: "use the blue one".into(),
        reason: "it was cheaper".into(),
        details: Some(Arc::new(json!({"price": 3}))),
    };
    scene.give(&agent(), decision(Some(step("a"))));
    scene.give(&agent(), decision(None));
    assert_eq!(scene.refused(&agent(), decision(Some(step("nobody")))), "execution.unknown_part");
    let action = |step| ExecutionInput::RecordAction {
        step,
        kind: "phone".into(),
        description: "called the shop".into(),
        details: None,
    };
    scene.give(&person(), action(None));
    scene.give(&person(), action(Some(step("a"))));
    assert_eq!(scene.deviations(), [""; 0]);
    scene.give(&person(), action(Some(step("nobody"))));
    assert_eq!(scene.deviations(), ["Undeclared nobody"]);
    assert_eq!(scene.step("a"), "running");
}

#[test]
fn long_texts_are_refused_by_name() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    let long = "é".repeat(limits::REASON_BYTES_MAX / 2 + 1);
    let inputs = [
        ExecutionInput::Pause { reason: long.clone() },
        ExecutionInput::RecordDecision { step: None, decision: String::new(), reason: long.clone(), details: None },
        ExecutionInput::RecordDecision { step: None, decision: long.clone(), reason: String::new(), details: None },
        ExecutionInput::RecordAction { step: None, kind: long.clone(), description: String::new(), details: None },
        ExecutionInput::RecordAction { step: None, kind: String::new(), description: long.clone(), details: None },
        ExecutionInput::RecordCompensation { part: part("a"), description: long.clone(), evidence: None },
        ExecutionInput::Kill { reason: long.clone() },
    ];
    for input in inputs {
        assert_eq!(scene.refused(&person(), input), "execution.text_too_long");
    }
    scene.give(&person(), ExecutionInput::Pause { reason: "x".repeat(limits::REASON_BYTES_MAX) });
}
