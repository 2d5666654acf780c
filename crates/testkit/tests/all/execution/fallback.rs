//! Fallbacks: another call, if the first has failed for good and certainly had no effect.

use rutter_core::journal::event::{CallSide, QuestionAnswer};
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::json;

fn plan(tool: &str) -> String {
    format!(
        "on_failure: manual_decision
steps:
  - id: a
    tool: {tool}
    retry: {{max_attempts: 2, jitter: false}}
    compensation: {{tool: t.undo, parameters: {{from: first}}}}
    fallback: {{tool: t.other, parameters: {{n: 2}}, compensation: {{tool: t.undo, parameters: {{from: second}}}}}}
  - {{id: b, tool: t.once, parameters: {{x: '{{{{ steps.a.result.x }}}}'}}}}"
    )
}

#[test]
fn the_fallback_follows_the_last_attempt() {
    let mut scene = ExecutionScenario::started(&plan("t.once"));
    scene.returns("a", fails(Unavailable));
    scene.wait();
    assert_eq!(scene.calls(), ["a#2"]);
    scene.returns("a", fails(Unavailable));
    assert_eq!(scene.calls(), ["fallback a"]);
    assert_eq!(scene.call("a").tool.as_str(), "t.other");
    assert_eq!(*scene.call("a").parameters, json!({"n": 2}));
}

#[test]
fn its_result_is_the_steps_and_its_own_compensation_undoes_it() {
    let mut scene = ExecutionScenario::started(&plan("t.once"));
    scene.returns("a", fails(ToolError));
    scene.returns("a", done(json!({"x": 1})));
    assert_eq!(*scene.call("b").parameters, json!({"x": 1}));
    scene.returns("b", done(json!({})));
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"from": "second"}));
}

#[test]
fn a_possible_effect_of_the_fallback_is_undone_as_such_after_the_step_was_resolved_by_hand() {
    let with_undo = "compensation: {tool: t.undo, parameters: {from: second}}";
    for (fallback, undone) in [(with_undo, true), ("retry: {max_attempts: 1}", false)] {
        let mut scene = ExecutionScenario::started(&format!(
            "steps:
  - id: a
    tool: t.once
    compensation: {{tool: t.undo, parameters: {{from: first}}}}
    fallback: {{tool: t.set, {fallback}}}"
        ));
        scene.returns("a", fails(ToolError));
        scene.returns("a", maybe(Unavailable));
        if undone {
            scene.wait();
            scene.returns("a", fails(ToolError));
        }
        assert_eq!(scene.asks(), ["failure a"]);
        scene.resolve("a", json!({}));
        assert_eq!(scene.status(), "completed");
        assert_eq!(scene.execution.undo_scope(None).len(), usize::from(undone));
        if undone {
            scene.compensate(None);
            assert_eq!(*scene.call("a").parameters, json!({"from": "second"}));
        }
    }
}

#[test]
fn there_is_no_fallback_after_a_call_that_may_have_happened() {
    let mut scene = ExecutionScenario::started(&plan("t.set"));
    scene.returns("a", maybe(Timeout));
    scene.wait();
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.calls(), [""; 0]);
    assert_eq!(scene.asks(), ["failure a"]);
    assert!(scene.part("a").effect.is_some());
}

#[test]
fn a_read_that_gets_no_answer_falls_back() {
    let fields = "steps: [{id: a, tool: t.read, timeout: 10s, retry: {max_attempts: 1}, fallback: {tool: t.find}}]";
    let mut scene = ExecutionScenario::started(fields);
    scene.later(10_000);
    assert_eq!(scene.calls(), ["fallback a"], "reading changes nothing, so nothing can have happened");
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", maybe(Unavailable));
    assert_eq!(scene.calls(), ["fallback a"]);
}

#[test]
fn a_fallback_has_its_own_attempts_and_its_own_failure() {
    let mut scene = ExecutionScenario::started(&plan("t.once"));
    scene.returns("a", fails(ToolError));
    scene.returns("a", fails(Unavailable));
    scene.wait();
    assert_eq!(scene.calls(), ["fallback a#2"]);
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.asks(), ["failure a"]);
    // A retry begins with the first call again.
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!(scene.calls(), ["a#2"]);
}

#[test]
fn a_fallback_in_doubt_has_no_probe_and_becomes_a_question() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, probe: {tool: t.find, happened: result.found, settle: 0s}, fallback: {tool: t.other}}]",
    );
    scene.returns("a", fails(ToolError));
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.settle("a", false, json!(null));
    assert_eq!(scene.calls(), ["fallback a#2"]);
    scene.crash();
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.settle("a", true, json!({}));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.started_calls(CallSide::Do), ["a"]);
}

#[test]
fn no_fallback_begins_after_a_cancel() {
    let mut scene = ExecutionScenario::started(&plan("t.once"));
    scene.cancel(None);
    scene.returns("a", fails(ToolError));
    assert_eq!((scene.status(), scene.calls().len()), ("cancelled", 0));
    let mut scene = ExecutionScenario::started(&plan("t.once"));
    scene.pause();
    scene.returns("a", fails(ToolError));
    assert_eq!((scene.step("a"), scene.calls().len()), ("retrying", 0));
    scene.cancel(None);
    assert_eq!((scene.status(), scene.step("a")), ("cancelled", "cancelled"));
}

#[test]
fn a_fallback_that_reads_nothing_is_killed_into_doubt() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, fallback: {tool: t.read}}]");
    scene.returns("a", fails(ToolError));
    scene.kill();
    assert_eq!(scene.step("a"), "cancelled", "a read leaves nothing behind");
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.read, fallback: {tool: t.other}}]");
    scene.returns("a", fails(ToolError));
    scene.kill();
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn a_denied_approval_is_no_reason_to_fall_back() {
    let mut scene =
        ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true, fallback: {tool: t.other}}]");
    scene.deny("a");
    assert_eq!(scene.asks(), ["failure a"]);
}

#[test]
fn a_fallback_without_compensation_remains() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, compensation: {tool: t.undo}, fallback: {tool: t.other}}]",
    );
    scene.returns("a", fails(ToolError));
    scene.returns("a", done(json!({})));
    assert_eq!(scene.refused(&person(), compensating(None)), "execution.nothing_to_undo");
}
