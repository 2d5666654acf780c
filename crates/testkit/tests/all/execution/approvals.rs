//! Approvals: a person's approval of one exact call, once, for a limited time.

use rutter_core::actor::Actor;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::hash::Hash;
use rutter_core::journal::event::{CallSide, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::json;

const ASKED: &str = "steps: [{id: a, tool: t.once, parameters: {n: 1}, approval: {expires: 1h}}]";

fn approve(call: Hash) -> ExecutionInput {
    ExecutionInput::Approve { part: part("a"), call, reason: String::new() }
}

#[test]
fn nothing_is_called_before_the_approval_and_exactly_that_call_after_it() {
    let mut scene = ExecutionScenario::started(ASKED);
    assert_eq!((scene.calls().len(), scene.status()), (0, "waiting"));
    let asked = scene.execution.questions();
    let [PendingQuestion::Approval { call, tool, parameters, expires_at, .. }] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    assert_eq!((tool.as_str(), parameters.as_deref()), ("t.once", Some(&json!({"n": 1}))));
    assert_eq!((expires_at.0, *call), (scene.now.0 + 3_600_000, scene.asked("a")));
    scene.approve("a");
    assert_eq!(scene.events(), ["ApprovalGranted", "AttemptStarted"]);
    assert_eq!(*scene.call("a").parameters, json!({"n": 1}));
}

#[test]
fn an_approval_of_another_call_or_by_an_agent_is_refused() {
    let mut scene = ExecutionScenario::started(ASKED);
    let call = scene.asked("a");
    assert_eq!(scene.refused(&person(), approve(Hash::ZERO)), "execution.other_call");
    assert_eq!(scene.refused(&agent(), approve(call)), "execution.not_a_person");
    assert_eq!(scene.refused(&Actor::rutter(), approve(call)), "execution.not_a_person");
    let deny = ExecutionInput::Deny { part: part("a"), call, reason: String::new() };
    assert_eq!(scene.refused(&agent(), deny), "execution.not_a_person");
    scene.approve("a");
    assert_eq!(scene.refused(&person(), approve(call)), "execution.not_asked");
}

#[test]
fn a_rejection_fails_the_step_and_a_retry_asks_again() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.deny("a");
    assert_eq!(scene.asks(), ["failure a"]);
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!(scene.asks(), ["approval a"]);
    assert_eq!(scene.count("AttemptStarted"), 0);
}

#[test]
fn an_approval_ends_with_the_attempts_it_was_given_for() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.set, timeout: 10s, total_timeout: 20s, approval: {expires: 1h}, retry: {jitter: false}}",
    );
    scene.approve("a");
    scene.returns("a", fails(Unavailable));
    scene.pause();
    scene.later(20_000);
    scene.resume();
    assert_eq!((scene.count("RetryAbandoned"), scene.asks()), (1, vec!["failure a".to_owned()]));
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval a".to_owned()]));
}

#[test]
fn an_unanswered_approval_fails_the_step_when_it_expires() {
    let mut scene = ExecutionScenario::started(ASKED);
    assert_eq!(scene.wakes_in(), Some(3_600_000));
    scene.later(3_599_999);
    assert_eq!(scene.asks(), ["approval a"]);
    scene.later(1);
    assert_eq!(scene.asks(), ["failure a"]);
    assert_eq!(scene.count("AttemptStarted"), 0);
}

#[test]
fn an_unused_approval_expires_and_is_requested_again() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.pause();
    scene.approve("a");
    assert_eq!(scene.calls(), [""; 0]);
    scene.later(3_600_000);
    assert_eq!(scene.events(), ["ApprovalVoided"]);
    scene.resume();
    assert_eq!(scene.asks(), ["approval a"]);
    assert_eq!(scene.count("AttemptStarted"), 0);
}

#[test]
fn an_approval_that_comes_too_late_does_not_count() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.now.0 += 3_600_000;
    let call = scene.asked("a");
    scene.give(&person(), approve(call));
    assert_eq!(scene.calls(), [""; 0]);
    assert_eq!(scene.asks(), ["approval a"]);
}

#[test]
fn a_yes_waits_for_room() {
    let mut scene = ExecutionScenario::of(ASKED);
    scene.room = 0;
    scene.start();
    assert_eq!(scene.asks(), ["approval a"]);
    scene.approve("a");
    assert_eq!((scene.calls().len(), scene.status()), (0, "running"));
    scene.room = 1;
    scene.wake();
    assert_eq!(scene.calls(), ["a"]);
}

/// After each way an attempt can end: is the same approval valid for the next one?
#[test]
fn an_approval_is_for_one_effect() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set, approval: true}]");
    scene.approve("a");
    scene.returns("a", fails(Unavailable));
    scene.wait();
    assert_eq!(scene.calls(), ["a#2"], "a retry of the same series");
    scene.crash();
    assert_eq!(scene.calls(), ["a#3"], "a lost attempt that may be repeated");
    scene.returns("a", fails(ToolError));
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!(scene.asks(), ["approval a"], "an abandoned series has ended");

    let mut scene = ExecutionScenario::started(ASKED);
    scene.approve("a");
    scene.returns("a", maybe(Timeout));
    scene.settle("a", false, json!(null));
    assert_eq!(scene.asks(), ["approval a"], "after doubt it is asked again");
    scene.approve("a");
    assert_eq!(scene.calls(), ["a#2"]);
}

#[test]
fn a_fallback_is_another_call_and_needs_its_own_approval() {
    let mut scene =
        ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true, fallback: {tool: t.other}}]");
    let first = scene.asked("a");
    scene.approve("a");
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.asks(), ["approval a"]);
    assert_ne!(scene.asked("a"), first);
    assert_eq!(scene.refused(&person(), approve(first)), "execution.other_call");
    scene.approve("a");
    assert_eq!(scene.calls(), ["fallback a"]);
}

#[test]
fn the_approval_of_a_fallback_can_expire_and_be_requested_again() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, approval: {expires: 1h}, fallback: {tool: t.other}}]",
    );
    scene.approve("a");
    scene.returns("a", fails(ToolError));
    scene.pause();
    scene.approve("a");
    scene.later(3_600_000);
    scene.resume();
    assert_eq!(scene.asks(), ["approval a"]);
    scene.approve("a");
    assert_eq!(scene.calls(), ["fallback a"]);
    assert_eq!(scene.started_calls(CallSide::Do), ["a"]);
}

#[test]
fn an_approved_call_that_has_changed_needs_another_approval() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.pause();
    scene.approve("a");
    let definition = Hash::of(&[b"another"]);
    let (name, reason) = (tool("t.once"), String::new());
    scene.give(&Actor::rutter(), ExecutionInput::ReportDefinition { tool: name.clone(), found: definition });
    scene.give(&person(), ExecutionInput::AcceptTool { tool: name, definition, reason });
    scene.resume();
    assert_eq!(scene.count("ApprovalVoided"), 1);
    assert_eq!(scene.asks(), ["approval a"]);
    scene.approve("a");
    assert_eq!(scene.call("a").definition, definition);
}

#[test]
fn undoing_and_probing_need_no_approval() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, approval: true, compensation: {tool: t.undo}, probe: {tool: t.find, happened: result.found, settle: 0s}}]",
    );
    scene.approve("a");
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.calls(), ["probe a"]);
    scene.returns("a", done(json!({"found": true})));
    scene.compensate(None);
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn cancelling_closes_the_question() {
    let mut scene = ExecutionScenario::started(ASKED);
    let call = scene.asked("a");
    scene.cancel(None);
    assert_eq!((scene.status(), scene.step("a")), ("cancelled", "cancelled"));
    assert_eq!(scene.refused(&person(), approve(call)), "execution.not_asked");
}

#[test]
fn a_replan_that_keeps_the_call_keeps_the_question_and_the_approval() {
    let mut scene = ExecutionScenario::started(ASKED);
    let call = scene.asked("a");
    scene.replan_as(&person(), &format!("{}, {{id: b, tool: t.once}}]", ASKED.trim_end_matches(']')));
    assert_eq!(scene.asked("a"), call);
    scene.pause();
    scene.approve("a");
    scene.replan_as(&person(), &format!("{}, {{id: c, tool: t.once}}]", ASKED.trim_end_matches(']')));
    scene.resume();
    assert_eq!(scene.calls(), ["a"]);
}

/// Nobody approves what is not shown. Found by the adversary.
#[test]
fn a_question_shows_its_call_after_a_plan_that_writes_the_call_in_another_way() {
    let plan = |parameters: &str| {
        format!("steps: [{{id: a, tool: t.once, parameters: {{{parameters}}}, approval: {{expires: 1h}}}}]")
    };
    let shown = |scene: &ExecutionScenario| {
        let asked = scene.execution.questions();
        let [PendingQuestion::Approval { parameters, .. }] = asked.as_slice() else { panic!("{asked:?}") };
        parameters.as_deref().map(ToString::to_string)
    };
    let mut scene = ExecutionScenario::started(&plan("n: 1, m: 2"));
    let call = scene.asked("a");
    scene.replan(&plan("m: 2, n: 1"));
    assert_eq!(shown(&scene).as_deref(), Some(r#"{"m":2,"n":1}"#));
    assert_eq!(scene.refused(&person(), approve(call)), "execution.other_call");
    scene.approve("a");
    assert_eq!(scene.call("a").parameters.to_string(), r#"{"m":2,"n":1}"#);
    // An unused approval is asked for again, and not when the call is made.
    let mut scene = ExecutionScenario::started(&plan("n: 1, m: 2"));
    scene.pause();
    scene.approve("a");
    scene.replan(&plan("m: 2, n: 1"));
    scene.resume();
    assert_eq!((scene.calls().len(), shown(&scene).as_deref()), (0, Some(r#"{"m":2,"n":1}"#)));
}

#[test]
fn a_call_by_an_agent_without_approval_is_recorded_as_such() {
    let mut scene = ExecutionScenario::by_agent(ASKED);
    scene.start();
    assert_eq!(scene.asks(), ["approval a"]);
    scene.record_finished("a", json!({}));
    assert_eq!(scene.deviations(), ["Unapproved a"]);

    let mut scene = ExecutionScenario::by_agent(ASKED);
    scene.start();
    scene.approve("a");
    scene.record_finished("a", json!({}));
    assert_eq!(scene.deviations(), [""; 0]);
    assert_eq!(scene.status(), "completed");
}

#[test]
fn a_question_asked_while_an_agent_drives_stays_open_when_rutter_drives() {
    let mut scene = ExecutionScenario::by_agent(ASKED);
    scene.start();
    scene.approve("a");
    scene.hand_over(Driver::Server);
    assert_eq!(scene.calls(), ["a"]);
}
