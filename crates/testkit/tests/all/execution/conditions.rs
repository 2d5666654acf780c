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

/// Two branches meet in one step, which takes the result of whichever ran.
#[test]
fn both_branches_of_a_condition_meet_in_one_step() {
    for (go, ran, value) in [(true, "yes", 1), (false, "no", 2)] {
        let mut scene = ExecutionScenario::with(
            "inputs: {type: object, properties: {go: {type: boolean}}}
steps:
  - {id: yes, tool: t.once, when: inputs.go}
  - {id: no, tool: t.once, else_of: yes}
  - {id: join, tool: t.once, parameters: {n: '{{ steps.yes.result.n | default(steps.no.result.n) }}'}}
  - {id: note, tool: t.once, parameters: {n: \"{{ steps.join.result.n if steps.join.result is defined else 0 }}\"}}",
            json!({ "go": go }),
        );
        scene.start();
        assert_eq!(scene.calls(), [ran], "{go}");
        scene.returns(ran, done(json!({ "n": value })));
        assert_eq!(*scene.call("join").parameters, json!({ "n": value }), "{go}");
        scene.returns("join", done(json!({ "n": 9 })));
        scene.returns("note", done(json!({})));
        assert_eq!(scene.status(), "completed", "{go}");
        assert_eq!(scene.count("StepsSkipped"), 1, "{go}");
    }
}

/// `a` ends without a result, in every way; `b` reads it with a default, `c` without one.
#[test]
fn only_a_step_that_needs_the_missing_value_is_skipped() {
    for (a, ends) in [
        ("when: 'false'", "skipped"),
        ("failure_policy: continue_others", "failed"),
        ("failure_policy: manual_decision", "skipped"),
    ] {
        let mut scene = ExecutionScenario::started(&format!(
            "steps:
  - {{id: a, tool: t.once, {a}}}
  - {{id: b, tool: t.once, parameters: {{x: '{{{{ steps.a.result.x | default(7) }}}}'}}}}
  - {{id: c, tool: t.once, parameters: {{x: '{{{{ steps.a.result.x }}}}'}}}}
  - {{id: d, tool: t.once, when: 'steps.c.result is not defined', parameters: {{}}}}"
        ));
        if !a.starts_with("when") {
            scene.returns("a", fails(ToolError));
        }
        if a.ends_with("manual_decision") {
            scene.answer_failure("a", rutter_core::journal::event::QuestionAnswer::Skip);
        }
        assert_eq!(*scene.call("b").parameters, json!({"x": 7}), "{a}");
        scene.returns("b", done(json!({})));
        scene.returns("d", done(json!({})));
        assert_eq!(scene.steps(), [ends, "completed", "skipped", "completed"], "{a}");
        let reason = scene.execution.view().steps[2].skip_reason.clone();
        assert_eq!(reason.as_deref(), Some("a has no result"), "{a}");
    }
}

#[test]
fn a_condition_or_a_list_that_needs_the_missing_value_skips_its_step() {
    for need in [
        "when: 'steps.a.result.x > 1'",
        "for_each: steps.a.result",
        "for_each: '[1, 2]', parameters: {n: '{{ steps.a.result.x }}'}",
    ] {
        let scene = ExecutionScenario::started(&format!(
            "steps:
  - {{id: a, tool: t.once, when: 'false'}}
  - {{id: b, tool: t.once, {need}}}"
        ));
        assert_eq!(scene.steps(), ["skipped", "skipped"], "{need}");
        assert_eq!(scene.status(), "completed", "{need}");
    }
}

#[test]
fn an_item_that_can_do_without_the_missing_value_runs() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, when: 'false'}
  - {id: b, tool: t.once, for_each: '[1, 2]', parameters: {n: '{{ steps.a.result.x if item > 1 else item }}'}}",
    );
    assert_eq!(*scene.call("b[0]").parameters, json!({"n": 1}));
    scene.returns("b[0]", done(json!({})));
    assert_eq!(scene.asks(), ["failure b"]);
    let failure = scene.execution.view().steps[1].failure.clone().map(|failure| failure.message);
    assert_eq!(failure.as_deref(), Some("parameters/n: steps.a.result is missing, because a is skipped"));
}

#[test]
fn a_value_that_a_completed_step_does_not_have_still_fails_the_reader() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, parameters: {x: '{{ steps.a.result.x }}'}}",
    );
    scene.returns("a", done(json!({})));
    assert_eq!(scene.asks(), ["failure b"]);
}

/// `a` decides, `b` is its else with a condition of its own, `c` is the else of `b`.
#[test]
fn else_of_is_the_other_branch_and_chains() {
    for (first, second, ran) in [(true, true, "a"), (true, false, "a"), (false, true, "b"), (false, false, "c")] {
        let mut scene = ExecutionScenario::with(
            "inputs: {type: object, properties: {first: {type: boolean}, second: {type: boolean}}}
steps:
  - {id: a, tool: t.once, when: inputs.first}
  - {id: b, tool: t.once, else_of: a, when: inputs.second}
  - {id: c, tool: t.once, else_of: b}",
            json!({ "first": first, "second": second }),
        );
        scene.start();
        assert_eq!(scene.calls(), [ran], "{first} {second}");
        scene.returns(ran, done(json!({})));
        assert_eq!(scene.status(), "completed", "{first} {second}");
        assert_eq!(scene.steps().iter().filter(|status| **status == "skipped").count(), 2, "{first} {second}");
    }
}

#[test]
fn else_of_does_not_run_when_its_step_failed_or_lacked_data() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, when: '1 == 1', failure_policy: continue_others}
  - {id: b, tool: t.once, else_of: a}
  - {id: c, tool: t.once, when: 'steps.a.result.x'}
  - {id: d, tool: t.once, else_of: c}",
    );
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.steps(), ["failed", "skipped", "skipped", "skipped"]);
    let reasons: Vec<_> = scene.execution.view().steps.into_iter().map(|step| step.skip_reason).collect();
    let expected = [
        None,
        Some("a was not skipped by its condition".to_owned()),
        Some("a has no result".to_owned()),
        Some("c was not skipped by its condition".to_owned()),
    ];
    assert_eq!(reasons, expected);
}
