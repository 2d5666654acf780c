//! Undoing: dependents first, each effect at most once, and what cannot be undone is reported.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::part::PartState;
use rutter_core::journal::event::{CallSide, Event, Question, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::json;

const CHAIN: &str = "steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo, parameters: {id: '{{ result.id }}', n: '{{ parameters.n }}'}}, parameters: {n: 1}}
  - {id: b, tool: t.once, depends_on: [a], compensation: {tool: t.undo}}
  - {id: c, tool: t.once, depends_on: [b], compensation: {tool: t.undo}}";

/// Executes the plan; each step returns its own name as id.
fn completed(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    while let Some(call) = scene.last.calls.first().cloned() {
        scene.returns(&call.part.to_string(), done(json!({"id": call.part.to_string()})));
    }
    assert_eq!(scene.status(), "completed");
    scene
}

fn undo_all(scene: &mut ExecutionScenario) -> Vec<String> {
    let before = scene.started_calls(CallSide::Undo).len();
    while let Some(call) = scene.last.calls.first().cloned() {
        scene.returns(&call.part.to_string(), done(json!({})));
    }
    scene.started_calls(CallSide::Undo)[before.saturating_sub(1)..].to_vec()
}

fn by_hand(name: &str) -> ExecutionInput {
    ExecutionInput::RecordCompensation { part: part(name), description: "by hand".into(), evidence: None }
}

#[test]
fn a_chain_is_undone_backwards_also_after_success() {
    let mut scene = completed(CHAIN);
    let preview = scene.execution.undo_scope(None);
    scene.compensate(None);
    assert_eq!((scene.status(), scene.calls()), ("compensating", vec!["undo c".to_owned()]));
    assert_eq!(undo_all(&mut scene), ["c", "b", "a"]);
    assert_eq!(preview, [part("c"), part("b"), part("a")]);
    assert_eq!((scene.status(), scene.steps()), ("compensated", vec!["compensated"; 3]));
    assert_eq!(scene.refused(&person(), compensating(None)), "execution.nothing_to_undo");
}

#[test]
fn a_compensation_reads_the_result_and_the_parameters_of_its_step() {
    let mut scene = completed(CHAIN);
    scene.compensate(None);
    scene.returns("c", done(json!({})));
    scene.returns("b", done(json!({})));
    assert_eq!(*scene.call("a").parameters, json!({"id": "a", "n": 1}));
}

#[test]
fn branches_are_undone_in_reverse_order_of_completion() {
    let plan = "max_parallel: 2
steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}}
  - {id: b, tool: t.once, compensation: {tool: t.undo}}
  - {id: c, tool: t.once, depends_on: [a], compensation: {tool: t.undo}}";
    let mut scene = ExecutionScenario::started(plan);
    scene.returns("a", done(json!({})));
    scene.returns("c", done(json!({})));
    scene.returns("b", done(json!({})));
    scene.compensate(None);
    assert_eq!(scene.calls(), ["undo b", "undo c"], "a waits for c");
    scene.returns("b", done(json!({})));
    assert_eq!(scene.calls(), [""; 0]);
    scene.returns("c", done(json!({})));
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn one_slot_undoes_one_at_a_time_and_capacity_counts() {
    let mut scene = completed(
        "steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}, {id: b, tool: t.once, compensation: {tool: t.undo}}]",
    );
    scene.room = 0;
    scene.compensate(None);
    assert_eq!(scene.calls(), [""; 0]);
    scene.room = 5;
    scene.wake();
    assert_eq!(scene.calls(), ["undo b"]);
}

#[test]
fn a_chosen_step_is_undone_with_all_that_depends_on_it() {
    let mut scene = completed(CHAIN);
    assert_eq!(scene.execution.undo_scope(Some(&[step("b")])), [part("c"), part("b")]);
    scene.compensate(Some(&["b"]));
    assert_eq!(undo_all(&mut scene), ["c", "b"]);
    assert_eq!((scene.status(), scene.steps()), ("partial", vec!["completed", "compensated", "compensated"]));
    scene.compensate(None);
    assert_eq!(undo_all(&mut scene), ["a"]);
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn what_cannot_be_undone_remains_and_is_named() {
    let mut scene = completed(
        "steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}}
  - {id: mail, tool: t.once, depends_on: [a], cancellable: irreversible}
  - {id: look, tool: t.read, depends_on: [a]}",
    );
    scene.compensate(None);
    assert_eq!(undo_all(&mut scene), ["a"]);
    assert_eq!(scene.steps(), ["compensated", "completed", "completed"]);
    let Event::ExecutionEnded { remains, .. } = &scene.journal.last().unwrap().event else { panic!() };
    assert_eq!(*remains, [part("mail")]);
    assert_eq!(scene.execution.view().remains, [part("mail")]);
}

#[test]
fn what_may_have_happened_is_undone_too() {
    let mut scene = ExecutionScenario::started(
        "on_failure: compensate
steps: [{id: a, tool: t.set, retry: {max_attempts: 1}, compensation: {tool: t.undo}}]",
    );
    scene.returns("a", maybe(Timeout));
    scene.wait();
    assert_eq!(scene.calls(), ["undo a"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn a_read_and_a_refused_call_leave_nothing_to_undo() {
    let mut scene = ExecutionScenario::started(
        "on_failure: compensate
steps:
  - {id: a, tool: t.read, compensation: {tool: t.undo}}
  - {id: b, tool: t.once, compensation: {tool: t.undo}}",
    );
    scene.returns("a", done(json!({})));
    scene.returns("b", fails(ToolError));
    assert_eq!(scene.status(), "failed");
    assert_eq!(scene.count("CompensationStarted"), 0);
}

#[test]
fn a_failing_compensation_is_retried_and_then_becomes_a_question() {
    let mut scene = completed("steps: [{id: a, tool: t.once, compensation: {tool: t.undo, retry: {jitter: false}}}]");
    scene.compensate(None);
    for wait in [1_000, 2_000, 4_000, 8_000] {
        scene.returns("a", fails(Unavailable));
        assert_eq!(scene.wakes_in(), Some(wait), "five attempts by default");
        scene.wait();
    }
    scene.returns("a", fails(Unavailable));
    assert_eq!((scene.status(), scene.step("a")), ("waiting", "compensation_failed"));
    assert_eq!(scene.asks(), ["compensation a"]);
    scene.answer(Question::Compensation(part("a")), QuestionAnswer::Retry);
    assert_eq!(scene.calls(), ["undo a#6"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn a_stuck_compensation_holds_up_what_it_depends_on_and_nothing_else() {
    let plan = "max_parallel: 2
steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}}
  - {id: b, tool: t.once, depends_on: [a], compensation: {tool: t.undo}}
  - {id: x, tool: t.once, compensation: {tool: t.undo}}";
    let table = [
        (QuestionAnswer::Skip, "failed", "compensation_failed"),
        (QuestionAnswer::Resolve, "compensated", "compensated"),
    ];
    for (answer, status, step) in table {
        let mut scene = ExecutionScenario::started(plan);
        for name in ["x", "a", "b"] {
            scene.returns(name, done(json!({})));
        }
        scene.compensate(None);
        assert_eq!(scene.calls(), ["undo b", "undo x"]);
        scene.returns("b", fails(ToolError));
        scene.returns("x", done(json!({})));
        assert_eq!((scene.calls().len(), scene.status()), (0, "waiting"), "a waits for b");
        scene.give(&person(), answering(Question::Compensation(part("b")), answer, Some(json!({}))));
        assert_eq!(scene.calls(), ["undo a"]);
        scene.returns("a", done(json!({})));
        assert_eq!((scene.status(), scene.step("b")), (status, step), "{answer:?}");
    }
}

#[test]
fn an_abandoned_compensation_can_be_resumed() {
    let mut scene = completed("steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]");
    scene.compensate(None);
    scene.returns("a", fails(ToolError));
    scene.answer(Question::Compensation(part("a")), QuestionAnswer::Skip);
    assert_eq!((scene.status(), scene.execution.view().remains.len()), ("failed", 1));
    scene.compensate(None);
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), scene.execution.view().remains.len()), ("compensated", 0));
}

#[test]
fn a_once_compensation_in_doubt_is_not_repeated() {
    let table = [(true, vec![], "compensated"), (false, vec!["undo a#2"], "compensating")];
    for (happened, calls, status) in table {
        let mut scene = completed("steps: [{id: a, tool: t.once, compensation: {tool: t.undo_once}}]");
        scene.compensate(None);
        scene.crash();
        assert_eq!((scene.step("a"), scene.asks()), ("in_doubt", vec!["doubt a".to_owned()]));
        scene.settle("a", happened, json!(null));
        assert_eq!((scene.calls(), scene.status()), (calls.iter().map(ToString::to_string).collect(), status));
    }
}

#[test]
fn the_compensations_own_probe_settles_its_doubt() {
    for (found, status) in [(true, "compensated"), (false, "compensating")] {
        let mut scene = completed(
            "steps:
  - id: a
    tool: t.once
    compensation:
      tool: t.undo_once
      probe: {tool: t.find, parameters: {key: '{{ key }}'}, happened: result.found, settle: 0s}",
        );
        scene.compensate(None);
        let key = scene.call("a").key;
        scene.returns("a", maybe(Timeout));
        assert_eq!(scene.calls(), ["probe a"]);
        assert_eq!(*scene.call("a").parameters, json!({"key": key.to_string()}));
        scene.returns("a", done(json!({ "found": found })));
        assert_eq!(scene.status(), status);
    }
}

#[test]
fn an_idempotent_compensation_is_repeated_after_a_crash_with_the_same_key() {
    let mut scene = completed("steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]");
    scene.compensate(None);
    let key = scene.call("a").key;
    scene.crash();
    assert_eq!((scene.calls(), scene.call("a").key), (vec!["undo a#2".to_owned()], key));
}

#[test]
fn a_compensation_that_cannot_be_prepared_becomes_a_question() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, compensation: {tool: t.undo, parameters: {id: '{{ result.id }}'}}}]",
    );
    scene.returns("a", done(json!({})));
    scene.compensate(None);
    assert_eq!(scene.asks(), ["compensation a"]);
    scene.answer(Question::Compensation(part("a")), QuestionAnswer::Retry);
    assert_eq!(scene.asks(), ["compensation a"], "it cannot be prepared the second time either");
}

#[test]
fn a_compensation_by_hand_counts_in_every_phase() {
    // During forward execution.
    let mut scene = ExecutionScenario::started(CHAIN);
    scene.returns("a", done(json!({"id": 1})));
    scene.give(&agent(), by_hand("a"));
    assert_eq!(scene.step("a"), "compensated");
    scene.returns("b", done(json!({})));
    scene.returns("c", done(json!({})));
    // While undoing, before its turn.
    scene.compensate(None);
    assert_eq!(scene.calls(), ["undo c"]);
    scene.give(&agent(), by_hand("b"));
    scene.returns("c", done(json!({})));
    assert_eq!(scene.status(), "compensated");
    assert_eq!(scene.started_calls(CallSide::Undo), ["c"]);
    assert_eq!(scene.refused(&agent(), by_hand("b")), "execution.nothing_to_undo");
    assert_eq!(scene.refused(&agent(), by_hand("nobody")), "execution.unknown_part");
    // After the end, and in place of a stuck one.
    let mut scene = completed("steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]");
    scene.compensate(None);
    assert_eq!(scene.refused(&agent(), by_hand("a")), "execution.nothing_to_undo", "it is being undone");
    scene.returns("a", fails(Unavailable));
    scene.give(&agent(), by_hand("a"));
    assert_eq!(scene.status(), "compensated");
    assert!(scene.execution.view().steps[0].by_hand);
    let mut scene = completed("steps: [{id: a, tool: t.once}]");
    scene.give(&agent(), by_hand("a"));
    assert_eq!((scene.status(), scene.step("a")), ("completed", "compensated"));
}

#[test]
fn a_step_still_being_done_is_not_compensated_by_hand() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set}]");
    assert_eq!(scene.refused(&agent(), by_hand("a")), "execution.nothing_to_undo");
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.step("a"), "retrying");
    assert_eq!(scene.refused(&agent(), by_hand("a")), "execution.nothing_to_undo");
}

#[test]
fn an_agent_that_drives_undoes_by_hand() {
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]");
    scene.start();
    scene.record_finished("a", json!({}));
    assert_eq!(scene.status(), "completed");
    scene.compensate(None);
    assert_eq!((scene.calls().len(), scene.status()), (0, "compensating"));
    scene.give(&agent(), by_hand("a"));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn rutter_takes_over_the_undo_from_an_agent() {
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]");
    scene.start();
    scene.record_finished("a", json!({}));
    scene.compensate(None);
    scene.hand_over(Driver::Server);
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn undoing_is_refused_while_it_is_under_way_or_of_unknown_steps() {
    let mut scene = ExecutionScenario::started(CHAIN);
    assert_eq!(scene.refused(&person(), compensating(None)), "execution.not_ended");
    let mut scene = completed(CHAIN);
    assert_eq!(scene.refused(&person(), compensating(Some(&["nobody"]))), "execution.unknown_part");
    assert_eq!(scene.refused(&person(), compensating(Some(&[]))), "execution.nothing_to_undo");
}

#[test]
fn a_late_answer_to_a_compensation_in_doubt_settles_it() {
    let mut scene = completed("steps: [{id: a, tool: t.once, compensation: {tool: t.undo_once}}]");
    scene.compensate(None);
    scene.returns("a", maybe(Timeout));
    // A refusal that is not in `retry.on` is not retried either when it comes late.
    scene.answers("a", CallSide::Undo, 1, fails(Unavailable));
    scene.wait();
    assert_eq!(scene.calls(), ["undo a#2"]);
    scene.returns("a", maybe(Timeout));
    scene.answers("a", CallSide::Undo, 2, done(json!({})));
    assert_eq!(scene.status(), "compensated");
    assert_eq!(scene.part("a").state, PartState::Compensated { by_hand: false });
}

#[test]
fn a_silent_compensation_is_closed_at_its_deadline() {
    let mut scene =
        completed("steps: [{id: a, tool: t.once, compensation: {tool: t.undo, timeout: 5s, retry: {jitter: false}}}]");
    scene.compensate(None);
    scene.later(5_000);
    assert_eq!(scene.step("a"), "compensating");
    scene.wait();
    assert_eq!(scene.calls(), ["undo a#2"]);
}

#[test]
fn policy_and_cancel_undo_what_was_done() {
    let mut by_policy = ExecutionScenario::started(&format!("on_failure: compensate\n{CHAIN}"));
    by_policy.returns("a", done(json!({"id": 1})));
    by_policy.returns("b", fails(ToolError));
    assert_eq!(by_policy.calls(), ["undo a"]);
    by_policy.returns("a", done(json!({})));
    assert_eq!((by_policy.status(), by_policy.steps()), ("compensated", vec!["compensated", "failed", "cancelled"]));
}
