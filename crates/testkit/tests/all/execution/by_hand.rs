//! Results given by hand: checked like those of a tool.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::journal::event::{Question, QuestionAnswer};
use rutter_core::tool::FailureCategory::{Timeout, ToolError};
use rutter_testkit::scene::*;
use serde_json::{Value, json};
use std::sync::Arc;

const CHARGE: &str = "steps:
  - id: a
    tool: t.once
    output: {type: object, required: [id], properties: {id: {type: integer}}}
    compensation: {tool: t.undo_once, parameters: {charge: '{{ result.id }}'}}";

const READ_LATER: &str = "steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, depends_on: [a], parameters: {n: '{{ steps.a.result.n }}'}}
  - {id: c, tool: t.once, depends_on: [a], parameters: {m: '{{ steps.a.result.m | default(1) }}'}}";

fn doubtful(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", maybe(Timeout));
    scene
}

fn failed(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", fails(ToolError));
    scene
}

fn settling_with(result: Option<Value>) -> ExecutionInput {
    let (result, evidence) = (result.map(Arc::new), Arc::new(json!("looked")));
    ExecutionInput::Settle { part: part("a"), happened: true, reason: "looked".into(), result, evidence }
}

fn resolving_with(result: Option<Value>) -> ExecutionInput {
    let (about, evidence) = (Question::Failure(step("a")), Some(Arc::new(json!("done by hand"))));
    let (answer, result) = (QuestionAnswer::Resolve, result.map(Arc::new));
    ExecutionInput::Answer { about, answer, reason: "looked".into(), result, evidence }
}

fn message(scene: &mut ExecutionScenario, input: ExecutionInput) -> (&'static str, String) {
    let refusal = scene.input(&person(), input).expect_err("it is refused");
    (refusal.code, refusal.message)
}

#[test]
fn a_result_by_hand_must_fit_the_output_schema() {
    for (result, place) in [(json!({"id": "seven"}), "result/id"), (json!({}), "result"), (json!([7]), "result")] {
        for (mut scene, input) in [
            (doubtful(CHARGE), settling_with(Some(result.clone()))),
            (failed(CHARGE), resolving_with(Some(result.clone()))),
        ] {
            let (code, text) = message(&mut scene, input);
            assert_eq!(code, "execution.result_invalid", "{result}");
            assert!(text.starts_with(&format!("a: {place}: ")) && text.contains("`output`"), "{text}");
        }
    }
    let mut scene = doubtful(CHARGE);
    scene.give(&person(), settling_with(Some(json!({"id": 7}))));
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 7}));
}

#[test]
fn the_tools_own_schema_counts_as_long_as_its_definition_does() {
    let plan = |output: Value| {
        let mut catalog = catalog();
        let tool = catalog.tools.get_mut(&tool("t.once")).expect("it is in the catalog");
        Arc::make_mut(tool).output = Some(Arc::new(output));
        plan_with(&catalog, "steps: [{id: a, tool: t.once}]")
    };
    let mut scene = ExecutionScenario::open(
        plan(json!({"type": "object", "required": ["n"]})),
        rutter_core::plan::Driver::Server,
        json!({}),
    );
    scene.start();
    scene.returns("a", maybe(Timeout));
    let (code, text) = message(&mut scene, settling_with(Some(json!({}))));
    assert_eq!(code, "execution.result_invalid");
    assert!(text.contains("the output schema of t.once"), "{text}");
}

#[test]
fn a_result_that_the_compensation_or_a_waiting_step_reads_must_be_there() {
    for (fields, result, reads) in [
        (CHARGE, None, "the compensation of a reads result.id"),
        (READ_LATER, None, "b reads steps.a.result.n"),
        (READ_LATER, Some(json!({"other": 1})), "b reads steps.a.result.n"),
    ] {
        for (mut scene, input) in
            [(doubtful(fields), settling_with(result.clone())), (failed(fields), resolving_with(result.clone()))]
        {
            assert_eq!(message(&mut scene, input), ("execution.result_missing", reads.to_owned()), "{fields}");
        }
    }
    let mut scene = doubtful(READ_LATER);
    scene.give(&person(), settling_with(Some(json!({"n": 2}))));
    assert_eq!(*scene.call("b").parameters, json!({"n": 2}));
}

#[test]
fn nothing_is_demanded_that_nobody_reads() {
    for fields in [
        "steps: [{id: a, tool: t.once, compensation: {tool: t.undo_once}}]",
        "steps: [{id: a, tool: t.once, compensation: {tool: t.undo_once, parameters: {n: '{{ result.n | default(1) }}'}}}]",
    ] {
        let mut scene = doubtful(fields);
        scene.give(&person(), settling_with(None));
        assert_eq!(scene.status(), "completed", "{fields}");
    }
}

#[test]
fn who_says_that_nobody_knows_the_result_is_believed() {
    let mut scene = doubtful(CHARGE);
    scene.give(&person(), settling_with(Some(Value::Null)));
    assert_eq!(scene.status(), "completed");
    scene.compensate(None);
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["compensation a".to_owned()]));
}

#[test]
fn what_an_agent_records_is_checked_too_unless_it_called_another_tool_or_has_no_result() {
    let refused = |scene: &mut ExecutionScenario, result: Value| {
        scene.refused(&agent(), ExecutionInput::RecordFinished { part: part("a"), result: Arc::new(result) })
    };
    let mut scene = ExecutionScenario::by_agent(CHARGE);
    scene.start();
    assert_eq!(refused(&mut scene, json!({"id": "seven"})), "execution.result_invalid");
    scene.record_started("a");
    assert_eq!(refused(&mut scene, json!({"id": "seven"})), "execution.result_invalid");
    scene.record_finished("a", json!({"id": 7}));
    assert_eq!(scene.status(), "completed");

    let mut scene = ExecutionScenario::by_agent(CHARGE);
    scene.record_finished("a", Value::Null);
    assert_eq!(scene.status(), "completed");

    let mut scene = ExecutionScenario::by_agent(CHARGE);
    let other = Some(tool("t.other"));
    scene.give(&agent(), ExecutionInput::RecordStarted { part: part("a"), tool: other, parameters: None });
    scene.record_finished("a", json!({"id": "seven"}));
    assert_eq!(scene.deviations(), ["OtherTool a"]);
}
