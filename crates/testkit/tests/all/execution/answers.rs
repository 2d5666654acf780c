//! Every answer to every question.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::journal::event::{ExecutionLimit, Question, QuestionAnswer};
use rutter_core::tool::FailureCategory::ToolError;
use rutter_testkit::scene::*;
use serde_json::{Value, json};
use std::sync::Arc;

const ALL: [QuestionAnswer; 7] = [
    QuestionAnswer::Retry,
    QuestionAnswer::Skip,
    QuestionAnswer::Resolve,
    QuestionAnswer::Stop,
    QuestionAnswer::Continue,
    QuestionAnswer::Compensate,
    QuestionAnswer::Replan,
];

/// `before` is done and `a` failed; `order` comes after `a`, `data` reads it.
fn failed() -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: before, tool: t.once, compensation: {tool: t.undo}}
  - {id: a, tool: t.once, depends_on: [before]}
  - {id: data, tool: t.once, parameters: {x: '{{ steps.a.result.x }}'}}
  - {id: order, tool: t.once, depends_on: [a]}",
    );
    scene.returns("before", done(json!({})));
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.asks(), ["failure a"]);
    scene
}

#[test]
fn every_answer_to_a_failure_leads_where_it_says() {
    let table = [
        (QuestionAnswer::Retry, "running", ["completed", "running", "pending", "pending"], vec!["a#2"]),
        (QuestionAnswer::Skip, "running", ["completed", "skipped", "skipped", "running"], vec!["order"]),
        (QuestionAnswer::Resolve, "running", ["completed", "completed", "running", "pending"], vec!["data"]),
        (QuestionAnswer::Stop, "failed", ["completed", "failed", "cancelled", "cancelled"], vec![]),
        (QuestionAnswer::Continue, "running", ["completed", "failed", "skipped", "running"], vec!["order"]),
        (
            QuestionAnswer::Compensate,
            "compensating",
            ["compensating", "failed", "cancelled", "cancelled"],
            vec!["undo before"],
        ),
        (QuestionAnswer::Replan, "replanning", ["completed", "waiting", "pending", "pending"], vec![]),
    ];
    for (answer, status, steps, calls) in table {
        let mut scene = failed();
        scene.give(&agent(), answering(Question::Failure(step("a")), answer, Some(json!({"x": 1}))));
        assert_eq!(scene.status(), status, "{answer:?}");
        assert_eq!(scene.steps(), steps, "{answer:?}");
        assert_eq!(scene.calls(), calls, "{answer:?}");
    }
}

#[test]
fn what_was_left_out_by_answer_makes_the_end_partial() {
    for (answer, status) in [
        (QuestionAnswer::Skip, "partial"),
        (QuestionAnswer::Continue, "partial"),
        (QuestionAnswer::Resolve, "completed"),
    ] {
        let mut scene = failed();
        scene.give(&person(), answering(Question::Failure(step("a")), answer, Some(json!({"x": 1}))));
        while let Some(call) = scene.last.calls.first().cloned() {
            scene.returns(&call.part.to_string(), done(json!({})));
        }
        assert_eq!(scene.status(), status, "{answer:?}");
    }
}

#[test]
fn a_step_done_by_hand_gives_its_result_and_is_undone_like_any_other() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo, parameters: {id: '{{ result.id }}'}}}
  - {id: b, tool: t.once, parameters: {x: '{{ steps.a.result.id }}'}}",
    );
    scene.returns("a", fails(ToolError));
    scene.resolve("a", json!({"id": 4}));
    assert_eq!(*scene.call("b").parameters, json!({"x": 4}));
    assert!(scene.execution.view().steps[0].by_hand);
    scene.returns("b", done(json!({})));
    assert_eq!(scene.status(), "completed");
    scene.compensate(Some(&["a"]));
    scene.wake();
    assert_eq!(scene.execution.view().steps[0].status, "compensating");
}

#[test]
fn evidence_alone_is_enough_to_resolve_and_nothing_is_not() {
    let about = || Question::Failure(step("a"));
    let mut scene = failed();
    assert_eq!(
        scene.refused(&person(), answering(about(), QuestionAnswer::Resolve, None)),
        "execution.evidence_missing"
    );
    scene.give(
        &person(),
        ExecutionInput::Answer {
            about: about(),
            answer: QuestionAnswer::Resolve,
            reason: String::new(),
            result: Some(Arc::new(Value::Null)),
            evidence: Some(Arc::new(json!("a receipt"))),
        },
    );
    assert_eq!(scene.step("a"), "completed");
}

#[test]
fn a_resolved_read_has_nothing_to_undo() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.read}, {id: b, tool: t.once}]");
    scene.returns("a", fails(ToolError));
    scene.resolve("a", json!({}));
    assert!(scene.part("a").effect.is_none());
}

#[test]
fn each_question_has_its_own_answers() {
    // A compensation that failed.
    let stuck = || {
        let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]");
        scene.returns("a", done(json!({})));
        scene.compensate(None);
        scene.returns("a", fails(ToolError));
        assert_eq!((scene.asks(), scene.status()), (vec!["compensation a".to_owned()], "waiting"));
        scene
    };
    let over = || {
        let mut scene = ExecutionScenario::started(
            "budget: {calls: 1}
steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}, {id: b, tool: t.once}]",
        );
        scene.returns("a", done(json!({})));
        assert_eq!((scene.asks(), scene.status()), (vec!["limit Calls".to_owned()], "waiting"));
        scene
    };
    for answer in ALL {
        let about = Question::Compensation(part("a"));
        let mut scene = stuck();
        let input = answering(about, answer, Some(json!({})));
        let status = match answer {
            QuestionAnswer::Retry => "compensating",
            QuestionAnswer::Resolve => "compensated",
            QuestionAnswer::Skip => "failed",
            _ => {
                assert_eq!(scene.refused(&person(), input), "execution.no_such_answer", "{answer:?}");
                continue;
            }
        };
        scene.give(&person(), input);
        assert_eq!(scene.status(), status, "{answer:?}");
    }
    for answer in ALL {
        let mut scene = over();
        let input = answering(Question::Limit(ExecutionLimit::Calls), answer, Some(json!({})));
        let (status, calls) = match answer {
            QuestionAnswer::Continue => ("running", vec!["b"]),
            QuestionAnswer::Stop => ("failed", vec![]),
            QuestionAnswer::Compensate => ("compensating", vec!["undo a"]),
            QuestionAnswer::Replan => ("replanning", vec![]),
            _ => {
                assert_eq!(scene.refused(&person(), input), "execution.no_such_answer", "{answer:?}");
                continue;
            }
        };
        scene.give(&person(), input);
        assert_eq!((scene.status(), scene.calls()), (status, calls.iter().map(ToString::to_string).collect()));
    }
}

#[test]
fn a_question_that_is_not_open_is_not_answered() {
    let mut scene = failed();
    for about in [
        Question::Failure(step("before")),
        Question::Failure(step("nobody")),
        Question::Compensation(part("a")),
        Question::Compensation(part("nobody")),
        Question::Compensation(part("a[0]")),
        Question::Limit(ExecutionLimit::Cost),
    ] {
        let input = answering(about.clone(), QuestionAnswer::Retry, None);
        assert_eq!(scene.refused(&person(), input), "execution.no_question", "{about:?}");
    }
    scene.answer_failure("a", QuestionAnswer::Stop);
    let input = answering(Question::Failure(step("a")), QuestionAnswer::Stop, None);
    assert_eq!(scene.refused(&person(), input), "execution.no_such_answer");
}

#[test]
fn an_answer_while_paused_takes_effect_when_resumed() {
    let mut scene = failed();
    scene.pause();
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!((scene.calls().len(), scene.status()), (0, "paused"));
    scene.resume();
    assert_eq!(scene.calls(), ["a#2"]);
}
