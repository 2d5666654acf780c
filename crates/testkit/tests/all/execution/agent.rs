//! An agent drives: it records its calls, and deviations from the plan are recorded too.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::journal::event::{CallSide, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::json;
use std::sync::Arc;

const CHAIN: &str = "steps:
  - {id: a, tool: t.once, parameters: {n: 1}}
  - {id: b, tool: t.once, parameters: {x: '{{ steps.a.result.x }}'}}
  - {id: c, tool: t.set, depends_on: [b]}";

#[test]
fn recording_start_and_end_of_each_step_completes_without_a_call_by_rutter() {
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.start();
    for name in ["a", "b", "c"] {
        assert!(scene.execution.brief().contains(&format!("for step {name}")), "{}", scene.execution.brief());
        scene.record_started(name);
        assert_eq!(scene.step(name), "running");
        scene.record_finished(name, json!({"x": 1}));
    }
    assert_eq!((scene.status(), scene.deviations().len()), ("completed", 0));
    assert!(scene.last.calls.is_empty());
    assert_eq!(scene.execution.spent().calls, 3);
}

#[test]
fn recording_begins_an_execution_that_was_not_started() {
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.record_finished("a", json!({}));
    assert_eq!(scene.events(), ["ExecutionStarted", "AttemptStarted", "AttemptSucceeded"]);
    assert_eq!(scene.deviations(), [""; 0]);
}

#[test]
fn each_deviation_is_named() {
    // Skipped, and then done out of order.
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.record_finished("b", json!({}));
    assert_eq!(scene.deviations(), ["Skipped a"]);
    scene.record_finished("a", json!({}));
    assert_eq!(scene.deviations(), ["Skipped a", "OutOfOrder a"]);

    // Started before its dependency has ended.
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.record_started("a");
    scene.record_started("b");
    assert_eq!(scene.deviations(), ["OutOfOrder b"]);

    // Done twice.
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.record_finished("a", json!({"x": 1}));
    scene.record_finished("a", json!({"x": 2}));
    assert_eq!(scene.deviations(), ["Duplicate a"]);
    assert_eq!(scene.part("a").result.as_ref().unwrap().value().unwrap()["x"], 1);
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.record_started("a");
    scene.record_started("a");
    assert_eq!(scene.deviations(), ["Duplicate a"]);

    // Not in the plan.
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    let parameters = Some(Arc::new(json!({"n": 2})));
    scene.give(&agent(), ExecutionInput::RecordStarted { part: part("zzz"), tool: Some(tool("x.y")), parameters });
    scene.record_finished("a[3]", json!({}));
    assert_eq!(scene.deviations(), ["Undeclared zzz", "Undeclared a"]);
    assert_eq!(scene.count("ActionRecorded"), 2);

    // By another tool.
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.give(&agent(), ExecutionInput::RecordStarted { part: part("a"), tool: Some(tool("x.y")), parameters: None });
    assert_eq!(scene.deviations(), ["OtherTool a"]);

    // Done although it was skipped.
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once, when: 'false'}, {id: b, tool: t.once}]");
    scene.start();
    assert_eq!(scene.step("a"), "skipped");
    scene.record_finished("a", json!({}));
    assert_eq!(scene.deviations(), ["Undeclared a"]);
}

#[test]
fn a_failure_follows_the_same_rules_as_ours() {
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.record_failed("a", Unavailable, false);
    assert_eq!(scene.step("a"), "retrying");
    scene.record_started("a");
    assert_eq!((scene.step("a"), scene.deviations().len()), ("running", 0));
    scene.record_failed("a", ToolError, false);
    assert_eq!(scene.asks(), ["failure a"]);
    scene.answer_failure("a", QuestionAnswer::Retry);
    scene.record_failed("a", Timeout, true);
    assert_eq!((scene.step("a"), scene.asks()), ("in_doubt", vec!["doubt a".to_owned()]));
    scene.settle("a", true, json!({"x": 1}));
    assert_eq!(scene.step("a"), "completed");
}

#[test]
fn conditions_lists_and_approvals_are_evaluated_for_the_agent() {
    let mut scene = ExecutionScenario::by_agent(
        "steps:
  - {id: a, tool: t.once, when: 'false'}
  - {id: b, tool: t.once, for_each: '[1, 2]', parameters: {n: '{{ item }}'}}
  - {id: c, tool: t.once, approval: true, depends_on: [b]}",
    );
    scene.start();
    assert_eq!(scene.steps(), ["skipped", "running", "pending"]);
    scene.record_finished("b[0]", json!(1));
    scene.record_finished("b[1]", json!(2));
    assert_eq!(scene.asks(), ["approval c"]);
    assert_eq!(scene.status(), "waiting");
    scene.approve("c");
    scene.record_finished("c", json!({}));
    assert_eq!((scene.status(), scene.deviations().len()), ("completed", 0));
}

#[test]
fn a_condition_or_list_that_cannot_be_evaluated_is_left_to_the_agent() {
    let mut scene = ExecutionScenario::by_agent(
        "steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, when: 'steps.a.result.x'}
  - {id: c, tool: t.once, for_each: steps.a.result.x}",
    );
    scene.start();
    scene.record_finished("a", json!({"x": 3}));
    assert_eq!(scene.steps(), ["completed", "pending", "pending"]);
    assert_eq!(scene.asks(), [""; 0]);
    scene.record_finished("b", json!({}));
    assert_eq!(scene.step("b"), "completed");
    scene.record_end();
    assert_eq!((scene.status(), scene.step("c")), ("partial", "skipped"));
}

#[test]
fn the_end_names_what_was_left_out_and_what_dangles() {
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.record_finished("a", json!({}));
    scene.record_end();
    assert_eq!(scene.deviations(), ["Skipped b", "Skipped c"]);
    assert_eq!((scene.status(), scene.steps()), ("partial", vec!["completed", "skipped", "skipped"]));

    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.record_started("a");
    scene.record_end();
    assert_eq!(scene.deviations(), ["Dangling a", "Skipped b", "Skipped c"]);
    assert_eq!(scene.asks(), ["doubt a"], "it may have happened");
    scene.settle("a", true, json!({}));
    assert_eq!(scene.status(), "partial");

    let mut scene =
        ExecutionScenario::by_agent("steps: [{id: a, tool: t.once}, {id: b, tool: t.once, approval: true}]");
    scene.record_finished("a", json!({}));
    scene.record_finished("b", json!({}));
    assert_eq!(scene.asks(), ["doubt b"], "nobody approved it");
    scene.settle("b", true, json!({}));
    assert_eq!(scene.refused(&agent(), ExecutionInput::RecordEnd { reason: String::new() }), "execution.ended");
}

#[test]
fn an_agent_takes_over_and_hands_back() {
    let mut scene = ExecutionScenario::started(CHAIN);
    let record = ExecutionInput::RecordStarted { part: part("b"), tool: None, parameters: None };
    assert_eq!(scene.refused(&agent(), record), "execution.driver");
    scene.hand_over(Driver::Agent);
    assert_eq!(
        scene.refused(&person(), ExecutionInput::HandOver { to: Driver::Agent, reason: String::new() }),
        "execution.driver"
    );
    // The call in flight returns as usual.
    scene.returns("a", done(json!({"x": 1})));
    assert_eq!((scene.calls().len(), scene.step("a")), (0, "completed"));
    scene.record_finished("b", json!({}));
    scene.hand_over(Driver::Server);
    assert_eq!(scene.calls(), ["c"]);
    scene.returns("c", done(json!({})));
    assert_eq!((scene.status(), scene.deviations().len()), ("completed", 0));
}

#[test]
fn what_a_vanished_agent_had_started_is_lost_by_the_same_rules() {
    let mut scene =
        ExecutionScenario::by_agent("max_parallel: 2\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.set}]");
    scene.record_started("a");
    scene.record_started("b");
    scene.crash();
    assert_eq!(scene.steps(), ["running", "running"], "an agent outlives our crash");
    scene.hand_over(Driver::Server);
    assert_eq!(scene.deviations(), ["Dangling a", "Dangling b"]);
    assert_eq!((scene.calls(), scene.asks()), (vec!["b#2".to_owned()], vec!["doubt a".to_owned()]));
}

#[test]
fn what_an_agent_says_about_its_own_attempt_in_doubt_is_recorded_and_settles_nothing() {
    let begun = || {
        let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once, total_timeout: 60s}]");
        scene.record_started("a");
        scene
    };
    let timed_out = || {
        let mut scene = begun();
        scene.later(60_000);
        scene
    };
    let taken_over_again = || {
        let mut scene = begun();
        scene.hand_over(Driver::Server);
        scene.hand_over(Driver::Agent);
        scene
    };
    let ended = || {
        let mut scene = begun();
        scene.record_end();
        scene
    };
    for scene in [&timed_out as &dyn Fn() -> ExecutionScenario, &taken_over_again, &ended] {
        let mut scene = scene();
        assert_eq!(scene.asks(), ["doubt a"]);
        let deviations = scene.deviations();
        scene.record_finished("a", json!({"x": 1}));
        assert_eq!((scene.step("a"), scene.asks()), ("in_doubt", vec!["doubt a".to_owned()]), "only a person may");
        assert_eq!(scene.events()[..1], ["LateAnswerArrived"]);
        assert_eq!(scene.last.records[0].actor, agent());
        assert_eq!(scene.deviations(), deviations, "it is no duplicate");
    }
    let mut scene = timed_out();
    scene.record_failed("a", ToolError, true);
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.record_failed("a", ToolError, false);
    assert_eq!((scene.asks(), scene.count("DoubtSettled")), (vec!["doubt a".to_owned()], 0));
}

#[test]
fn an_agents_record_does_not_settle_the_doubt_about_our_attempt() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    scene.crash();
    scene.hand_over(Driver::Agent);
    scene.record_finished("a", json!({}));
    assert_eq!((scene.asks(), scene.deviations()), (vec!["doubt a".to_owned()], vec!["Duplicate a".to_owned()]));
}

#[test]
fn a_plan_with_unregistered_tools_stays_with_the_agent() {
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: some.where}]");
    scene.start();
    assert_eq!(
        scene.refused(&person(), ExecutionInput::HandOver { to: Driver::Server, reason: String::new() }),
        "execution.unknown_tool"
    );
    scene.record_started("a");
    scene.record_failed("a", Timeout, true);
    assert_eq!(scene.asks(), ["doubt a"], "an unknown tool counts as once");
}

#[test]
fn our_own_attempts_are_lost_in_a_crash_even_while_an_agent_drives() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    scene.hand_over(Driver::Agent);
    scene.crash();
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.hand_over(Driver::Server);
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn calls_after_a_cancel_are_recorded_as_such() {
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    scene.record_started("a");
    scene.cancel(None);
    scene.record_started("b");
    assert_eq!(scene.deviations(), ["Undeclared b"]);
    scene.record_finished("a", json!({}));
    assert_eq!(scene.status(), "cancelled");
    let record = ExecutionInput::RecordStarted { part: part("b"), tool: None, parameters: None };
    assert_eq!(scene.refused(&agent(), record.clone()), "execution.ended");

    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]");
    scene.record_finished("a", json!({}));
    scene.compensate(None);
    assert_eq!(scene.refused(&agent(), record), "execution.stopping");
}

#[test]
fn an_approval_cancelled_step_done_all_the_same_is_undeclared() {
    let mut scene = ExecutionScenario::by_agent(
        "max_parallel: 2
steps: [{id: a, tool: t.once, approval: true}, {id: b, tool: t.once}]",
    );
    scene.start();
    scene.record_started("b");
    scene.cancel(None);
    assert_eq!(scene.step("a"), "cancelled");
    scene.record_started("a");
    assert_eq!(scene.deviations(), ["Undeclared a", "Unapproved a"]);
}

#[test]
fn an_agent_may_not_end_what_was_not_begun() {
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    assert_eq!(scene.refused(&agent(), ExecutionInput::RecordEnd { reason: String::new() }), "execution.not_started");
}

#[test]
fn the_agents_own_parameters_are_recorded() {
    let mut scene = ExecutionScenario::by_agent(CHAIN);
    let parameters = Some(Arc::new(json!({"n": 9})));
    scene.give(&agent(), ExecutionInput::RecordStarted { part: part("a"), tool: None, parameters });
    assert_eq!(**scene.part("a").parameters.as_ref().unwrap().value().unwrap(), json!({"n": 9}));
    assert_eq!(scene.started_calls(CallSide::Do), ["a"]);
}

/// Going on with the other items says nothing about the one that failed.
#[test]
fn an_agent_that_records_another_item_has_not_decided_about_the_failed_one() {
    let mut scene = ExecutionScenario::by_agent(
        "steps:
  - {id: a, tool: t.once, for_each: '[0, 1, 2]', parameters: {n: '{{ item }}'}}
  - {id: b, tool: t.once, depends_on: [a]}",
    );
    scene.start();
    assert_eq!(scene.execution.view().due.map(|(part, _)| part.to_string()).as_deref(), Some("a[0]"));
    scene.record_finished("a[0]", json!(0));
    scene.record_failed("a[1]", ToolError, false);
    assert_eq!(scene.asks(), ["failure a"]);
    scene.record_started("a[2]");
    scene.record_finished("a[2]", json!(2));
    assert_eq!(scene.asks(), ["failure a"]);
    assert_eq!(scene.count("QuestionAnswered"), 0);
    scene.record_started("a[1]");
    scene.record_finished("a[1]", json!(1));
    assert_eq!(scene.step("a"), "completed");
    assert_eq!(scene.execution.result_of("a"), Some(&json!([0, 1, 2])));
    scene.record_finished("b", json!({}));
    assert_eq!(scene.status(), "completed");
}
