//! Servers that take no calls after failures: their calls wait, on record, and use up no attempts.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::journal::event::{CallSide, ExecutionLimit, Question, QuestionAnswer};
use rutter_core::limits::SERVER_WAIT_MAX;
use rutter_core::time::Timestamp;
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::json;

const WAIT_MAX: i64 = SERVER_WAIT_MAX.0 as i64;

/// An execution that is started while the server of these tools takes no calls for so long.
fn paused_from_the_start(fields: &str, tools: &[&str], millis: i64) -> ExecutionScenario {
    let mut scene = ExecutionScenario::of(fields);
    tools.iter().for_each(|tool| scene.pause_server(tool, millis));
    scene.start();
    scene
}

#[test]
fn a_call_that_may_be_made_once_waits_for_its_server_and_is_then_made() {
    let plan = "steps: [{id: a, tool: t.once, retry: {max_attempts: 1}}]";
    let mut scene = paused_from_the_start(plan, &["t.once"], 30_000);
    assert_eq!((scene.calls(), scene.step("a"), scene.status()), (vec![], "retrying", "running"));
    assert_eq!(scene.wakes_in(), Some(30_000));
    scene.later(29_999);
    assert_eq!((scene.calls(), scene.count("CallDelayed")), (vec![], 1));
    scene.later(1);
    assert_eq!(scene.calls(), ["a"], "its first attempt");
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn every_answer_says_what_is_waited_for_and_until_when() {
    let plan = "steps: [{id: a, tool: t.once}]";
    let mut scene = paused_from_the_start(plan, &["t.once"], 30_000);
    let words = "a waits until 1970-01-01 00:17:10Z for its server (unavailable: \"the circuit breaker is open\")";
    let view = scene.execution.view();
    assert_eq!(view.summary(), format!("running, 0 of 1 step completed; {words}"));
    let wait = view.steps[0].wait.clone().expect("it waits");
    assert_eq!((wait.part, wait.until, &*wait.failure), (part("a"), Timestamp(1_030_000), &paused()));
    assert!(scene.execution.brief().contains(&format!("Waits: {words}\n")), "{}", scene.execution.brief());
    scene.wait();
    assert!(scene.execution.view().steps[0].wait.is_none() && !scene.execution.brief().contains("Waits"));
}

/// A pause that goes on is on record each time, as is the attempt that failed before it.
#[test]
fn pauses_between_attempts_leave_the_other_attempts() {
    let mut scene =
        ExecutionScenario::started("steps: [{id: a, tool: t.set, retry: {max_attempts: 2, jitter: false}}]");
    scene.returns("a", fails(Unavailable));
    scene.pause_server("t.set", 60_000);
    for _ in 0..3 {
        scene.wait();
        assert_eq!((scene.calls(), scene.step("a")), (vec![], "retrying"));
        scene.pause_server("t.set", 120_000);
    }
    assert_eq!(scene.count("CallDelayed"), 3);
    scene.paused.clear();
    scene.wait();
    assert_eq!(scene.calls(), ["a#2"]);
    scene.returns("a", fails(Unavailable));
    assert_eq!(scene.asks(), ["failure a"]);
}

/// Below the limit it waits; at the limit it is called, which is refused and counts, as are the pauses after it.
#[test]
fn a_call_waits_no_longer_than_the_limit_and_then_counts() {
    let plan = "steps: [{id: a, tool: t.once, retry: {max_attempts: 2, jitter: false}}]";
    let mut scene = paused_from_the_start(plan, &["t.once"], WAIT_MAX - 1);
    scene.wait();
    assert_eq!(scene.calls(), ["a"], "the server is back just in time");

    let mut scene = paused_from_the_start(plan, &["t.once"], WAIT_MAX * 10);
    for attempt in ["a", "a#2"] {
        let begun = scene.now;
        assert_eq!(scene.wakes_in(), Some(WAIT_MAX));
        scene.later(WAIT_MAX - 1);
        assert_eq!(scene.calls(), [""; 0]);
        scene.later(1);
        assert_eq!((scene.calls(), scene.now.since(begun)), (vec![attempt.to_owned()], SERVER_WAIT_MAX));
        scene.returns("a", fails(Unavailable));
        if attempt == "a" {
            scene.wait();
        }
    }
    assert_eq!(scene.asks(), ["failure a"]);
    let cause = scene.execution.view().summary();
    assert!(cause.contains("a failed (unavailable"), "{cause}");
}

/// What is over the limit is called even if it comes late, and still needs room.
#[test]
fn a_call_over_the_limit_needs_room_like_any_other() {
    let mut scene = paused_from_the_start("steps: [{id: a, tool: t.once}]", &["t.once"], WAIT_MAX * 10);
    scene.room = 0;
    scene.later(WAIT_MAX + 5);
    assert_eq!((scene.calls(), scene.count("CallDelayed")), (vec![], 1));
    scene.room = 1;
    scene.wake();
    assert_eq!(scene.calls(), ["a"]);
}

#[test]
fn the_wait_is_counted_over_all_pauses_also_after_a_crash() {
    let mut scene = paused_from_the_start("steps: [{id: a, tool: t.once}]", &["t.once"], WAIT_MAX / 2);
    scene.crash();
    scene.pause_server("t.once", WAIT_MAX);
    scene.wait();
    assert_eq!((scene.calls(), scene.wakes_in()), (vec![], Some(WAIT_MAX / 2)));
}

#[test]
fn a_hold_does_not_count_as_waiting() {
    let mut scene = paused_from_the_start("steps: [{id: a, tool: t.once}]", &["t.once"], WAIT_MAX);
    scene.later(1_000);
    scene.hold(WAIT_MAX * 2);
    assert_eq!(scene.calls(), [""; 0]);
    scene.pause_server("t.once", WAIT_MAX * 2);
    scene.resume();
    assert_eq!((scene.calls(), scene.wakes_in()), (vec![], Some(WAIT_MAX - 1_000)));
}

#[test]
fn a_fallback_is_called_once_the_limit_is_reached() {
    let plan = "steps: [{id: a, tool: t.once, retry: {max_attempts: 1}, fallback: {tool: t.other}}]";
    let mut scene = paused_from_the_start(plan, &["t.once"], WAIT_MAX * 2);
    scene.later(WAIT_MAX);
    scene.returns("a", fails(Unavailable));
    assert_eq!(scene.calls(), ["fallback a"]);
}

#[test]
fn the_time_of_the_step_and_of_the_execution_run_while_it_waits() {
    let plan = "steps: [{id: a, tool: t.set, total_timeout: 20s}]";
    let mut scene = paused_from_the_start(plan, &["t.set"], 30_000);
    assert_eq!(scene.wakes_in(), Some(20_000));
    scene.later(20_000);
    assert_eq!(scene.asks(), ["failure a"]);
    let failure = scene.execution.view().steps[0].failure.clone().expect("it failed");
    assert_eq!(failure.category, Timeout);
    assert!(failure.message.contains("waited for its server (unavailable"), "{failure}");

    let plan = "deadline: 20s\nsteps: [{id: a, tool: t.set}]";
    let mut scene = paused_from_the_start(plan, &["t.set"], 30_000);
    scene.later(20_000);
    assert_eq!(scene.asks(), ["limit Deadline"]);
    scene.later(60_000);
    assert_eq!(scene.calls(), [""; 0], "the question comes first");
    scene.answer(Question::Limit(ExecutionLimit::Deadline), QuestionAnswer::Continue);
    assert_eq!(scene.calls(), ["a"]);
}

/// Steps of other servers go on, and each call that waits says so.
#[test]
fn only_calls_of_the_paused_server_wait() {
    let plan = "max_parallel: 3
steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once}
  - {id: c, tool: t.other}";
    let mut scene = paused_from_the_start(plan, &["t.once"], 5_000);
    assert_eq!((scene.calls(), scene.steps()), (vec!["c".to_owned()], vec!["retrying", "retrying", "running"]));
    scene.wait();
    assert_eq!(scene.calls(), ["a", "b"]);
}

/// A person's approval comes before the wait, and stays good for the call.
#[test]
fn a_call_is_approved_before_it_waits() {
    let plan = "steps: [{id: a, tool: t.once, approval: {required: true, expires: 1h}}]";
    let mut scene = paused_from_the_start(plan, &["t.once"], 30_000);
    assert_eq!(scene.asks(), ["approval a"]);
    scene.approve("a");
    assert_eq!((scene.calls(), scene.step("a")), (vec![], "retrying"));
    scene.wait();
    assert_eq!(scene.calls(), ["a"]);
}

#[test]
fn probes_and_compensations_wait_too() {
    let plan = "steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}, probe: {tool: t.find, happened: result.found, settle: 0s}}
  - {id: b, tool: t.once, depends_on: [a], failure_policy: {action: compensate}}";
    let mut scene = paused_from_the_start(plan, &["t.find", "t.undo"], 30_000);
    scene.returns("a", maybe(Timeout));
    assert_eq!((scene.calls(), scene.status()), (vec![], "running"));
    scene.wait();
    assert_eq!(scene.calls(), ["probe a"]);
    scene.returns("a", done(json!({"found": true})));
    scene.pause_server("t.undo", 30_000);
    scene.returns("b", fails(ToolError));
    assert_eq!((scene.calls(), scene.status()), (vec![], "compensating"));
    assert!(scene.execution.view().summary().contains("; a waits until"), "{}", scene.execution.view().summary());
    scene.wait();
    assert_eq!(scene.calls(), ["undo a"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn a_call_that_waits_is_stopped_with_its_execution() {
    let mut scene = paused_from_the_start("steps: [{id: a, tool: t.once}]", &["t.once"], 30_000);
    scene.cancel(None);
    assert_eq!((scene.status(), scene.step("a")), ("cancelled", "cancelled"));
    assert_eq!(scene.part("a").attempts_of(CallSide::Do), 0);
    assert_eq!(scene.refused(&person(), ExecutionInput::Pause { reason: "late".into() }), "execution.ended");
}
