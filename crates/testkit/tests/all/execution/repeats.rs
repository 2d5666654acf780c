//! Late answers to calls that may be repeated: an answer settles its own attempt and every other one with its effect.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::journal::event::{CallSide, QuestionAnswer};
use rutter_core::limits;
use rutter_core::tool::FailureCategory::{Conflict, Timeout, ToolError, Unavailable};
use rutter_core::tool::{CallOutcome, ToolFailure};
use rutter_testkit::scene::*;
use serde_json::json;

const KEYED: &str = "deadline: 7d
steps:
  - id: a
    tool: t.keyed
    parameters: {key: '{{ key }}'}
    retry: {max_attempts: 3, initial: 10s, jitter: false, on: [timeout, unavailable]}
    probe: {tool: t.find, happened: result.found, settle: 0s}
    compensation: {tool: t.undo_once, parameters: {charge: '{{ result.id }}'}, retry: {max_attempts: 2, on: [unavailable]}}";

/// The same with an idempotent tool, which needs no key.
fn idempotent() -> String {
    KEYED.replace("t.keyed", "t.set").replace("parameters: {key: '{{ key }}'}", "parameters: {n: 1}")
}

fn both() -> [String; 2] {
    [KEYED.to_owned(), idempotent()]
}

fn remains(scene: &ExecutionScenario) -> Vec<String> {
    scene.execution.view().remains.iter().map(ToString::to_string).collect()
}

/// The first attempt was given up, and its retry waits.
fn waiting(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.step("a"), "retrying");
    scene
}

/// The first attempt was given up, and the second one runs.
fn repeated(fields: &str) -> ExecutionScenario {
    let mut scene = waiting(fields);
    scene.wait();
    assert_eq!(scene.calls(), ["a#2"]);
    scene
}

/// It is completed by its first attempt, with one effect and its result.
fn done_by_the_first(scene: &mut ExecutionScenario) {
    assert_eq!((scene.status(), scene.step("a"), scene.asks()), ("completed", "completed", vec![]));
    assert_eq!((scene.deviations(), remains(scene)), (vec![], vec![]));
    scene.compensate(None);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 1}));
    scene.returns("a", fails(Unavailable));
    scene.wait();
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), scene.started_calls(CallSide::Undo).len()), ("compensated", 2));
}

#[test]
fn a_late_done_completes_a_step_whose_repeat_waits() {
    for fields in both() {
        let mut scene = waiting(&fields);
        scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
        assert_eq!(
            (scene.events(), scene.wakes_in()),
            (vec!["LateAnswerArrived".into(), "ExecutionEnded".into()], None)
        );
        done_by_the_first(&mut scene);
        assert_eq!(scene.started_calls(CallSide::Do), ["a"]);
    }
}

#[test]
fn a_late_done_completes_a_step_whose_repeat_waits_for_approval_or_for_the_execution_to_go_on() {
    let after = "\n  - {id: b, tool: t.read, depends_on: [a]}";
    let guarded = KEYED.replace("    probe", "    approval: {expires: 1m}\n    probe") + after;
    let mut scene = ExecutionScenario::started(&guarded);
    scene.approve("a");
    scene.returns("a", maybe(Timeout));
    scene.pause();
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!(scene.step("a"), "completed");
    scene.resume();
    assert_eq!(
        (scene.started_calls(CallSide::Do), scene.calls()),
        (vec!["a".into(), "b".into()], vec!["b".to_owned()])
    );

    let mut scene = waiting(&(KEYED.to_owned() + after));
    scene.gap(2 * 86_400_000);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!(scene.steps(), ["completed", "pending"]);
}

#[test]
fn a_late_done_is_the_answer_also_if_the_running_repeat_is_refused() {
    for fields in both() {
        for end in [fails(ToolError), fails(Conflict), fails(Unavailable), maybe(Timeout)] {
            let mut scene = repeated(&fields);
            scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
            assert_eq!((scene.events(), scene.step("a")), (vec!["LateAnswerArrived".to_owned()], "running"));
            scene.returns("a", end.clone());
            assert_eq!(scene.events()[..2], ["AttemptFailed", "DoubtSettled"], "{end:?}");
            done_by_the_first(&mut scene);
            assert_eq!(scene.started_calls(CallSide::Do).len(), 2, "{end:?}");
        }
    }
}

#[test]
fn a_repeat_that_succeeds_after_a_late_done_has_the_same_effect() {
    for fields in both() {
        let mut scene = repeated(&fields);
        scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
        scene.returns("a", done(json!({"id": 1, "again": true})));
        done_by_the_first(&mut scene);
    }
}

#[test]
fn a_running_repeat_that_is_lost_or_killed_is_done_by_the_late_done() {
    let mut scene = repeated(KEYED);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    scene.crash();
    done_by_the_first(&mut scene);

    let mut scene = repeated(KEYED);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    scene.kill();
    assert_eq!((scene.status(), scene.step("a"), scene.asks()), ("cancelled", "completed", vec![]));
}

#[test]
fn a_late_done_settles_the_doubt_about_a_later_attempt_with_the_same_effect() {
    let mut scene =
        waiting(&KEYED.replace("t.keyed\n", "t.keyed\n    timeout: 23h\n").replace("    probe", "    # probe"));
    scene.wait();
    assert_eq!(scene.calls(), ["a#2"]);
    // By the end of its time the key is too old for a third attempt.
    scene.later(limits::KEY_WINDOW_DEFAULT.0 as i64);
    assert_eq!(scene.step("a"), "in_doubt");
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!(scene.events()[..2], ["LateAnswerArrived", "DoubtSettled"]);
    done_by_the_first(&mut scene);
}

#[test]
fn what_an_agent_says_of_its_attempt_settles_no_doubt_about_another_one() {
    let mut scene = ExecutionScenario::by_agent(KEYED);
    scene.record_started("a");
    scene.record_failed("a", Timeout, true);
    scene.hand_over(rutter_core::plan::Driver::Server);
    scene.wait();
    scene.kill();
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.record_finished("a", json!({"id": 1}));
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn a_late_done_outside_the_window_of_the_key_is_an_effect_beside_the_one_in_doubt() {
    let mut scene = ExecutionScenario::started(KEYED);
    scene.crash();
    scene.later(limits::KEY_WINDOW_DEFAULT.0 as i64);
    // The probe finds nothing, twice: the key is used for the first time again.
    while scene.step("a") == "in_doubt" {
        scene.returns("a", done(json!({"found": false})));
    }
    let (_, last) = scene.running("a");
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.step("a"), "retrying");
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!((scene.asks(), scene.deviations()), (vec!["second effect a".to_owned()], vec!["SecondEffect a".into()]));
    // Whether the last one took effect is not tried out with another call.
    scene.wait();
    assert_eq!(scene.started_calls(CallSide::Do).len(), last as usize);
    assert_eq!(scene.asks(), ["second effect a", "failure a"]);
    // Its answer is the result of the step, and nobody has to decide on it.
    scene.answers("a", CallSide::Do, last, done(json!({"id": 2})));
    assert_eq!((scene.status(), scene.asks()), ("completed", vec!["second effect a".to_owned()]));
}

#[test]
fn a_late_answer_without_a_usable_result_does_not_replace_the_repeat() {
    let unusable = CallOutcome::Maybe(ToolFailure::answered("result/id: is not a string"));
    let mut scene = waiting(KEYED);
    scene.answers("a", CallSide::Do, 1, unusable);
    assert_eq!(scene.step("a"), "retrying");
    scene.wait();
    scene.returns("a", done(json!({"id": 1})));
    done_by_the_first(&mut scene);
}

#[test]
fn a_late_done_of_a_call_whose_fallback_took_over_is_another_effect() {
    let fields = "steps: [{id: a, tool: t.set, parameters: {n: 1}, retry: {max_attempts: 1},
      fallback: {tool: t.once}, compensation: {tool: t.undo}}]";
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.running("a").0, CallSide::Fallback);
    scene.returns("a", done(json!({"id": 2})));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!((scene.deviations(), scene.asks()), (vec!["SecondEffect a".into()], vec!["second effect a".to_owned()]));
}

#[test]
fn a_late_done_of_a_call_that_was_refused_first_completes_its_step() {
    for fields in both() {
        let mut scene = ExecutionScenario::started(&fields);
        scene.returns("a", fails(Unavailable));
        assert_eq!(scene.step("a"), "retrying");
        scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
        assert_eq!((scene.status(), scene.deviations()), ("completed", vec!["SecondEffect a".to_owned()]));
        assert_eq!(scene.started_calls(CallSide::Do), ["a"]);
    }
}

#[test]
fn a_late_done_gives_a_failed_undo_the_result_it_lacks() {
    let fields = KEYED.replace("deadline: 7d", "on_failure: compensate").replace("max_attempts: 3", "max_attempts: 1");
    let mut scene = ExecutionScenario::started(&fields);
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.asks(), ["compensation a"]);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    assert_eq!(scene.asks(), ["compensation a"]);
    scene.answer(rutter_core::journal::event::Question::Compensation(part("a")), QuestionAnswer::Retry);
    assert_eq!(*scene.call("a").parameters, json!({"charge": 1}));
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), remains(&scene)), ("compensated", vec![]));
}

/// What may have happened is undone once, also if the answer comes while its undoing waits.
#[test]
fn a_late_done_of_what_is_being_undone_is_no_second_effect() {
    let fields = KEYED.replace("deadline: 7d", "on_failure: compensate").replace("max_attempts: 3", "max_attempts: 1");
    let mut scene = ExecutionScenario::started(&fields.replace(", parameters: {charge: '{{ result.id }}'}", ""));
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.calls(), ["undo a"]);
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    scene.returns("a", fails(Unavailable));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    scene.wait();
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), remains(&scene)), ("compensated", vec![]));
    assert_eq!(scene.started_calls(CallSide::Undo).len(), 2);
}

#[test]
fn a_second_late_done_after_the_undo_is_one_more_effect_at_most() {
    let mut scene = repeated(KEYED);
    scene.returns("a", maybe(Timeout));
    scene.wait();
    scene.returns("a", done(json!({"id": 3})));
    scene.compensate(None);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 3})));
    scene.answers("a", CallSide::Do, 2, done(json!({"id": 3})));
    assert_eq!(scene.deviations(), ["SecondEffect a"], "the second one repeats the first");
}

#[test]
fn a_correction_of_what_was_repeated_completes_the_step() {
    let mut scene = ExecutionScenario::started(&KEYED.replace("    probe", "    # probe"));
    scene.crash();
    scene.later(limits::KEY_WINDOW_DEFAULT.0 as i64);
    scene.settle("a", false, json!(null));
    scene.returns("a", fails(Unavailable));
    assert_eq!(scene.step("a"), "retrying");
    let correction = ExecutionInput::Correct {
        part: part("a"),
        happened: true,
        reason: "looked again".into(),
        result: Some(std::sync::Arc::new(json!({"id": 1}))),
        evidence: None,
    };
    scene.give(&person(), correction);
    assert_eq!((scene.status(), scene.calls()), ("completed", vec![]));
}
