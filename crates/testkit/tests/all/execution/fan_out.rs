//! Steps that fan out over a list.

use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{CallSide, Question, QuestionAnswer};
use rutter_core::tool::FailureCategory::ToolError;
use rutter_core::tool::{CallOutcome, ToolFailure};
use rutter_testkit::scene::{ExecutionScenario, answering, done, fails, person};
use serde_json::{Value, json};

fn fan_out(items: Value, rest: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::with(
        &format!(
            "inputs: {{type: object, properties: {{list: {{}}}}}}
max_parallel: 8
steps:
  - {{id: a, tool: t.once, parameters: {{n: '{{{{ item }}}}', i: '{{{{ index }}}}'}}, {rest}}}
  - {{id: b, tool: t.once, parameters: {{all: '{{{{ steps.a.result }}}}'}}}}"
        ),
        json!({ "list": items }),
    );
    scene.start();
    scene
}

#[test]
fn an_empty_list_completes_with_an_empty_result() {
    let scene = fan_out(json!([]), "for_each: inputs.list");
    assert_eq!(scene.steps(), ["completed", "running"]);
    assert_eq!(*scene.call("b").parameters, json!({"all": []}));
}

#[test]
fn results_come_in_the_order_of_the_list_whatever_ends_first() {
    let mut scene = fan_out(json!([10, 20, 30]), "for_each: inputs.list");
    assert_eq!(scene.calls(), ["a[0]", "a[1]", "a[2]"]);
    assert_eq!(*scene.call("a[1]").parameters, json!({"n": 20, "i": 1}));
    for item in [2, 0, 1] {
        scene.returns(&format!("a[{item}]"), done(json!(item)));
    }
    assert_eq!(*scene.call("b").parameters, json!({"all": [0, 1, 2]}));
}

#[test]
fn a_fan_out_respects_its_own_limit() {
    let mut scene = fan_out(json!([1, 2, 3, 4]), "for_each: {items: inputs.list, max_parallel: 2}");
    assert_eq!(scene.calls(), ["a[0]", "a[1]"]);
    scene.returns("a[1]", done(json!(1)));
    assert_eq!(scene.calls(), ["a[2]"]);
    scene.returns("a[0]", done(json!(0)));
    assert_eq!(scene.calls(), ["a[3]"]);
    assert_eq!(scene.execution.view().steps[0].items, Some((2, 4)));
}

#[test]
fn a_list_is_refused_beyond_its_bound() {
    for (length, calls) in [(1, 1), (2, 2), (3, 0)] {
        let list: Vec<usize> = (0..length).collect();
        let scene = fan_out(json!(list), "for_each: {items: inputs.list, max_items: 2}");
        assert_eq!(scene.calls().len(), calls, "{length} items");
        assert_eq!(scene.asks().is_empty(), calls > 0, "{length} items");
    }
}

#[test]
fn what_is_no_list_fails_the_step() {
    for value in [json!("text"), json!(3), json!({"a": 1}), json!(null)] {
        let mut scene = fan_out(value.clone(), "for_each: inputs.list");
        assert_eq!(scene.asks(), ["failure a"], "{value}");
        // Retrying evaluates it again.
        scene.answer_failure("a", QuestionAnswer::Retry);
        assert_eq!(scene.asks(), ["failure a"], "{value}");
    }
}

#[test]
fn a_fan_out_without_parts_can_be_resolved_by_hand() {
    let mut scene = fan_out(json!("text"), "for_each: inputs.list");
    scene.resolve("a", json!([1, 2]));
    assert_eq!(*scene.call("b").parameters, json!({"all": [1, 2]}));
}

/// With one slot, item 0 fails: do the others start, and how do the steps end?
#[test]
fn a_failing_item_stops_the_others_unless_the_policy_lets_them_continue() {
    let table = [
        ("manual_decision", 1, "waiting", vec!["waiting", "pending"]),
        ("cancel_all", 1, "failed", vec!["failed", "cancelled"]),
        ("cancel_dependent", 1, "failed", vec!["failed", "cancelled"]),
        ("compensate", 1, "failed", vec!["failed", "cancelled"]),
        ("continue_others", 3, "failed", vec!["failed", "skipped"]),
    ];
    for (policy, calls, status, steps) in table {
        let rest = format!("for_each: {{items: inputs.list, max_parallel: 1}}, failure_policy: {policy}");
        let mut scene = fan_out(json!([1, 2, 3]), &rest);
        scene.returns("a[0]", fails(ToolError));
        for item in 1..calls {
            scene.returns(&format!("a[{item}]"), done(json!({})));
        }
        assert_eq!(scene.started_calls(CallSide::Do).len(), calls, "{policy}");
        assert_eq!(scene.steps(), steps, "{policy}");
        assert_eq!(scene.status(), status, "{policy}");
    }
}

#[test]
fn items_under_way_finish_before_the_failure_is_handled() {
    let mut scene = fan_out(json!([1, 2, 3]), "for_each: {items: inputs.list, max_parallel: 2}");
    scene.returns("a[0]", fails(ToolError));
    assert_eq!(scene.asks(), [""; 0]);
    scene.returns("a[1]", done(json!(1)));
    assert_eq!(scene.asks(), ["failure a"]);
}

#[test]
fn only_failed_and_held_back_items_are_tried_again() {
    let mut scene = fan_out(json!([1, 2, 3, 4]), "for_each: {items: inputs.list, max_parallel: 2}");
    scene.returns("a[0]", fails(ToolError));
    scene.returns("a[1]", done(json!(1)));
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!(scene.calls(), ["a[0]#2", "a[2]"]);
    for item in [0, 2, 3] {
        scene.returns(&format!("a[{item}]"), done(json!(item)));
    }
    assert_eq!(*scene.call("b").parameters, json!({"all": [0, 1, 2, 3]}));
}

#[test]
fn skipping_and_continuing_leave_the_held_back_items_undone() {
    for (answer, expected) in [(QuestionAnswer::Skip, "skipped"), (QuestionAnswer::Continue, "failed")] {
        let mut scene = fan_out(json!([1, 2]), "for_each: {items: inputs.list, max_parallel: 1}");
        scene.returns("a[0]", fails(ToolError));
        scene.answer_failure("a", answer);
        assert_eq!(scene.steps(), [expected, "skipped"]);
        assert_eq!(scene.status(), "failed");
    }
}

#[test]
fn each_item_has_its_own_key_and_its_own_undo() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 4
steps:
  - id: a
    tool: t.once
    for_each: '[5, 5]'
    parameters: {n: '{{ item }}'}
    compensation: {tool: t.undo, parameters: {id: '{{ result.id }}', n: '{{ item }}'}}",
    );
    assert_ne!(scene.call("a[0]").key, scene.call("a[1]").key);
    scene.returns("a[0]", done(json!({"id": "x"})));
    scene.returns("a[1]", done(json!({"id": "y"})));
    scene.compensate(None);
    assert_eq!(scene.calls(), ["undo a[1]", "undo a[0]"]);
    assert_eq!(*scene.call("a[0]").parameters, json!({"id": "x", "n": 5}));
    scene.returns("a[0]", done(json!({})));
    scene.returns("a[1]", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn each_item_asks_for_its_own_approval() {
    let mut scene = fan_out(json!([1, 2]), "for_each: inputs.list, approval: true");
    assert_eq!(scene.asks(), ["approval a[0]", "approval a[1]"]);
    assert_ne!(scene.asked("a[0]"), scene.asked("a[1]"));
    scene.approve("a[1]");
    assert_eq!(scene.calls(), ["a[1]"]);
}

#[test]
fn a_long_list_runs_within_its_limit() {
    let list: Vec<usize> = (0..200).collect();
    let mut scene = fan_out(json!(list), "for_each: {items: inputs.list, max_parallel: 3}");
    for item in 0..200 {
        scene.returns(&format!("a[{item}]"), done(json!(item)));
    }
    assert_eq!(*scene.call("b").parameters, json!({ "all": list }));
}

/// Four items, of which as many fail as each row says.
#[test]
fn a_tolerated_fan_out_completes_with_null_where_an_item_failed() {
    for (tolerate, failing, completes) in [
        ("0", 1, false),
        ("1", 1, true),
        ("1", 2, false),
        ("2", 2, true),
        ("25%", 1, true),
        ("25%", 2, false),
        ("49%", 1, true),
        ("100%", 4, true),
    ] {
        let mut scene =
            fan_out(json!([1, 2, 3, 4]), &format!("for_each: {{items: inputs.list, tolerate: {tolerate}}}"));
        for item in 0..4 {
            let outcome = if item < failing { fails(ToolError) } else { done(json!(item)) };
            scene.returns(&format!("a[{item}]"), outcome);
        }
        if completes {
            let results: Vec<Value> =
                (0..4).map(|item| if item < failing { Value::Null } else { json!(item) }).collect();
            assert_eq!(*scene.call("b").parameters, json!({ "all": results }), "{tolerate}, {failing}");
        } else {
            assert_eq!(scene.asks(), ["failure a"], "{tolerate}, {failing}");
        }
    }
}

#[test]
fn the_items_of_a_failed_fan_out_can_be_read() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 4
steps:
  - {id: a, tool: t.once, for_each: '[5, 6]', failure_policy: continue_others}
  - id: b
    tool: t.once
    parameters:
      all: '{{ steps.a.items }}'
      first: '{{ steps.a.items.0.result.n | default(0) }}'
      second: '{{ steps.a.items[1].result.n }}'
      why: '{{ steps.a.items[0].failure.category }}'",
    );
    scene.returns("a[0]", fails(ToolError));
    scene.returns("a[1]", done(json!({ "n": 6 })));
    let parameters = &scene.call("b").parameters;
    assert_eq!((&parameters["first"], &parameters["second"]), (&json!(0), &json!(6)));
    assert_eq!(parameters["why"], "tool_error");
    assert_eq!(parameters["all"][1], json!({ "status": "completed", "result": { "n": 6 } }));
    assert_eq!(parameters["all"][0]["status"], "failed");
}

#[test]
fn one_failed_item_is_retried_skipped_or_resolved_by_itself() {
    let mut scene = fan_out(json!([1, 2, 3, 4]), "for_each: inputs.list");
    for item in 0..3 {
        scene.returns(&format!("a[{item}]"), fails(ToolError));
    }
    scene.returns("a[3]", done(json!(3)));
    let item = |item: u32| Question::Item(PartId { step: StepId::new("a"), item: Some(item) });
    scene.answer(item(2), QuestionAnswer::Retry);
    assert_eq!(scene.calls(), ["a[2]#2"]);
    // Another one can be decided meanwhile.
    scene.give(&person(), answering(item(1), QuestionAnswer::Resolve, Some(json!("by hand"))));
    scene.returns("a[2]", done(json!(2)));
    assert_eq!(scene.asks(), ["failure a"]);
    assert_eq!(scene.refused(&person(), answering(item(2), QuestionAnswer::Retry, None)), "execution.no_question");
    scene.answer(item(0), QuestionAnswer::Skip);
    assert_eq!(*scene.call("b").parameters, json!({ "all": [null, "by hand", 2, 3] }));
    scene.returns("b", done(json!({})));
    assert_eq!(scene.status(), "partial");
}

#[test]
fn items_that_were_held_back_go_on_once_the_failed_one_is_decided() {
    for answer in [QuestionAnswer::Retry, QuestionAnswer::Skip, QuestionAnswer::Resolve] {
        let mut scene = fan_out(json!([1, 2, 3]), "for_each: {items: inputs.list, max_parallel: 1}");
        scene.returns("a[0]", fails(ToolError));
        let about = Question::Item(PartId { step: StepId::new("a"), item: Some(0) });
        let result = (answer == QuestionAnswer::Resolve).then(|| json!(0));
        scene.give(&person(), answering(about, answer, result));
        if answer == QuestionAnswer::Retry {
            scene.returns("a[0]", done(json!(0)));
        }
        for item in [1, 2] {
            scene.returns(&format!("a[{item}]"), done(json!(item)));
        }
        let first = if answer == QuestionAnswer::Skip { Value::Null } else { json!(0) };
        assert_eq!(*scene.call("b").parameters, json!({ "all": [first, 1, 2] }), "{answer:?}");
    }
}

#[test]
fn what_was_done_before_a_fan_out_was_left_out_remains() {
    let mut scene = fan_out(json!([1, 2]), "for_each: inputs.list");
    scene.returns("a[0]", done(json!(0)));
    scene.returns("a[1]", fails(ToolError));
    scene.answer_failure("a", QuestionAnswer::Skip);
    let view = scene.execution.view();
    assert_eq!((scene.status(), json!(view.remains)), ("failed", json!(["a[0]"])));
    let unmet: Vec<String> = view.unmet.iter().map(|unmet| unmet.step.to_string()).collect();
    assert_eq!(unmet[0], "a");
}

#[test]
fn a_waiting_execution_says_a_long_cause_once() {
    let id = "a".repeat(100);
    let mut scene = ExecutionScenario::started(&format!("steps:\n  - {{id: {id}, tool: t.once}}"));
    let why = "the card was refused ".repeat(20);
    scene.returns(&id, CallOutcome::NotDone(ToolFailure::new(ToolError, why)));
    let summary = scene.execution.view().summary();
    assert_eq!(summary.matches(&format!("{id} failed")).count(), 1, "{summary}");
}
