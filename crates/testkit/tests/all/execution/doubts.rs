//! Doubt: a call that may have happened is never repeated before that is settled.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::journal::event::{CallSide, QuestionAnswer};
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::json;

const PLAIN: &str = "steps: [{id: a, tool: t.once}, {id: b, tool: t.once, depends_on: [a]}]";
const PROBED: &str = "steps:
  - id: a
    tool: t.once
    parameters: {n: 1}
    probe: {tool: t.find, parameters: {key: '{{ key }}', n: '{{ parameters.n }}'}, happened: result.found, settle: 0s, retry: {max_attempts: 2, jitter: false}}
  - {id: b, tool: t.once, parameters: {x: '{{ steps.a.result.id }}'}}";

fn doubtful(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.step("a"), "in_doubt");
    scene
}

#[test]
fn without_a_probe_a_person_is_asked_and_nothing_else_starts() {
    let mut scene = doubtful(PLAIN);
    assert_eq!(scene.asks(), ["doubt a"]);
    assert_eq!((scene.status(), scene.step("b")), ("waiting", "pending"));
    scene.later(1_000_000);
    assert_eq!(scene.calls(), [""; 0]);
    assert_eq!(scene.execution.outcome(), None);
}

#[test]
fn a_person_who_confirms_it_completes_the_step_with_the_given_result() {
    let mut scene = doubtful(PROBED);
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.settle("a", true, json!({"id": 5}));
    assert_eq!(*scene.call("b").parameters, json!({"x": 5}));
    assert_eq!(scene.started_calls(CallSide::Do), ["a", "b"]);
}

#[test]
fn a_person_who_denies_it_permits_sending_it_again() {
    for rest in ["", ", retry: {max_attempts: 1}"] {
        let mut scene = doubtful(&format!("steps: [{{id: a, tool: t.once{rest}}}]"));
        scene.settle("a", false, json!(null));
        assert_eq!(scene.calls(), ["a#2"]);
        assert!(scene.part("a").effect.is_none());
    }
}

#[test]
fn a_probe_asks_with_the_key_and_parameters_of_the_attempt() {
    let mut scene = ExecutionScenario::started(PROBED);
    let key = scene.call("a").key;
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.calls(), ["probe a"]);
    assert_eq!(*scene.call("a").parameters, json!({"key": key.to_string(), "n": 1}));
    assert_eq!(scene.asks(), [""; 0]);
    assert_eq!(scene.status(), "running");
}

/// The result of the probe, and what follows.
#[test]
fn a_probe_settles_what_it_can_find_out() {
    let table = [
        (done(json!({"found": true, "id": 3})), vec!["b"], vec![]),
        (done(json!({"found": false})), vec!["a#2"], vec![]),
        (done(json!({"found": "perhaps"})), vec![], vec!["doubt a"]),
        (done(json!({})), vec![], vec!["doubt a"]),
        (done(json!(null)), vec![], vec!["doubt a"]),
        (fails(ToolError), vec![], vec!["doubt a"]),
        (maybe(ToolError), vec![], vec!["doubt a"]),
    ];
    for (outcome, calls, asks) in table {
        let mut scene = doubtful(PROBED);
        scene.returns("a", outcome.clone());
        assert_eq!(scene.calls(), calls, "{outcome:?}");
        assert_eq!(scene.asks(), asks, "{outcome:?}");
    }
}

#[test]
fn what_the_probe_found_is_the_result_unless_the_plan_says_which_part_of_it() {
    for (result, expected) in [("", json!({"found": true, "it": {"id": 9}})), (", result: result.it", json!({"id": 9}))]
    {
        let mut scene = doubtful(&format!(
            "steps:
  - {{id: a, tool: t.once, probe: {{tool: t.find, happened: result.found, settle: 0s{result}}}}}
  - {{id: b, tool: t.once, parameters: {{x: '{{{{ steps.a.result }}}}'}}}}"
        ));
        scene.returns("a", done(json!({"found": true, "it": {"id": 9}})));
        assert_eq!(*scene.call("b").parameters, json!({ "x": expected }));
    }
}

#[test]
fn a_failing_probe_is_retried_and_then_a_person_is_asked() {
    let mut scene = doubtful(PROBED);
    scene.returns("a", fails(Unavailable));
    assert_eq!(scene.wakes_in(), Some(1_000));
    scene.wait();
    assert_eq!(scene.calls(), ["probe a#2"]);
    scene.returns("a", fails(Unavailable));
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn a_silent_probe_is_closed_at_its_deadline() {
    let mut scene = doubtful(PROBED);
    scene.later(60_000);
    assert_eq!(scene.wakes_in(), Some(1_000));
    scene.wait();
    scene.later(60_000);
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn a_probe_that_cannot_be_prepared_leaves_the_question_to_a_person() {
    let mut scene = ExecutionScenario::with(
        "inputs: {type: object, properties: {n: {}}}
steps: [{id: a, tool: t.once, parameters: {n: '{{ inputs.n }}'}, probe: {tool: t.find, parameters: {n: '{{ parameters.n.id }}'}, happened: result.found, settle: 0s}}]",
        json!({"n": {}}),
    );
    scene.start();
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.events(), ["AttemptFailed", "PreparationFailed"]);
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn a_lost_probe_is_made_again() {
    let mut scene = doubtful(PROBED);
    for attempt in 2..=21 {
        scene.crash();
        assert_eq!(scene.calls(), [format!("probe a#{attempt}")]);
    }
    scene.crash();
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn a_late_answer_settles_the_doubt_about_that_very_attempt() {
    let table = [
        (done(json!({"id": 2})), "completed", vec!["b"]),
        (fails(Unavailable), "retrying", vec![]),
        // As if it had come in time: it is not in `retry.on`.
        (fails(ToolError), "waiting", vec![]),
        (maybe(ToolError), "in_doubt", vec![]),
    ];
    for (outcome, status, calls) in table {
        let mut scene = doubtful(PLAIN);
        scene.answers("a", CallSide::Do, 1, outcome.clone());
        assert_eq!(scene.step("a"), status, "{outcome:?}");
        assert_eq!(scene.calls(), calls, "{outcome:?}");
        assert_eq!(scene.count("LateAnswerArrived"), 1);
    }
}

#[test]
fn a_late_no_about_the_last_attempt_says_nothing_of_the_attempts_before() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set}]");
    scene.crash();
    assert_eq!(scene.calls(), ["a#2"]);
    scene.kill();
    scene.answers("a", CallSide::Do, 2, fails(ToolError));
    assert_eq!(scene.asks(), ["doubt a"], "the first attempt was lost, and may have taken effect");
    assert!(scene.part("a").effect.is_some());
    scene.answers("a", CallSide::Do, 2, done(json!({})));
    assert_eq!((scene.step("a"), scene.asks()), ("completed", vec![]));
}

#[test]
fn a_late_answer_settles_while_the_probe_runs_and_the_probes_answer_is_only_recorded() {
    let mut scene = doubtful(PROBED);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!(scene.calls(), ["b"]);
    scene.answers("a", CallSide::Probe, 1, done(json!({"found": false})));
    assert_eq!(scene.step("a"), "completed");
    assert_eq!(scene.calls(), [""; 0]);
}

#[test]
fn a_late_answer_to_a_settled_attempt_changes_nothing() {
    let mut scene = doubtful(PLAIN);
    scene.settle("a", false, json!(null));
    scene.answers("a", CallSide::Do, 1, done(json!({})));
    assert_eq!(scene.step("a"), "running");
    scene.returns("a", done(json!({"second": true})));
    scene.answers("a", CallSide::Do, 1, fails(ToolError));
    scene.answers("a", CallSide::Do, 2, fails(ToolError));
    assert_eq!(scene.step("a"), "completed");
}

/// W1: lost before it was recorded. W2: recorded, not sent. W3: sent, not answered. W4: during recovery.
#[test]
fn a_once_call_is_sent_at_most_once_whenever_the_driver_dies() {
    // W1: nothing was recorded, so nothing was sent.
    let mut scene = ExecutionScenario::of(PLAIN);
    let mut lost = scene.execution.clone();
    let moment = rutter_core::execution::input::DecisionContext { now: scene.now, room: 9 };
    assert_eq!(lost.decide(&person(), ExecutionInput::Start, moment).unwrap().calls.len(), 1);
    scene.crash();
    assert_eq!((scene.status(), scene.calls().len()), ("pending", 0));
    // W2 and W3 look the same from the journal: in doubt.
    scene.start();
    assert_eq!(scene.calls(), ["a"]);
    scene.crash();
    assert_eq!((scene.step("a"), scene.calls().len()), ("in_doubt", 0));
    // W4: a second recovery finds the same.
    scene.crash();
    scene.crash();
    assert_eq!(scene.asks(), ["doubt a"]);
    assert_eq!(scene.started_calls(CallSide::Do), ["a"]);
}

#[test]
fn whatever_may_be_repeated_is_sent_again_after_a_crash() {
    for (tool, rest) in [("t.read", ""), ("t.set", ""), ("t.keyed", ", parameters: {key: '{{ key }}'}")] {
        let mut scene = ExecutionScenario::started(&format!("steps: [{{id: a, tool: {tool}{rest}}}]"));
        scene.crash();
        assert_eq!(scene.calls(), ["a#2"], "{tool}");
    }
}

#[test]
fn safety_can_be_tightened_by_the_plan() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set, safety: once}]");
    scene.crash();
    assert_eq!(scene.step("a"), "in_doubt");
}

#[test]
fn a_keyed_tool_that_is_not_given_the_key_is_not_repeated() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.keyed, parameters: {key: mine}}]");
    scene.crash();
    assert_eq!(scene.step("a"), "in_doubt");
}

#[test]
fn a_doubt_gives_its_slot_to_others_in_parallel() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 2
steps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once}]",
    );
    scene.returns("a", maybe(Timeout));
    assert_eq!((scene.status(), scene.calls()), ("running", vec!["c".to_owned()]));
    scene.returns("b", done(json!({})));
    scene.returns("c", done(json!({})));
    assert_eq!((scene.status(), scene.asks()), ("waiting", vec!["doubt a".to_owned()]));
    scene.settle("a", true, json!({}));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn a_doubt_is_settled_before_a_failure_elsewhere_ends_the_execution() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 2
on_failure: cancel_all
steps: [{id: a, tool: t.once}, {id: b, tool: t.once}]",
    );
    scene.returns("a", maybe(Timeout));
    scene.returns("b", fails(ToolError));
    assert_eq!((scene.status(), scene.asks()), ("waiting", vec!["doubt a".to_owned()]));
    scene.settle("a", false, json!(null));
    assert_eq!((scene.status(), scene.step("a")), ("failed", "failed"));
    assert_eq!(scene.started_calls(CallSide::Do), ["a", "b"]);
}

#[test]
fn a_probe_is_made_while_stopping_too() {
    let mut scene = ExecutionScenario::started(PROBED);
    scene.cancel(None);
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.calls(), ["probe a"]);
    scene.returns("a", done(json!({"found": true, "id": 1})));
    assert_eq!((scene.status(), scene.step("a")), ("cancelled", "completed"));
}

#[test]
fn a_step_answered_by_retry_can_come_into_doubt_again() {
    let mut scene = ExecutionScenario::started(PLAIN);
    scene.returns("a", fails(ToolError));
    scene.answer_failure("a", QuestionAnswer::Retry);
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.answers("a", CallSide::Do, 1, done(json!({})));
    assert_eq!(scene.asks(), ["doubt a", "second effect a"], "the first attempt is another one");
    scene.answers("a", CallSide::Do, 2, done(json!({})));
    assert_eq!(scene.calls(), ["b"]);
}
