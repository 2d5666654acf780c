//! Conditions: which steps are skipped, and the effect on others.

use rutter_core::tool::FailureCategory::ToolError;
use rutter_testkit::scene::{ExecutionScenario, done, fails};
use serde_json::json;

/// `a` is skipped; `b` depends on it as each row says.
#[test]
fn a_skipped_step_stops_only_those_that_cannot_do_without_its_result() {
    let table = [
        ("order", "depends_on: [a]", "completed"),
        ("data", "parameters: {x: '{{ steps.a.result.x }}'}", "skipped"),
        (
            "soft data",
            "parameters: {x: \"{{ steps.a.result.x if steps.a.status == 'completed' else 0 }}\"}",
            "completed",
        ),
        ("status only", "when: \"steps.a.status == 'skipped'\"", "completed"),
        ("status only, false", "when: \"steps.a.status == 'completed'\"", "skipped"),
    ];
    for (what, need, expected) in table {
        let mut scene = ExecutionScenario::started(&format!(
            "steps:
  - {{id: a, tool: t.once, when: '1 == 2'}}
  - {{id: b, tool: t.once, {need}}}"
        ));
        if expected == "completed" {
            assert_eq!(scene.calls(), ["b"], "{what}");
            scene.returns("b", done(json!({})));
        }
        assert_eq!(scene.steps(), ["skipped", expected], "{what}");
        assert_eq!(scene.status(), "completed", "{what}");
    }
}

#[test]
fn skipping_propagates_along_data_and_ends_at_order() {
    let scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, when: 'false'}
  - {id: b, tool: t.once, parameters: {x: '{{ steps.a.result.x }}'}}
  - {id: c, tool: t.once, parameters: {x: '{{ steps.b.result.x }}'}}
  - {id: d, tool: t.once, depends_on: [c]}",
    );
    assert_eq!(scene.steps(), ["skipped", "skipped", "skipped", "running"]);
}

#[test]
fn a_condition_reads_inputs_and_results() {
    for (status, expected) in [("paid", "running"), ("open", "skipped")] {
        let mut scene = ExecutionScenario::with(
            "inputs: {type: object, properties: {wanted: {type: string}}}
steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, when: 'steps.a.result.status == inputs.wanted'}",
            json!({"wanted": "paid"}),
        );
        scene.start();
        scene.returns("a", done(json!({"status": status})));
        assert_eq!(scene.step("b"), expected);
    }
}

#[test]
fn a_condition_that_is_neither_true_nor_false_fails_the_step() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, when: 'steps.a.result.flag'}",
    );
    scene.returns("a", done(json!({"flag": "yes"})));
    assert_eq!(scene.asks(), ["failure b"]);
    assert_eq!(scene.count("PreparationFailed"), 1);
}

#[test]
fn a_plan_in_which_everything_is_skipped_completes() {
    let scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, when: 'false'}]");
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.count("AttemptStarted"), 0);
}

#[test]
fn a_condition_can_react_to_a_failure() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, failure_policy: continue_others}
  - {id: b, tool: t.once, when: \"steps.a.status == 'failed'\"}",
    );
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.calls(), ["b"]);
    scene.returns("b", done(json!({})));
    assert_eq!(scene.status(), "partial");
}

#[test]
fn a_skipped_fan_out_has_no_parts() {
    let scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, when: 'false', for_each: '[1, 2]'}]");
    assert_eq!(scene.steps(), ["skipped"]);
    assert_eq!(scene.count("FanOutOpened"), 0);
}
