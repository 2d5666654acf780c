//! Regression tests.

use rutter_core::actor::Actor;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::hash::Hash;
use rutter_core::journal::event::{CallSide, Question, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory::*;
use rutter_testkit::scene::*;
use serde_json::json;
use std::sync::Arc;

/// A step that fails after it may have taken effect.
const TOUCHED: &str = "steps:
  - id: a
    tool: t.set
    retry: {max_attempts: 1}
    compensation: {tool: t.undo}";

#[test]
fn touched_step_waiting_for_retry_can_be_cancelled_and_undone() {
    let mut scene = ExecutionScenario::started(TOUCHED);
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.asks(), ["failure a"]);
    scene.pause();
    scene.answer_failure("a", QuestionAnswer::Retry);
    scene.cancel(Some(true));
    scene.resume();
    scene.wait();
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn touched_step_asking_for_approval_can_be_cancelled_and_undone() {
    let mut scene = ExecutionScenario::started(&format!("{TOUCHED}\n    approval: true"));
    scene.approve("a");
    scene.returns("a", maybe(Timeout));
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!(scene.asks(), ["approval a"]);
    scene.cancel(Some(true));
    scene.wait();
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn touched_step_taken_over_by_a_replan_can_be_undone() {
    let mut scene = ExecutionScenario::started(TOUCHED);
    scene.returns("a", maybe(Timeout));
    scene.pause();
    scene.replan(&format!("{TOUCHED}\n  - {{id: b, tool: t.once, depends_on: [a]}}"));
    scene.cancel(Some(true));
    scene.resume();
    scene.wait();
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn undo_has_its_own_attempts() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - id: a
    tool: t.set
    retry: {max_attempts: 3, jitter: false}
    compensation: {tool: t.undo, retry: {max_attempts: 3, jitter: false}}",
    );
    for _ in 0..2 {
        scene.returns("a", fails(Unavailable));
        scene.wait();
    }
    scene.returns("a", done(json!({})));
    scene.compensate(None);
    for _ in 0..2 {
        scene.returns("a", fails(Unavailable));
        scene.wait();
    }
    assert_eq!(scene.calls(), ["undo a#3"]);
}

#[test]
fn waiting_for_approval_does_not_use_up_the_total_timeout() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, approval: {expires: 24h}, total_timeout: 10m}",
    );
    scene.later(3_600_000);
    scene.approve("a");
    assert_eq!(scene.calls(), ["a"]);
    assert_eq!(scene.step("a"), "running");
}

#[test]
fn a_limit_is_reached_once() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 2
budget: {calls: 2}
steps:
  - {id: a, tool: t.set, retry: {jitter: false}}
  - {id: b, tool: t.set, retry: {jitter: false}}",
    );
    scene.returns("a", fails(Unavailable));
    scene.returns("b", fails(Unavailable));
    scene.wait();
    assert_eq!(scene.count("LimitReached"), 1);
    assert_eq!(scene.asks(), ["limit Calls"]);
}

#[test]
fn probe_failures_do_not_use_up_the_steps_attempts() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - id: a
    tool: t.once
    retry: {max_attempts: 3, jitter: false}
    probe: {tool: t.find, happened: result.found, settle: 0s, retry: {max_attempts: 5, jitter: false}}",
    );
    scene.returns("a", maybe(Timeout));
    for _ in 0..3 {
        scene.returns("a", fails(Unavailable));
        scene.wait();
    }
    scene.returns("a", done(json!({"found": false})));
    assert_eq!(scene.calls(), ["a#2"]);
    scene.returns("a", fails(Unavailable));
    scene.wait();
    assert_eq!(scene.calls(), ["a#3"]);
}

#[test]
fn drift_during_back_off_does_not_wake_for_nothing() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set, retry: {jitter: false}}]");
    scene.returns("a", fails(Unavailable));
    let found = Hash::of(&[b"new"]);
    scene.give(&Actor::rutter(), ExecutionInput::ReportDefinition { tool: tool("t.set"), found });
    scene.later(10_000);
    assert_eq!(scene.calls(), [""; 0]);
}

#[test]
fn a_step_retried_after_compensation_by_hand_is_called_again() {
    let mut scene = ExecutionScenario::started(TOUCHED);
    scene.returns("a", maybe(Timeout));
    scene.give(
        &person(),
        ExecutionInput::RecordCompensation { part: part("a"), description: "by hand".into(), evidence: None },
    );
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!(scene.calls(), ["a#2"]);
}

#[test]
fn a_fallback_follows_when_the_probe_denies_it_and_no_attempt_is_left() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - id: a
    tool: t.once
    retry: {max_attempts: 1}
    probe: {tool: t.find, happened: result.found, settle: 0s}
    fallback: {tool: t.other}",
    );
    scene.returns("a", maybe(Timeout));
    scene.returns("a", done(json!({"found": false})));
    assert_eq!(scene.calls(), ["fallback a"]);
}

#[test]
fn ended_execution_asks_nothing_that_cannot_be_answered() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo, retry: {max_attempts: 1}}}",
    );
    scene.returns("a", done(json!({})));
    scene.compensate(None);
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.asks(), ["compensation a"]);
    scene.kill();
    assert_eq!(scene.asks(), [""; 0]);
}

#[test]
fn ended_execution_does_not_ask_about_drift() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set}, {id: b, tool: t.once}]");
    let found = Hash::of(&[b"new"]);
    scene.give(&Actor::rutter(), ExecutionInput::ReportDefinition { tool: tool("t.once"), found });
    scene.cancel(None);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "cancelled");
    assert_eq!(scene.asks(), [""; 0]);
}

#[test]
fn replan_may_change_a_call_that_waits_for_approval() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true, parameters: {n: 1}}]");
    let before = scene.asked("a");
    scene.replan_as(&person(), "steps: [{id: a, tool: t.once, approval: true, parameters: {n: 2}}]");
    assert_ne!(scene.asked("a"), before);
}

#[test]
fn replan_of_a_server_driven_execution_needs_registered_tools() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]");
    let plan = plan("steps: [{id: a, tool: t.once, approval: true}, {id: b, tool: no.body}]", Driver::Agent);
    assert_eq!(
        scene.refused(&agent(), ExecutionInput::Replan { plan, revision: 2, reason: String::new() }),
        "execution.unknown_tool"
    );
}

#[test]
fn replan_against_the_found_definition_ends_the_drift() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set}, {id: b, tool: t.once}]");
    scene.give(
        &Actor::rutter(),
        ExecutionInput::ReportDefinition { tool: tool("t.once"), found: Hash::of(&[b"older"]) },
    );
    scene.replan("steps: [{id: a, tool: t.set}, {id: b, tool: t.once}, {id: c, tool: t.set}]");
    // The new plan was checked after the report, so the definition it pins counts.
    assert_eq!(scene.asks(), [""; 0]);
}

#[test]
fn agent_can_record_the_fallback() {
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once, fallback: {tool: t.other}}]");
    scene.record_failed("a", ToolError, false);
    scene.give(
        &agent(),
        ExecutionInput::RecordStarted { part: part("a"), tool: Some(tool("t.other")), parameters: None },
    );
    scene.record_finished("a", json!({}));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.deviations(), [""; 0]);
}

#[test]
fn agents_end_with_a_dangling_idempotent_step() {
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.set}]");
    scene.record_started("a");
    scene.record_end();
    assert!(scene.execution.outcome().is_some() || !scene.asks().is_empty(), "{}", scene.status());
}

#[test]
fn agents_end_with_a_step_that_would_be_retried() {
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.set}]");
    scene.record_failed("a", Unavailable, false);
    scene.record_end();
    assert!(scene.execution.outcome().is_some() || !scene.asks().is_empty(), "{}", scene.status());
}

#[test]
fn agents_end_in_the_middle_of_a_fan_out() {
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.set, for_each: '[1, 2, 3]'}]");
    scene.record_started("a[0]");
    scene.record_finished("a[0]", json!({}));
    scene.record_end();
    assert!(scene.execution.outcome().is_some() || !scene.asks().is_empty(), "{}", scene.status());
}

#[test]
fn doubt_whose_probe_backs_off_is_asked_after_a_hand_over() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, probe: {tool: t.find, happened: result.found, settle: 0s}}]",
    );
    scene.returns("a", maybe(Timeout));
    scene.returns("a", fails(Unavailable));
    scene.hand_over(Driver::Agent);
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn agent_continues_with_held_back_items() {
    let mut scene = ExecutionScenario::by_agent(
        "max_parallel: 2
steps: [{id: a, tool: t.once, for_each: '[1, 2, 3]'}]",
    );
    scene.record_started("a[0]");
    scene.record_started("a[1]");
    scene.record_failed("a[0]", ToolError, false);
    scene.record_finished("a[2]", json!(2));
    scene.record_finished("a[1]", json!(1));
    assert_eq!(scene.asks(), ["failure a"]);
    scene.answer_failure("a", QuestionAnswer::Retry);
    scene.record_finished("a[0]", json!(0));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn held_back_item_finishing_first_does_not_close_the_step() {
    let mut scene = ExecutionScenario::by_agent(
        "max_parallel: 2
steps: [{id: a, tool: t.once, for_each: '[1, 2, 3]'}]",
    );
    scene.record_started("a[0]");
    scene.record_started("a[1]");
    scene.record_failed("a[0]", ToolError, false);
    scene.record_finished("a[2]", json!(2));
    assert_eq!(scene.asks(), [""; 0], "one item is still under way");
}

#[test]
fn partial_end_names_what_remains() {
    let mut scene = ExecutionScenario::started(
        "on_failure: continue_others
steps:
  - {id: a, tool: t.set, retry: {max_attempts: 1}}
  - {id: b, tool: t.once}",
    );
    scene.returns("a", maybe(Timeout));
    scene.returns("b", done(json!({})));
    assert_eq!(scene.status(), "partial");
    let remains = match &scene.journal.last().unwrap().event {
        rutter_core::journal::event::Event::ExecutionEnded { remains, .. } => remains.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(remains, scene.execution.view().remains);
}

#[test]
fn the_cost_of_a_late_answer_counts() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    scene.returns("a", maybe(Timeout));
    let outcome = rutter_core::tool::CallOutcome::Done { result: Arc::new(json!({})), cost_micros: 7 };
    scene.answers("a", CallSide::Do, 1, outcome);
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.execution.spent().cost_micros, 7);
}

#[test]
fn a_killed_compensation_that_did_not_happen_can_be_retried() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, compensation: {tool: t.undo_once}}]");
    scene.returns("a", done(json!({})));
    scene.compensate(None);
    scene.kill();
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.settle("a", false, json!(null));
    assert_eq!(scene.asks(), [""; 0]);
    scene.compensate(None);
    assert_eq!(scene.calls(), ["undo a#2"]);
}

#[test]
fn compensating_a_touched_step_that_waits_for_its_retry_by_hand_does_not_break_it() {
    let mut scene = ExecutionScenario::started(TOUCHED);
    scene.returns("a", maybe(Timeout));
    scene.pause();
    scene.answer_failure("a", QuestionAnswer::Retry);
    let by_hand = ExecutionInput::RecordCompensation { part: part("a"), description: String::new(), evidence: None };
    // It may be refused or accepted; it must not break.
    let _ = scene.input(&person(), by_hand);
}

#[test]
fn a_slow_probe_tells_of_the_time_when_it_was_asked() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, timeout: 30s, retry: {max_attempts: 3}, probe: {tool: t.find, happened: result.found}}",
    );
    scene.returns("a", maybe(Timeout));
    scene.now.0 += 40_000;
    scene.returns("a", done(json!({"found": false})));
    assert_eq!((scene.calls(), scene.step("a")), (vec!["probe a#2".to_owned()], "in_doubt"));
    scene.returns("a", done(json!({"found": false})));
    assert_eq!(scene.calls(), ["a#2"]);
}

/// A step that failed, and of which the only attempt took effect after all.
fn done_after_all() -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(
        "on_failure: cancel_all
steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, parameters: {x: '{{ steps.a.result.id }}'}}",
    );
    scene.returns("a", fails(ToolError));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 7})));
    assert_eq!(scene.status(), "failed");
    scene
}

#[test]
fn what_took_effect_after_all_is_not_repeated_when_the_execution_is_taken_up_again() {
    let mut scene = done_after_all();
    scene.give(&agent(), ExecutionInput::Reopen { steps: None, reason: String::new() });
    assert_eq!((scene.steps(), scene.calls()), (vec!["completed", "running"], vec!["b".to_owned()]));
    assert_eq!(*scene.call("b").parameters, json!({"x": 7}));
    scene.crash();
    assert_eq!(scene.step("a"), "completed");
}

#[test]
fn a_step_with_nothing_but_a_second_effect_stays_through_a_replan() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, retry: {max_attempts: 3}, compensation: {tool: t.undo}}, {id: b, tool: t.once}]",
    );
    scene.returns("a", maybe(Timeout));
    scene.settle("a", false, json!(null));
    scene.returns("a", done(json!({})));
    let by_hand = ExecutionInput::RecordCompensation { part: part("a"), description: String::new(), evidence: None };
    scene.give(&person(), by_hand);
    scene.answers("a", CallSide::Do, 1, done(json!({})));
    assert_eq!(scene.asks(), ["second effect a"]);
    scene.replan_as(&person(), "steps: [{id: b, tool: t.once}]");
    assert_eq!(scene.asks(), ["second effect a"]);
}

#[test]
fn an_agent_cannot_take_the_approval_from_a_step_that_was_undone() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, approval: true, compensation: {tool: t.undo}}, {id: b, tool: t.once}]",
    );
    scene.approve("a");
    scene.returns("a", done(json!({})));
    let by_hand = ExecutionInput::RecordCompensation { part: part("a"), description: String::new(), evidence: None };
    scene.give(&person(), by_hand);
    scene.replan_as(&agent(), "steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}, {id: b, tool: t.once}]");
    assert_eq!((scene.count("Replanned"), scene.count("ReplanProposed")), (0, 1));
}

/// The first item failed and a person is asked about the step; an agent has begun the second one.
fn begun_while_a_person_is_asked() -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 1
steps: [{id: a, tool: t.once, for_each: '[1, 2]', fallback: {tool: t.once}}]",
    );
    scene.returns("a[0]", fails(ToolError));
    scene.returns("a[0]", fails(ToolError));
    assert_eq!(scene.asks(), ["failure a"]);
    scene.hand_over(Driver::Agent);
    scene.record_started("a[1]");
    scene
}

#[test]
fn an_item_that_waits_for_its_fallback_is_stopped_with_its_held_step() {
    let mut scene = begun_while_a_person_is_asked();
    scene.record_failed("a[1]", ToolError, false);
    assert!(scene.part("a[1]").is_active());
    scene.answer_failure("a", QuestionAnswer::Stop);
    assert_eq!((scene.status(), scene.part("a[1]").status()), ("failed", "cancelled"));
}

#[test]
fn an_item_is_retried_alone_after_another_one_ran_when_its_step_was_given_up() {
    let mut scene = begun_while_a_person_is_asked();
    scene.answer_failure("a", QuestionAnswer::Stop);
    scene.record_failed("a[1]", ToolError, false);
    assert_eq!(scene.status(), "failed");
    scene.answer(Question::Item(part("a[0]")), QuestionAnswer::Retry);
    scene.record_started("a[0]");
    scene.record_finished("a[0]", json!({}));
    assert_eq!(scene.asks(), ["failure a"], "the other item has failed");
}
