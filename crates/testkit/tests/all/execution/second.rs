//! Late effects: a call that was settled otherwise took effect after all.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::part::PartState;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::journal::event::{CallSide, Question, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory::{Timeout, ToolError};
use rutter_core::tool::{CallOutcome, ToolFailure};
use rutter_testkit::scene::*;
use serde_json::json;

const CHARGE: &str = "steps:
  - id: a
    tool: t.once
    parameters: {n: 1}
    retry: {max_attempts: 3}
    compensation: {tool: t.undo_once, parameters: {charge: '{{ result.id }}'}}";

/// The first attempt is settled as not done, and the second one runs.
fn sent_again(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", maybe(Timeout));
    scene.settle("a", false, json!(null));
    assert_eq!(scene.calls(), ["a#2"]);
    scene
}

/// Both attempts took effect, and the execution has ended.
fn charged_twice() -> ExecutionScenario {
    let mut scene = sent_again(CHARGE);
    scene.returns("a", done(json!({"id": 2})));
    assert_eq!(scene.status(), "completed");
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    scene
}

fn remains(scene: &ExecutionScenario) -> Vec<String> {
    scene.execution.view().remains.iter().map(ToString::to_string).collect()
}

fn about() -> Question {
    Question::SecondEffect(part("a"))
}

#[test]
fn a_late_done_beside_another_one_is_a_deviation_a_question_and_remains() {
    let mut scene = charged_twice();
    assert_eq!(scene.events(), ["LateAnswerArrived", "DeviationFound"]);
    assert_eq!(scene.execution.row().deviation_marks(), ["second effect"]);
    assert_eq!(scene.deviations(), ["SecondEffect a"]);
    assert_eq!((scene.asks(), remains(&scene)), (vec!["second effect a".into()], vec!["a".into()]));
    scene.crash();
    assert_eq!((scene.status(), scene.asks()), ("completed", vec!["second effect a".to_owned()]));
}

#[test]
fn undo_offsets_every_effect_with_its_own_result_and_key() {
    let mut scene = charged_twice();
    scene.compensate(None);
    let (first, key) = (scene.call("a").parameters.clone(), scene.call("a").key);
    assert_eq!(*first, json!({"charge": 2}));
    scene.returns("a", done(json!({})));
    assert_eq!(scene.calls(), ["undo a#2"]);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 1}));
    assert_ne!(scene.call("a").key, key);
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), scene.asks(), remains(&scene)), ("compensated", vec![], vec![]));
}

#[test]
fn a_person_can_let_it_stand_or_undo_it_alone() {
    let mut scene = charged_twice();
    assert_eq!(scene.refused(&agent(), answering(about(), QuestionAnswer::Continue, None)), "execution.not_a_person");
    assert_eq!(scene.refused(&person(), answering(about(), QuestionAnswer::Retry, None)), "execution.no_such_answer");
    scene.answer(about(), QuestionAnswer::Continue);
    assert_eq!((scene.status(), scene.asks(), remains(&scene)), ("completed", vec![], vec![]));
    assert_eq!(scene.refused(&person(), answering(about(), QuestionAnswer::Continue, None)), "execution.no_question");

    let mut scene = charged_twice();
    scene.answer(about(), QuestionAnswer::Compensate);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 1}));
    scene.crash();
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.settle("a", true, json!(null));
    assert_eq!((scene.status(), scene.step("a"), remains(&scene)), ("completed", "completed", vec![]));
    // Its own effect is still there, and can be undone.
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 2}));
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn what_was_let_stand_is_undone_with_everything_else() {
    let mut scene = charged_twice();
    scene.answer(about(), QuestionAnswer::Continue);
    scene.compensate(None);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.calls(), ["undo a#2"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn an_effect_that_comes_after_the_undo_remains_until_it_is_undone_too() {
    let mut scene = sent_again(CHARGE);
    scene.returns("a", done(json!({"id": 2})));
    scene.compensate(None);
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), remains(&scene)), ("compensated", vec![]));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!((scene.asks(), remains(&scene)), (vec!["second effect a".into()], vec!["a".into()]));
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 1}));
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), remains(&scene)), ("compensated", vec![]));
}

#[test]
fn a_step_that_failed_has_the_late_effect_as_its_own() {
    let mut scene = ExecutionScenario::started(
        &format!("on_failure: cancel_all\n{CHARGE}").replace("max_attempts: 3", "max_attempts: 1"),
    );
    scene.returns("a", fails(ToolError));
    assert_eq!((scene.status(), remains(&scene)), ("failed", vec![]));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 7})));
    // It used to be a deviation that nobody was asked about.
    let asked = (vec!["SecondEffect a".into()], vec!["late effect a".to_owned()]);
    assert_eq!((scene.deviations(), scene.asks()), asked);
    assert_eq!(remains(&scene), ["a"]);
    scene.crash();
    assert_eq!(scene.asks(), ["late effect a"]);
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 7}));
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), scene.asks(), remains(&scene)), ("compensated", vec![], vec![]));
}

#[test]
fn a_retry_that_has_not_started_is_not_sent_once_the_first_call_turns_out_to_be_done() {
    let mut scene = ExecutionScenario::started(CHARGE);
    scene.returns("a", maybe(Timeout));
    scene.pause();
    scene.settle("a", false, json!(null));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!((scene.status(), scene.started_calls(CallSide::Do)), ("completed", vec!["a".to_owned()]));
}

#[test]
fn a_late_done_completes_a_step_that_failed_and_waits_for_a_decision() {
    let mut scene = ExecutionScenario::started(CHARGE);
    scene.returns("a", fails(ToolError));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    // It used to stay a question, which could be answered with another result than the tool's.
    assert_eq!((scene.asks(), scene.deviations()), (vec![], vec!["SecondEffect a".to_owned()]));
    assert_eq!((scene.status(), scene.started_calls(CallSide::Do)), ("completed", vec!["a".to_owned()]));
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 1}));
}

#[test]
fn a_late_done_whose_result_cannot_be_read_leaves_the_question_open() {
    let mut scene = ExecutionScenario::started(CHARGE);
    scene.returns("a", fails(ToolError));
    let unusable = CallOutcome::Maybe(ToolFailure::answered("result/id: is not a string"));
    scene.answers("a", CallSide::Do, 1, unusable);
    assert_eq!(scene.asks(), ["late effect a", "failure a"]);
    scene.resolve("a", json!({"id": 5}));
    assert_eq!((scene.status(), scene.asks()), ("completed", vec![]));
    let correcting =
        ExecutionInput::Correct { part: part("a"), happened: false, reason: "no".into(), result: None, evidence: None };
    assert_eq!(scene.refused(&person(), correcting), "execution.answered");
}

#[test]
fn the_late_done_of_an_item_completes_it() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, for_each: '[1, 2]', retry: {max_attempts: 1}}
  - {id: b, tool: t.once, depends_on: [a], parameters: {list: '{{ steps.a.result }}'}}",
    );
    scene.returns("a[0]", fails(ToolError));
    assert_eq!(scene.asks(), ["failure a"]);
    scene.answers("a[0]", CallSide::Do, 1, done(json!(1)));
    assert_eq!((scene.asks(), scene.calls()), (vec![], vec!["a[1]".to_owned()]));
    scene.returns("a[1]", done(json!(2)));
    assert_eq!(*scene.call("b").parameters, json!({"list": [1, 2]}));
}

/// The tool answered "done" after the step had failed and its execution had ended.
fn failed_and_done(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", fails(ToolError));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 7})));
    scene
}

#[test]
fn what_a_tool_answered_late_is_not_replaced_by_hand() {
    let ended = format!("on_failure: cancel_all\n{CHARGE}");
    for actor in [person(), agent()] {
        let mut scene = failed_and_done(&ended);
        let about = Question::Failure(step("a"));
        let resolving = answering(about, QuestionAnswer::Resolve, Some(json!({"id": 99})));
        assert_eq!(scene.refused(&actor, resolving), "execution.answered");
        scene.compensate(None);
        assert_eq!(*scene.call("a").parameters, json!({"charge": 7}));
    }
    let mut scene = failed_and_done(&ended);
    let about = Question::Failure(step("a"));
    scene.give(&person(), answering(about, QuestionAnswer::Retry, None));
    assert_eq!((scene.status(), scene.started_calls(CallSide::Do)), ("completed", vec!["a".to_owned()]));
    let correcting = |happened, result: Option<serde_json::Value>| ExecutionInput::Correct {
        part: part("a"),
        happened,
        reason: "no".into(),
        result: result.map(std::sync::Arc::new),
        evidence: None,
    };
    assert_eq!(scene.refused(&person(), correcting(false, None)), "execution.not_by_hand");
    assert_eq!(scene.refused(&person(), correcting(true, Some(json!({"id": 8})))), "execution.not_by_hand");
}

#[test]
fn the_only_effect_of_a_step_is_asked_about_wherever_it_comes_too_late_to_go_on() {
    let policy =
        |action: &str| format!("{CHARGE}\n    failure_policy: {{action: {action}}}\n  - {{id: b, tool: t.once}}");
    for fields in [policy("compensate"), policy("cancel_all"), policy("continue_others")] {
        let mut scene = failed_and_done(&fields.replace("max_attempts: 3", "max_attempts: 1"));
        assert!(scene.asks().contains(&"late effect a".to_owned()), "{fields}");
        if scene.status() == "running" {
            scene.returns("b", done(json!({})));
        }
        assert_eq!((scene.asks(), remains(&scene)), (vec!["late effect a".to_owned()], vec!["a".to_owned()]));
        let view = scene.execution.view();
        assert!(view.summary().contains("attempt 1 took effect after all"), "{}", view.summary());
        scene.answer(about(), QuestionAnswer::Compensate);
        assert_eq!(*scene.call("a").parameters, json!({"charge": 7}));
        scene.returns("a", done(json!({})));
        assert_eq!((scene.asks(), remains(&scene)), (vec![], vec![]));
        let unmet = scene.execution.view().unmet;
        assert!(unmet.iter().all(|unmet| !unmet.reason.ends_with("tool_error: broken")), "{unmet:?}");
    }
}

#[test]
fn a_cancelled_call_that_took_effect_is_asked_about_and_can_stand() {
    for undo in [true, false] {
        let mut scene = ExecutionScenario::started(CHARGE);
        scene.returns("a", maybe(Timeout));
        scene.cancel(Some(undo));
        scene.settle("a", false, json!(null));
        assert_eq!(scene.asks(), [""; 0]);
        scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
        assert_eq!((scene.asks(), remains(&scene)), (vec!["late effect a".to_owned()], vec!["a".to_owned()]));
        assert_eq!(
            scene.refused(&person(), answering(about(), QuestionAnswer::Skip, None)),
            "execution.no_such_answer"
        );
        scene.answer(about(), QuestionAnswer::Continue);
        assert_eq!((scene.asks(), remains(&scene)), (vec![], vec!["a".to_owned()]));
    }
}

#[test]
fn a_question_about_two_effects_names_both() {
    let scene = charged_twice();
    let text = scene.execution.questions()[0].to_string();
    assert!(text.contains("{\"id\":2}") && text.contains("attempt 1, answered late: {\"id\":1}"), "{text}");
}

#[test]
fn a_doubt_names_the_call_that_is_in_doubt() {
    let mut scene = ExecutionScenario::started(REFUND);
    scene.returns("a", maybe(Timeout));
    let text = scene.execution.questions()[0].to_string();
    assert!(
        text.starts_with("a person must say whether a happened (") && text.contains("attempt 1 of t.once, sent "),
        "{text}"
    );
    scene.settle("a", true, json!({"id": 1}));
    scene.compensate(None);
    scene.returns("a", maybe(Timeout));
    let text = scene.execution.questions()[0].to_string();
    assert!(text.starts_with("a person must say whether the compensation of a happened ("), "{text}");
    assert!(text.contains("attempt 1 of t.undo_once, sent ") && text.contains("with {\"charge\":1}, key "), "{text}");
    assert!(scene.execution.failures()[0].to_string().starts_with("the compensation of a may have happened"));
}

#[test]
fn nothing_is_sent_a_third_time_once_the_first_call_turns_out_to_be_done() {
    let mut scene = sent_again(CHARGE);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!(scene.asks(), ["second effect a"]);
    scene.returns("a", fails(Timeout));
    // The answer is the result: it used to stay a question whether to try again.
    assert_eq!((scene.calls(), scene.asks(), scene.status()), (vec![], vec![], "completed"));
    assert!(scene.part("a").effect.is_some_and(|effect| effect.certain && effect.attempt == 1));
}

#[test]
fn the_same_attempt_settled_as_happened_has_no_second_effect() {
    let mut scene = ExecutionScenario::started(CHARGE);
    scene.returns("a", maybe(Timeout));
    scene.settle("a", true, json!({"id": 1}));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!((scene.count("LateAnswerArrived"), scene.deviations(), scene.asks()), (1, vec![], vec![]));
}

#[test]
fn a_second_answer_to_a_call_that_succeeded_leaves_a_trace() {
    let mut scene = ExecutionScenario::started(CHARGE);
    scene.returns("a", done(json!({"id": 1})));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 99})));
    assert_eq!((scene.count("LateAnswerArrived"), scene.deviations(), scene.asks()), (1, vec![], vec![]));
}

#[test]
fn calls_that_may_be_repeated_have_no_second_effects() {
    for (tool, parameters) in [("t.set", "{}"), ("t.read", "{}"), ("t.keyed", "{key: '{{ key }}'}")] {
        let mut scene =
            ExecutionScenario::started(&format!("steps: [{{id: a, tool: {tool}, parameters: {parameters}}}]"));
        scene.crash();
        scene.returns("a", done(json!({})));
        scene.answers("a", CallSide::Do, 1, done(json!({})));
        assert_eq!((scene.deviations(), scene.asks()), (vec![], vec![]), "{tool}");
    }
}

#[test]
fn a_fallback_that_completed_and_the_first_call_are_each_undone_by_their_own_compensation() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - id: a
    tool: t.once
    retry: {max_attempts: 1}
    compensation: {tool: t.undo_once, parameters: {of: '{{ result.id }}'}}
    fallback: {tool: t.other, compensation: {tool: t.undo, parameters: {instead: '{{ result.id }}'}}}",
    );
    scene.returns("a", fails(ToolError));
    scene.returns("a", done(json!({"id": 2})));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!(scene.asks(), ["second effect a"]);
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"instead": 2}));
    scene.returns("a", done(json!({})));
    assert_eq!(*scene.call("a").parameters, json!({"of": 1}));
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), remains(&scene)), ("compensated", vec![]));
    assert!(matches!(scene.part("a").state, PartState::Compensated { .. }));
}

#[test]
fn an_undoing_that_took_effect_twice_is_a_deviation() {
    let mut scene = ExecutionScenario::started(CHARGE);
    scene.returns("a", done(json!({"id": 1})));
    scene.compensate(None);
    scene.returns("a", maybe(Timeout));
    scene.settle("a", false, json!(null));
    scene.returns("a", done(json!({})));
    scene.answers("a", CallSide::Undo, 1, done(json!({})));
    assert_eq!(scene.deviations(), ["SecondEffect a"]);
}

#[test]
fn a_second_report_of_an_agent_is_a_duplicate_and_its_result_is_kept() {
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
    scene.record_started("a");
    scene.record_finished("a", json!({"id": 1}));
    scene.record_finished("a", json!({"id": 2}));
    assert_eq!(scene.events(), ["LateAnswerArrived", "DeviationFound"]);
    assert_eq!(scene.deviations(), ["Duplicate a"]);
}

#[test]
fn a_late_done_of_a_step_that_a_replan_dropped_is_a_deviation_once() {
    let dropped = |tool: &str| {
        let fields = format!(
            "steps: [{{id: a, tool: {tool}, parameters: {{n: 1}}, retry: {{max_attempts: 1}}, failure_policy: {{action: manual_decision}}}}]"
        );
        let mut scene = ExecutionScenario::started(&fields);
        scene.returns("a", fails(ToolError));
        assert_eq!(scene.asks(), ["failure a"]);
        scene.replan("steps: [{id: b, tool: t.read}]");
        scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
        scene
    };
    let mut scene = dropped("t.once");
    assert_eq!(scene.deviations(), ["SecondEffect a"]);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    scene.answers("a", CallSide::Do, 1, fails(ToolError));
    assert_eq!(scene.deviations(), ["SecondEffect a"]);
    assert_eq!(dropped("t.read").deviations(), [""; 0], "it had no effect");
}

const REFUND: &str = "steps:
  - id: a
    tool: t.once
    compensation: {tool: t.undo_once, parameters: {charge: '{{ result.id }}'}, retry: {max_attempts: 3}}";

/// The first attempt to undo was given up and settled as not done.
fn refunded_late(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", done(json!({"id": 1})));
    scene.compensate(None);
    scene.returns("a", maybe(Timeout));
    scene
}

#[test]
fn a_late_done_of_a_compensation_that_waits_to_be_repeated_compensates() {
    let mut scene = refunded_late(REFUND);
    scene.pause();
    scene.settle("a", false, json!(null));
    scene.answers("a", CallSide::Undo, 1, done(json!({})));
    assert_eq!((scene.step("a"), scene.deviations()), ("compensated", vec![]));
    assert_eq!(scene.started_calls(CallSide::Undo), ["a"], "there is one refund");
}

#[test]
fn a_late_done_of_a_compensation_that_failed_compensates() {
    let mut scene = refunded_late(&REFUND.replace("max_attempts: 3", "max_attempts: 1"));
    scene.settle("a", false, json!(null));
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.asks(), ["compensation a"]);
    scene.answers("a", CallSide::Undo, 1, done(json!({})));
    assert_eq!((scene.step("a"), scene.asks(), remains(&scene)), ("compensated", vec![], vec![]));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn a_compensation_that_is_known_to_be_done_is_not_repeated_when_its_repeat_fails() {
    let mut scene = refunded_late(REFUND);
    scene.settle("a", false, json!(null));
    scene.answers("a", CallSide::Undo, 1, done(json!({})));
    assert_eq!(scene.deviations(), [""; 0], "the second one may still fail");
    scene.returns("a", fails(ToolError));
    assert_eq!((scene.status(), scene.started_calls(CallSide::Undo).len()), ("compensated", 2));
    assert_eq!(scene.deviations(), [""; 0]);
}

#[test]
fn two_compensations_that_are_both_done_are_a_deviation() {
    let mut scene = refunded_late(REFUND);
    scene.settle("a", false, json!(null));
    scene.answers("a", CallSide::Undo, 1, done(json!({})));
    scene.crash();
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.settle("a", true, json!(null));
    assert_eq!((scene.status(), scene.deviations()), ("compensated", vec!["SecondEffect a".to_owned()]));
}

#[test]
fn a_compensation_that_a_person_settled_as_done_is_done_once() {
    let mut scene = refunded_late(REFUND);
    scene.settle("a", true, json!(null));
    scene.answers("a", CallSide::Undo, 1, done(json!({})));
    assert_eq!((scene.status(), scene.deviations()), ("compensated", vec![]));
}

#[test]
fn what_a_probe_finds_beside_a_known_effect_settles_nothing() {
    let probe = "    probe: {tool: t.find, parameters: {key: '{{ key }}'}, happened: result.found, settle: 0s}";
    let mut scene = ExecutionScenario::started(&format!("{CHARGE}\n{probe}"));
    scene.returns("a", maybe(Timeout));
    scene.returns("a", done(json!({"found": false})));
    assert_eq!(scene.calls(), ["a#2"]);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    scene.returns("a", maybe(Timeout));
    scene.returns("a", done(json!({"found": true})));
    assert_eq!(scene.asks(), ["doubt a", "second effect a"]);
    scene.answer(about(), QuestionAnswer::Skip);
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn a_keyed_call_that_was_sent_again_after_its_window_has_two_effects() {
    let fields =
        "deadline: 7d\nsteps: [{id: a, tool: t.keyed, parameters: {key: '{{ key }}'}, retry: {max_attempts: 3}}]";
    let mut scene = ExecutionScenario::started(fields);
    scene.crash();
    assert_eq!(scene.calls(), ["a#2"]);
    scene.later(86_400_000);
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.settle("a", false, json!(null));
    scene.returns("a", done(json!({})));
    scene.answers("a", CallSide::Do, 1, done(json!({})));
    assert_eq!((scene.deviations(), scene.asks()), (vec!["SecondEffect a".into()], vec!["second effect a".to_owned()]));
}

/// It was sent again after the window of its key, so its "done" is no repeat of an earlier attempt: it is the effect that
/// nobody was sure of, and it is undone once.
#[test]
fn a_late_done_of_the_attempt_that_gave_up_unsure_is_the_effect_of_the_part() {
    let fields = "deadline: 7d\nsteps: [{id: a, tool: t.keyed, parameters: {key: '{{ key }}'}, retry: {max_attempts: 1}, \
                  failure_policy: manual_decision, compensation: {tool: t.undo, parameters: {id: '{{ result.id }}'}}}]";
    let mut scene = ExecutionScenario::started(fields);
    scene.crash();
    scene.later(86_400_000);
    scene.settle("a", false, json!(null));
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.asks(), ["failure a"]);
    scene.answers("a", CallSide::Do, 3, done(json!({"id": 7})));
    assert_eq!(scene.status(), "completed");
    scene.compensate(None);
    assert_eq!(scene.started_calls(CallSide::Undo).len(), 1);
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), scene.started_calls(CallSide::Undo).len()), ("compensated", 1));
}

#[test]
fn a_late_result_that_cannot_be_used_is_an_effect() {
    let mut scene = sent_again(CHARGE);
    scene.returns("a", done(json!({"id": 2})));
    let unusable = CallOutcome::Maybe(ToolFailure::answered("result/id: is not a string"));
    scene.answers("a", CallSide::Do, 1, unusable);
    assert_eq!((scene.deviations(), scene.asks()), (vec!["SecondEffect a".into()], vec!["second effect a".to_owned()]));
}

#[test]
fn the_end_of_the_wait_for_an_answer_is_no_answer() {
    let mut scene = ExecutionScenario::started(CHARGE);
    scene.returns("a", maybe(Timeout));
    scene.answers("a", CallSide::Do, 1, maybe(Timeout));
    assert_eq!((scene.count("LateAnswerArrived"), scene.asks()), (0, vec!["doubt a".to_owned()]));
}

#[test]
fn a_call_that_turns_out_not_to_be_sent_is_retried_after_its_pause_and_counted() {
    let fields = "steps: [{id: a, tool: t.once, failure_policy: {action: cancel_all},
      retry: {max_attempts: 2, initial: 10s, jitter: false, on: [timeout]}}]";
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", maybe(Timeout));
    scene.answers("a", CallSide::Do, 1, fails(Timeout));
    assert_eq!(scene.calls(), [""; 0], "not at once");
    scene.later(10_000);
    assert_eq!(scene.calls(), ["a#2"]);
    scene.returns("a", fails(Timeout));
    assert_eq!((scene.status(), scene.started_calls(CallSide::Do).len()), ("failed", 2));
}

#[test]
fn a_late_refusal_has_the_attempts_and_the_cause_that_it_would_have_had_in_time() {
    let fields = "steps: [{id: a, tool: t.once, failure_policy: {action: cancel_all},
      retry: {max_attempts: 3, initial: 10s, jitter: false, on: [unavailable]}}]";
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", maybe(Timeout));
    scene.answers("a", CallSide::Do, 1, fails(ToolError));
    assert_eq!((scene.status(), scene.started_calls(CallSide::Do).len()), ("failed", 1), "it is not in `on`");
    let failure = &scene.execution.failures()[0].failure;
    assert_eq!(failure.category, ToolError, "{failure}");
}

#[test]
fn a_late_record_of_an_agent_that_does_not_drive_any_more_is_on_record() {
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once}]");
    scene.record_started("a");
    scene.hand_over(Driver::Server);
    scene.settle("a", false, json!(null));
    scene.returns("a", done(json!({"id": 2})));
    assert_eq!(scene.status(), "completed");
    scene.record_finished("a", json!({"id": 1}));
    assert_eq!(scene.asks(), ["second effect a"]);
    assert_eq!(scene.events(), ["LateAnswerArrived", "DeviationFound"]);
}

#[test]
fn undo_is_offered_only_when_it_can_be_given() {
    let answers = |scene: &ExecutionScenario| match &scene.execution.questions()[..] {
        [PendingQuestion::SecondEffect { answers, .. }] => answers.to_vec(),
        other => panic!("{other:?}"),
    };
    assert!(answers(&charged_twice()).contains(&QuestionAnswer::Compensate));
    let mut scene = sent_again(CHARGE);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert!(!answers(&scene).contains(&QuestionAnswer::Compensate), "it is still under way");
}

/// A step that gave up unsure is done when the answer comes, and is not called again when it is tried again.
#[test]
fn a_step_that_gave_up_unsure_is_done_when_its_answer_comes_and_it_is_tried_again() {
    let fields = "on_failure: cancel_all
steps:
  - {id: a, tool: t.keyed, parameters: {key: '{{ key }}'}, retry: {max_attempts: 1}}
  - {id: b, tool: t.once, depends_on: [a]}";
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", maybe(Timeout));
    assert_eq!((scene.status(), remains(&scene)), ("failed", vec!["a".to_owned()]));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 7})));
    scene.give(&person(), ExecutionInput::Reopen { steps: Some(vec![step("a")]), reason: "again".into() });
    assert_eq!(
        (scene.started_calls(CallSide::Do), scene.step("a")),
        (vec!["a".to_owned(), "b".to_owned()], "completed")
    );
}

/// `a` took effect twice, `b` comes after it, and whether `b` was undone is not known.
fn in_doubt_behind_two_effects() -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(&format!(
        "{CHARGE}
  - {{id: b, tool: t.once, parameters: {{x: '{{{{ steps.a.result.id }}}}'}}, compensation: {{tool: t.undo_once}}}}"
    ));
    scene.returns("a", maybe(Timeout));
    scene.settle("a", false, json!(null));
    scene.returns("a", done(json!({"id": 2})));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    scene.returns("b", done(json!({})));
    assert_eq!(scene.status(), "completed");
    scene.compensate(None);
    assert_eq!(scene.calls(), ["undo b"]);
    scene.returns("b", maybe(Timeout));
    assert_eq!((scene.calls(), scene.step("b")), (vec![], "in_doubt"));
    scene
}

#[test]
fn another_effect_is_not_undone_before_its_dependents_because_one_was_undone_by_hand() {
    let mut scene = in_doubt_behind_two_effects();
    let by_hand = ExecutionInput::RecordCompensation { part: part("a"), description: String::new(), evidence: None };
    scene.give(&person(), by_hand);
    assert_eq!(scene.calls(), [""; 0], "b comes first");
    scene.crash();
    assert_eq!(scene.calls(), [""; 0], "b comes first, also after a crash");
    scene.settle("b", true, json!(null));
    assert_eq!(scene.calls(), ["undo a"]);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 1}));
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
    assert_eq!(remains(&scene), [""; 0]);
}

#[test]
fn every_effect_can_be_undone_by_hand_before_its_turn() {
    let mut scene = in_doubt_behind_two_effects();
    for _ in 0..2 {
        let description = "paid back".to_owned();
        scene.give(&person(), ExecutionInput::RecordCompensation { part: part("a"), description, evidence: None });
    }
    scene.settle("b", true, json!(null));
    assert_eq!((scene.status(), scene.count("CompensationRecorded")), ("compensated", 2));
}
