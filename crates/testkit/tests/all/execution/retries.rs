//! Retries: how often, when, after what, and with which key.

use rutter_core::journal::event::{CallSide, QuestionAnswer};
use rutter_core::time::Millis;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use rutter_testkit::scene::{ExecutionScenario, done, fails, maybe};
use serde_json::json;

fn one(tool: &str, rest: &str) -> ExecutionScenario {
    let key = if tool == "t.keyed" { ", parameters: {key: '{{ key }}'}" } else { "" };
    ExecutionScenario::started(&format!("steps: [{{id: a, tool: {tool}{key}{rest}}}]"))
}

#[test]
fn the_backoff_grows_as_configured() {
    let table: [(&str, &[i64]); 4] = [
        ("backoff: fixed, initial: 2s", &[2_000, 2_000, 2_000]),
        ("backoff: linear, initial: 2s", &[2_000, 4_000, 6_000]),
        ("backoff: exponential, initial: 2s, factor: 3", &[2_000, 6_000, 18_000]),
        ("backoff: exponential, initial: 2s, factor: 3, max: 5s", &[2_000, 5_000, 5_000]),
    ];
    for (rule, waits) in table {
        let mut scene = one("t.set", &format!(", retry: {{max_attempts: 4, jitter: false, {rule}}}"));
        for wait in waits {
            scene.returns("a", fails(FailureCategory::Unavailable));
            assert_eq!(scene.step("a"), "retrying");
            assert_eq!(scene.wakes_in(), Some(*wait), "{rule}");
            scene.later(wait - 1);
            assert_eq!(scene.calls(), [""; 0], "{rule}");
            scene.later(1);
            assert_eq!(scene.calls().len(), 1, "{rule}");
        }
        scene.returns("a", fails(FailureCategory::Unavailable));
        assert_eq!(scene.asks(), ["failure a"], "{rule}");
    }
}

#[test]
fn jitter_is_bounded_and_the_same_each_time() {
    let waits = || {
        let mut scene = one("t.set", ", retry: {max_attempts: 4, initial: 10s, backoff: fixed}");
        (0..3)
            .map(|_| {
                scene.returns("a", fails(FailureCategory::Unavailable));
                let wait = scene.wakes_in().unwrap_or_default();
                scene.wait();
                wait
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(waits(), waits());
    assert!(waits().iter().all(|wait| (0..=10_000).contains(wait)), "{:?}", waits());
    assert!(waits()[0] != waits()[1] || waits()[1] != waits()[2], "{:?}", waits());
}

/// Which failures are retried: tool, outcome, status of the step.
#[test]
fn only_repeatable_calls_are_retried() {
    let tools = ["t.read", "t.set", "t.keyed", "t.once"];
    for category in FailureCategory::ALL {
        let listed =
            matches!(category, FailureCategory::RateLimited | FailureCategory::Unavailable | FailureCategory::Timeout);
        for tool in tools {
            let mut scene = one(tool, "");
            scene.returns("a", fails(category));
            let expected = if listed { "retrying" } else { "waiting" };
            assert_eq!(scene.step("a"), expected, "{tool} certainly not done: {category:?}");

            let mut scene = one(tool, "");
            scene.returns("a", maybe(category));
            let expected = if tool == "t.once" { "in_doubt" } else { expected };
            assert_eq!(scene.step("a"), expected, "{tool} perhaps done: {category:?}");
        }
    }
}

#[test]
fn a_rule_can_list_other_failures_but_cancelled_is_never_retried() {
    let mut scene = one("t.set", ", retry: {on: [tool_error, cancelled]}");
    scene.returns("a", fails(FailureCategory::ToolError));
    assert_eq!(scene.step("a"), "retrying");
    scene.wait();
    scene.returns("a", fails(FailureCategory::Cancelled));
    assert_eq!(scene.asks(), ["failure a"]);
}

#[test]
fn the_plans_default_rule_is_used_where_a_step_has_none() {
    let mut scene = ExecutionScenario::started(
        "defaults: {retry: {max_attempts: 2, jitter: false, initial: 7s, backoff: fixed}, timeout: 3s}
steps: [{id: a, tool: t.set}]",
    );
    assert_eq!(scene.wakes_in(), Some(3_000));
    scene.returns("a", fails(FailureCategory::Unavailable));
    assert_eq!(scene.wakes_in(), Some(7_000));
    scene.wait();
    scene.returns("a", fails(FailureCategory::Unavailable));
    assert_eq!(scene.asks(), ["failure a"]);
}

#[test]
fn the_retry_after_of_a_tool_is_respected() {
    let mut scene = one("t.set", ", retry: {jitter: false}");
    let mut failure = ToolFailure::new(FailureCategory::RateLimited, "slow down");
    failure.retry_after = Some(Millis::seconds(90));
    scene.returns("a", CallOutcome::NotDone(failure.clone()));
    assert_eq!(scene.wakes_in(), Some(90_000));
    failure.retry_after = Some(Millis::hours(99));
    scene.wait();
    scene.returns("a", CallOutcome::NotDone(failure));
    assert_eq!(scene.wakes_in(), Some(3_600_000));
}

#[test]
fn every_attempt_of_a_call_has_the_same_key() {
    let mut scene = one("t.keyed", "");
    let (key, parameters) = (scene.call("a").key, scene.call("a").parameters.clone());
    scene.returns("a", maybe(FailureCategory::Timeout));
    scene.wait();
    assert_eq!((scene.call("a").key, &scene.call("a").parameters), (key, &parameters));
    scene.crash();
    assert_eq!((scene.call("a").key, &scene.call("a").parameters), (key, &parameters));
}

#[test]
fn an_attempt_without_an_answer_is_closed_at_its_deadline() {
    for (tool, expected) in
        [("t.read", "retrying"), ("t.set", "retrying"), ("t.keyed", "retrying"), ("t.once", "in_doubt")]
    {
        let mut scene = one(tool, ", timeout: 5s");
        assert_eq!(scene.wakes_in(), Some(5_000));
        scene.later(4_999);
        assert_eq!(scene.step("a"), "running", "{tool}");
        scene.later(1);
        assert_eq!(scene.step("a"), expected, "{tool}");
    }
}

#[test]
fn all_attempts_together_end_at_the_total_timeout() {
    let mut scene = one("t.set", ", timeout: 10s, total_timeout: 12s, retry: {max_attempts: 9, jitter: false}");
    scene.later(10_000);
    assert_eq!(scene.wakes_in(), Some(1_000));
    scene.wait();
    assert_eq!(scene.calls(), ["a#2"]);
    assert_eq!(scene.wakes_in(), Some(1_000));
    scene.wait();
    assert_eq!(scene.asks(), ["failure a"]);
    assert!(scene.part("a").effect.is_some(), "it may have taken effect");
}

#[test]
fn a_retry_that_would_come_too_late_is_not_scheduled() {
    let mut scene = one("t.set", ", timeout: 1s, total_timeout: 2s, retry: {jitter: false, initial: 2s}");
    scene.returns("a", fails(FailureCategory::Unavailable));
    assert_eq!(scene.asks(), ["failure a"]);
}

#[test]
fn a_retry_held_up_beyond_the_total_timeout_is_abandoned() {
    let mut scene = one("t.set", ", timeout: 1s, total_timeout: 20s, retry: {jitter: false, initial: 2s}");
    scene.returns("a", fails(FailureCategory::Unavailable));
    scene.pause();
    scene.later(20_000);
    assert_eq!(scene.events()[0], "RetryAbandoned");
    scene.resume();
    assert_eq!(scene.asks(), ["failure a"]);
}

/// After the total timeout, whatever the step waited for until then.
#[test]
fn nothing_is_called_after_the_total_timeout() {
    let probe =
        "probe: {tool: t.find, timeout: 60s, happened: result.found, settle: 0s}, timeout: 10s, total_timeout: 12s";
    let mut scene = one("t.once", &format!(", {probe}"));
    scene.returns("a", maybe(FailureCategory::Timeout));
    scene.later(12_000);
    scene.returns("a", done(json!({"found": false})));
    assert_eq!(scene.events(), ["AttemptSucceeded", "DoubtSettled", "RetryAbandoned", "FailureHandled"]);
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["failure a".to_owned()]));
    assert!(scene.part("a").effect.is_none());

    let mut scene = one("t.once", &format!(", approval: {{expires: 1h}}, {probe}"));
    scene.approve("a");
    scene.returns("a", maybe(FailureCategory::Timeout));
    scene.returns("a", done(json!({"found": false})));
    assert_eq!(scene.asks(), ["approval a"]);
    assert_eq!(scene.wakes_in(), Some(12_000));
    scene.later(12_000);
    assert_eq!((scene.events()[0].as_str(), scene.calls()), ("RetryAbandoned", vec![]));
    assert_eq!(scene.asks(), ["failure a"]);
}

#[test]
fn a_retry_by_decision_has_a_new_total_timeout() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, timeout: 10s, total_timeout: 12s, fallback: {tool: t.set, timeout: 10s, retry: {max_attempts: 1}}}",
    );
    scene.returns("a", fails(FailureCategory::ToolError));
    scene.returns("a", maybe(FailureCategory::Unavailable));
    scene.later(60_000);
    assert_eq!(scene.asks(), ["failure a"]);
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!(scene.calls(), ["fallback a#2"]);
    assert_eq!(scene.wakes_in(), Some(10_000));
}

#[test]
fn lost_attempts_do_not_use_up_the_retries_but_have_their_own_bound() {
    let mut scene = one("t.set", "");
    for _ in 0..20 {
        scene.crash();
        assert_eq!(scene.calls().len(), 1);
    }
    scene.crash();
    assert_eq!(scene.asks(), ["failure a"]);
    assert_eq!(scene.started_calls(CallSide::Do).len(), 21);
}

#[test]
fn a_failure_after_losses_still_has_its_retries() {
    let mut scene = one("t.set", "");
    scene.crash();
    scene.crash();
    scene.returns("a", fails(FailureCategory::Unavailable));
    scene.wait();
    scene.returns("a", fails(FailureCategory::Unavailable));
    scene.wait();
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.execution.view().steps[0].attempts, 5);
}

#[test]
fn a_part_in_backoff_keeps_its_slot() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set}, {id: b, tool: t.set}]");
    scene.returns("a", fails(FailureCategory::Unavailable));
    assert_eq!(scene.calls(), [""; 0]);
    assert_eq!(scene.status(), "running");
}
