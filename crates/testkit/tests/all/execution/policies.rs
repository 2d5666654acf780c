//! The five failure policies, by shape.

use rutter_core::journal::event::{CallSide, QuestionAnswer};
use rutter_core::tool::FailureCategory::ToolError;
use rutter_testkit::scene::{ExecutionScenario, done, fails};
use serde_json::json;

/// `before` is done, `a` fails; the statuses of: before, a, after (order), reader (data), aside (neither).
#[test]
fn each_policy_reaches_as_far_as_it_says() {
    let table = [
        ("manual_decision", "waiting", ["completed", "waiting", "pending", "pending", "pending"]),
        ("cancel_all", "failed", ["completed", "failed", "cancelled", "cancelled", "cancelled"]),
        ("cancel_dependent", "partial", ["completed", "failed", "cancelled", "cancelled", "completed"]),
        ("continue_others", "partial", ["completed", "failed", "completed", "skipped", "completed"]),
        ("compensate", "compensated", ["compensated", "failed", "cancelled", "cancelled", "cancelled"]),
    ];
    for (policy, status, steps) in table {
        let mut scene = ExecutionScenario::started(&format!(
            "steps:
  - {{id: before, tool: t.once, compensation: {{tool: t.undo}}}}
  - {{id: a, tool: t.once, depends_on: [before], failure_policy: {{action: {policy}, reason: because}}}}
  - {{id: after, tool: t.once, depends_on: [a]}}
  - {{id: reader, tool: t.once, parameters: {{x: '{{{{ steps.a.result.x }}}}'}}}}
  - {{id: aside, tool: t.once, depends_on: [before]}}"
        ));
        scene.returns("before", done(json!({})));
        scene.returns("a", fails(ToolError));
        while let Some(call) = scene.last.calls.first().cloned() {
            scene.returns(&call.part.to_string(), done(json!({})));
        }
        assert_eq!(scene.steps(), steps, "{policy}");
        assert_eq!(scene.status(), status, "{policy}");
        assert_eq!(scene.count("FailureHandled"), 1, "{policy}");
    }
}

/// The failing step propagates beyond its dependents; `x` depends on the step it names.
#[test]
fn propagation_names_further_steps() {
    let table = [
        ("cancel_dependent", ["failed", "completed", "cancelled", "cancelled"]),
        ("continue_others", ["failed", "completed", "cancelled", "completed"]),
    ];
    for (policy, steps) in table {
        let mut scene = ExecutionScenario::started(&format!(
            "steps:
  - {{id: a, tool: t.once, failure_policy: {{action: {policy}, propagate_to: [named]}}}}
  - {{id: free, tool: t.once}}
  - {{id: named, tool: t.once}}
  - {{id: x, tool: t.once, depends_on: [named]}}"
        ));
        scene.returns("a", fails(ToolError));
        while let Some(call) = scene.last.calls.first().cloned() {
            scene.returns(&call.part.to_string(), done(json!({})));
        }
        assert_eq!(scene.steps(), steps, "{policy}");
        assert_eq!(scene.status(), "partial", "{policy}");
    }
}

#[test]
fn what_reads_a_cancelled_step_is_skipped_with_it() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, failure_policy: {action: continue_others, propagate_to: [named]}}
  - {id: named, tool: t.once}
  - {id: x, tool: t.once, parameters: {x: '{{ steps.named.result.x }}'}}",
    );
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.steps(), ["failed", "cancelled", "skipped"]);
    assert_eq!(scene.status(), "failed");
}

#[test]
fn propagation_does_not_affect_started_steps() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 2
steps:
  - {id: a, tool: t.once, failure_policy: {action: cancel_dependent, propagate_to: [b]}}
  - {id: b, tool: t.once}",
    );
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.step("b"), "running");
    scene.returns("b", done(json!({})));
    assert_eq!(scene.steps(), ["failed", "completed"]);
}

/// Running siblings finish, whatever the policy.
#[test]
fn running_siblings_finish_first() {
    for (policy, status) in [
        ("manual_decision", "waiting"),
        ("cancel_all", "failed"),
        ("cancel_dependent", "partial"),
        ("continue_others", "partial"),
        ("compensate", "compensated"),
    ] {
        let mut scene = ExecutionScenario::started(&format!(
            "max_parallel: 2
on_failure: {policy}
steps:
  - {{id: a, tool: t.once}}
  - {{id: b, tool: t.once, compensation: {{tool: t.undo}}}}"
        ));
        scene.returns("a", fails(ToolError));
        assert_eq!((scene.step("b"), scene.status()), ("running", "running"), "{policy}");
        scene.returns("b", done(json!({})));
        if policy == "compensate" {
            assert_eq!(scene.calls(), ["undo b"]);
            scene.returns("b", done(json!({})));
        }
        assert_eq!(scene.status(), status, "{policy}");
    }
}

#[test]
fn a_single_failing_step_fails_the_execution() {
    for policy in ["cancel_all", "cancel_dependent", "continue_others", "compensate"] {
        let mut scene = ExecutionScenario::started(&format!("on_failure: {policy}\nsteps: [{{id: a, tool: t.once}}]"));
        scene.returns("a", fails(ToolError));
        assert_eq!(scene.status(), "failed", "{policy}");
        assert!(scene.execution.view().remains.is_empty(), "{policy}");
    }
}

#[test]
fn two_failures_are_held_together_and_answered_one_by_one() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 2
steps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once, depends_on: [a]}]",
    );
    scene.returns("a", fails(ToolError));
    scene.returns("b", fails(ToolError));
    assert_eq!(scene.asks(), ["failure a", "failure b"]);
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!(scene.calls(), [""; 0], "b still holds everything up");
    scene.answer_failure("b", QuestionAnswer::Continue);
    assert_eq!(scene.calls(), ["a#2"]);
    scene.returns("a", done(json!({})));
    scene.returns("c", done(json!({})));
    assert_eq!(scene.status(), "partial");
    assert_eq!(scene.started_calls(CallSide::Do), ["a", "b", "a", "c"]);
}

#[test]
fn failures_along_a_chain_are_each_handled() {
    let mut scene = ExecutionScenario::started(
        "on_failure: continue_others
steps: [{id: a, tool: t.once}, {id: b, tool: t.once, depends_on: [a]}, {id: c, tool: t.once, depends_on: [b]}]",
    );
    for name in ["a", "b", "c"] {
        scene.returns(name, fails(ToolError));
    }
    assert_eq!(scene.steps(), ["failed", "failed", "failed"]);
    assert_eq!((scene.status(), scene.count("FailureHandled")), ("failed", 3));
}
