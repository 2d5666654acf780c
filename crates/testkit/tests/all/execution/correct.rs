//! Corrections: a person takes back what was settled by hand, on record.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::journal::event::{CallSide, Question, QuestionAnswer};
use rutter_core::tool::FailureCategory::{Timeout, ToolError};
use rutter_testkit::scene::*;
use serde_json::{Value, json};
use std::sync::Arc;

const CHARGE: &str = "steps:
  - id: a
    tool: t.once
    output: {type: object}
    compensation: {tool: t.undo_once, parameters: {charge: '{{ result.id }}'}}";

const THEN: &str = "steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo_once}}
  - {id: b, tool: t.once, depends_on: [a], parameters: {n: '{{ steps.a.result.n }}'}, compensation: {tool: t.undo_once}}
  - {id: c, tool: t.once, depends_on: [b], parameters: {n: '{{ steps.a.result.n }}'}}";

fn correcting(name: &str, happened: bool, result: Option<Value>) -> ExecutionInput {
    let (part, result, evidence) = (part(name), result.map(Arc::new), None);
    ExecutionInput::Correct { part, happened, reason: "looked again".into(), result, evidence }
}

fn correct(scene: &mut ExecutionScenario, happened: bool, result: Option<Value>) {
    scene.give(&person(), correcting("a", happened, result));
}

fn refused(scene: &mut ExecutionScenario, happened: bool, result: Option<Value>) -> &'static str {
    scene.refused(&person(), correcting("a", happened, result))
}

/// `a` is in doubt and settled as done, with this result.
fn settled(fields: &str, result: Value) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", maybe(Timeout));
    scene.settle("a", true, result);
    scene
}

fn remains(scene: &ExecutionScenario) -> Vec<String> {
    scene.execution.view().remains.iter().map(ToString::to_string).collect()
}

#[test]
fn only_a_person_corrects_and_only_what_was_settled_by_hand() {
    let mut scene = settled(CHARGE, json!({"id": 1}));
    assert_eq!(scene.refused(&agent(), correcting("a", true, Some(json!({"id": 2})))), "execution.not_a_person");
    assert_eq!(scene.refused(&person(), correcting("z", true, None)), "execution.unknown_part");
    assert_eq!(refused(&mut scene, true, None), "execution.nothing_to_correct");
    assert_eq!(refused(&mut scene, true, Some(json!({"id": 1}))), "execution.nothing_to_correct");
    assert_eq!(refused(&mut scene, true, Some(json!([]))), "execution.result_invalid");
    assert_eq!(refused(&mut scene, true, Some(json!({}))), "execution.result_missing");
    assert_eq!(refused(&mut scene, false, Some(json!({"id": 1}))), "execution.result_invalid");

    let mut scene = ExecutionScenario::started(CHARGE);
    assert_eq!(refused(&mut scene, true, Some(json!({"id": 1}))), "execution.not_by_hand");
    scene.returns("a", done(json!({"id": 1})));
    assert_eq!(refused(&mut scene, true, Some(json!({"id": 2}))), "execution.not_by_hand");
}

#[test]
fn undo_uses_the_corrected_result_also_after_the_end() {
    let mut scene = settled(CHARGE, json!({"id": 1}));
    assert_eq!(scene.status(), "completed");
    correct(&mut scene, true, Some(json!({"id": 2})));
    assert_eq!((scene.events(), scene.status()), (vec!["SettlementCorrected".to_owned()], "completed"));
    scene.crash();
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 2}));
    assert_eq!(refused(&mut scene, true, Some(json!({"id": 3}))), "execution.nothing_to_correct");
}

#[test]
fn a_step_done_by_hand_can_be_corrected_like_a_doubt() {
    let mut scene = ExecutionScenario::started(CHARGE);
    scene.returns("a", fails(ToolError));
    scene.resolve("a", json!({"id": 1}));
    correct(&mut scene, true, Some(json!({"id": 2})));
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 2}));
}

#[test]
fn a_compensation_that_failed_for_want_of_the_result_is_tried_again_with_it() {
    for wrong in [Value::Null, json!({"id": 1})] {
        let mut scene = settled(CHARGE, wrong.clone());
        scene.compensate(None);
        if !wrong.is_null() {
            scene.returns("a", fails(ToolError));
        }
        assert_eq!(scene.asks(), ["compensation a"], "{wrong}");
        correct(&mut scene, true, Some(json!({"id": 2})));
        scene.answer(Question::Compensation(part("a")), QuestionAnswer::Retry);
        assert_eq!(*scene.call("a").parameters, json!({"charge": 2}), "{wrong}");
        scene.returns("a", done(json!({})));
        assert_eq!((scene.status(), remains(&scene)), ("compensated", vec![]));
    }
}

#[test]
fn later_steps_use_the_corrected_result_and_those_that_ran_are_named() {
    let mut scene = settled(THEN, json!({"n": 1}));
    assert_eq!(*scene.call("b").parameters, json!({"n": 1}));
    correct(&mut scene, true, Some(json!({"n": 2})));
    assert_eq!(scene.deviations(), ["StaleResult b"]);
    scene.returns("b", done(json!({})));
    assert_eq!(*scene.call("c").parameters, json!({"n": 2}));
}

#[test]
fn the_list_of_a_fan_out_has_the_corrected_result() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, for_each: '[1, 2]'}
  - {id: b, tool: t.once, depends_on: [a], parameters: {list: '{{ steps.a.result }}'}}",
    );
    scene.returns("a[0]", maybe(Timeout));
    scene.settle("a[0]", true, json!(1));
    scene.pause();
    scene.returns("a[1]", done(json!(2)));
    scene.give(&person(), correcting("a[0]", true, Some(json!(10))));
    scene.resume();
    assert_eq!(*scene.call("b").parameters, json!({"list": [10, 2]}));
}

#[test]
fn what_did_not_happen_after_all_is_a_question_again_and_its_dependents_wait() {
    let mut scene = ExecutionScenario::started(THEN);
    scene.returns("a", maybe(Timeout));
    scene.pause();
    scene.settle("a", true, json!({"n": 1}));
    correct(&mut scene, false, None);
    scene.resume();
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["failure a".to_owned()]));
    assert!(scene.part("a").effect.is_none());
    scene.crash();
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!(scene.calls(), ["a#2"]);
    scene.returns("a", done(json!({"n": 3})));
    assert_eq!(*scene.call("b").parameters, json!({"n": 3}));
    scene.returns("b", done(json!({})));
    scene.returns("c", done(json!({})));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn after_the_end_what_did_not_happen_reopens_the_execution() {
    let mut scene = settled(CHARGE, json!({"id": 1}));
    correct(&mut scene, false, None);
    assert_eq!(scene.events(), ["SettlementCorrected", "Reopened"]);
    assert_eq!((scene.status(), scene.asks()), ("waiting", vec!["failure a".to_owned()]));
    scene.answer_failure("a", QuestionAnswer::Stop);
    assert_eq!((scene.status(), remains(&scene)), ("failed", vec![]));
    assert_eq!(scene.refused(&person(), compensating(None)), "execution.nothing_to_undo");
}

#[test]
fn an_execution_that_did_not_reach_its_goal_stays_ended_without_the_effect() {
    let mut scene = ExecutionScenario::started(CHARGE);
    scene.returns("a", maybe(Timeout));
    scene.cancel(Some(false));
    scene.settle("a", true, json!({"id": 1}));
    assert_eq!((scene.status(), remains(&scene)), ("cancelled", vec!["a".to_owned()]));
    correct(&mut scene, false, None);
    assert_eq!((scene.status(), remains(&scene)), ("cancelled", vec![]));
    // And back again.
    correct(&mut scene, true, Some(json!({"id": 1})));
    assert_eq!((scene.status(), remains(&scene)), ("cancelled", vec!["a".to_owned()]));
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 1}));
}

#[test]
fn what_other_steps_are_built_on_did_happen_until_those_are_undone() {
    let mut scene = settled(THEN, json!({"n": 1}));
    assert_eq!(refused(&mut scene, false, None), "execution.built_upon");
    scene.returns("b", done(json!({})));
    scene.cancel(Some(false));
    assert_eq!(refused(&mut scene, false, None), "execution.stopping");
    scene.returns("c", fails(ToolError));
    assert_eq!(refused(&mut scene, false, None), "execution.built_upon");
    scene.compensate(Some(&["b"]));
    scene.returns("b", done(json!({})));
    assert_eq!(scene.status(), "partial");
    correct(&mut scene, false, None);
    assert_eq!(scene.asks(), ["failure a"]);
}

/// `a` is in doubt and settled as not done.
fn settled_as_not_done(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", maybe(Timeout));
    scene.pause();
    scene.settle("a", false, json!(null));
    scene
}

#[test]
fn what_did_happen_after_all_is_a_second_effect_once_it_was_sent_again() {
    let mut scene = settled_as_not_done(CHARGE);
    assert_eq!(refused(&mut scene, false, None), "execution.nothing_to_correct");
    scene.resume();
    scene.returns("a", done(json!({"id": 2})));
    assert_eq!(refused(&mut scene, true, None), "execution.result_missing");
    correct(&mut scene, true, Some(json!({"id": 1})));
    assert_eq!((scene.deviations(), scene.asks()), (vec!["SecondEffect a".into()], vec!["second effect a".into()]));
    assert_eq!(refused(&mut scene, true, Some(json!({"id": 3}))), "execution.not_by_hand");
    scene.crash();
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 2}));
    scene.returns("a", done(json!({})));
    assert_eq!(*scene.call("a").parameters, json!({"charge": 1}));
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), remains(&scene)), ("compensated", vec![]));
}

#[test]
fn what_did_happen_after_all_is_not_sent_again_if_it_has_not_been() {
    let mut scene = settled_as_not_done(CHARGE);
    correct(&mut scene, true, Some(json!({"id": 1})));
    assert_eq!((scene.status(), scene.started_calls(CallSide::Do)), ("completed", vec!["a".to_owned()]));
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 1}));
}

#[test]
fn a_late_answer_and_a_correction_are_one_effect() {
    let mut scene = settled_as_not_done(CHARGE);
    scene.resume();
    scene.returns("a", done(json!({"id": 2})));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!(refused(&mut scene, true, Some(json!({"id": 1}))), "execution.nothing_to_correct");
}

#[test]
fn a_step_that_took_effect_after_all_is_not_called_again_when_the_execution_is_reopened() {
    let mut scene = ExecutionScenario::started(&CHARGE.replace("steps:", "on_failure: cancel_all\nsteps:"));
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.status(), "failed");
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 7})));
    scene.give(&person(), ExecutionInput::Reopen { steps: None, reason: "go on".into() });
    assert_eq!((scene.status(), scene.started_calls(CallSide::Do)), ("completed", vec!["a".to_owned()]));
}

#[test]
fn a_late_result_that_contradicts_the_one_by_hand_is_a_deviation_and_a_question() {
    let mut scene = settled(CHARGE, json!({"id": "wrong"}));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": "charge-2"})));
    assert_eq!((scene.deviations(), scene.asks()), (vec!["OtherResult a".into()], vec!["other result a".to_owned()]));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": "charge-2"})));
    assert_eq!(scene.deviations(), ["OtherResult a"]);
    scene.crash();
    let text = scene.execution.questions()[0].to_string();
    assert!(text.contains("by hand: {\"id\":\"wrong\"}") && text.contains("{\"id\":\"charge-2\"}"), "{text}");
    assert_eq!(refused(&mut scene, false, None), "execution.answered");
    assert_eq!(refused(&mut scene, true, Some(json!({"id": "another"}))), "execution.answered");
    correct(&mut scene, true, Some(json!({"id": "charge-2"})));
    assert_eq!(scene.asks(), [""; 0]);
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": "charge-2"}));

    let mut scene = settled(CHARGE, json!({"id": "right"}));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": "charge-2"})));
    scene.answer(Question::SecondEffect(part("a")), QuestionAnswer::Continue);
    scene.crash();
    assert_eq!(scene.asks(), [""; 0]);
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": "right"}));
}

#[test]
fn a_late_result_of_a_call_whose_result_nobody_knew_becomes_its_result() {
    let mut scene = settled(CHARGE, Value::Null);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": "charge-2"})));
    assert_eq!((scene.asks(), scene.deviations()), (vec![], vec![]));
    assert_eq!(refused(&mut scene, false, None), "execution.answered");
    scene.crash();
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": "charge-2"}));
}

#[test]
fn an_open_approval_is_asked_for_again_when_what_its_call_reads_is_corrected() {
    let plan = "steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, depends_on: [a], parameters: {n: '{{ steps.a.result.n }}'}, approval: {required: true, expires: 24h}}";
    let mut scene = settled(plan, json!({"n": 1}));
    assert_eq!(scene.asks(), ["approval b"]);
    correct(&mut scene, true, Some(json!({"n": 2})));
    match &scene.execution.questions()[..] {
        [PendingQuestion::Approval { parameters: Some(parameters), .. }] => assert_eq!(**parameters, json!({"n": 2})),
        other => panic!("{other:?}"),
    }
}
