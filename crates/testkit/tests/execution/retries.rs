//! Retries: how often, when, after what, and with which key.

use rutter_core::journal::event::Side;
use rutter_core::time::Millis;
use rutter_core::tool::{Category, Failure, Outcome};
use rutter_testkit::scene::{Scene, done, fails, maybe};
use serde_json::json;

fn one(tool: &str, rest: &str) -> Scene {
    let key = if tool == "t.keyed" { ", parameters: {key: '{{ key }}'}" } else { "" };
    Scene::started(&format!("steps: [{{id: a, tool: {tool}{key}{rest}}}]"))
}

#[test]
fn the_wait_grows_as_the_rule_says() {
    let table: [(&str, &[i64]); 4] = [
        ("backoff: fixed, initial: 2s", &[2_000, 2_000, 2_000]),
        ("backoff: linear, initial: 2s", &[2_000, 4_000, 6_000]),
        ("backoff: exponential, initial: 2s, factor: 3", &[2_000, 6_000, 18_000]),
        ("backoff: exponential, initial: 2s, factor: 3, max: 5s", &[2_000, 5_000, 5_000]),
    ];
    for (rule, waits) in table {
        let mut scene = one("t.set", &format!(", retry: {{max_attempts: 4, jitter: false, {rule}}}"));
        for wait in waits {
            scene.returns("a", fails(Category::Unavailable));
            assert_eq!(scene.step("a"), "retrying");
            assert_eq!(scene.wakes_in(), Some(*wait), "{rule}");
            scene.later(wait - 1);
            assert_eq!(scene.calls(), [""; 0], "{rule}");
            scene.later(1);
            assert_eq!(scene.calls().len(), 1, "{rule}");
        }
        scene.returns("a", fails(Category::Unavailable));
        assert_eq!(scene.asks(), ["failure a"], "{rule}");
    }
}

#[test]
fn jitter_is_bounded_and_the_same_each_time() {
    let waits = || {
        let mut scene = one("t.set", ", retry: {max_attempts: 4, initial: 10s, backoff: fixed}");
        (0..3)
            .map(|_| {
                scene.returns("a", fails(Category::Unavailable));
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

/// Which failures are tried again: tool, outcome, what becomes of the step.
#[test]
fn what_may_be_repeated_is_and_nothing_else() {
    let tools = ["t.read", "t.set", "t.keyed", "t.once"];
    for category in Category::ALL {
        let listed = matches!(category, Category::RateLimited | Category::Unavailable | Category::Timeout);
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
    scene.returns("a", fails(Category::ToolError));
    assert_eq!(scene.step("a"), "retrying");
    scene.wait();
    scene.returns("a", fails(Category::Cancelled));
    assert_eq!(scene.asks(), ["failure a"]);
}

#[test]
fn the_plans_default_rule_is_used_where_a_step_has_none() {
    let mut scene = Scene::started(
        "defaults: {retry: {max_attempts: 2, jitter: false, initial: 7s, backoff: fixed}, timeout: 3s}
steps: [{id: a, tool: t.set}]",
    );
    assert_eq!(scene.wakes_in(), Some(3_000));
    scene.returns("a", fails(Category::Unavailable));
    assert_eq!(scene.wakes_in(), Some(7_000));
    scene.wait();
    scene.returns("a", fails(Category::Unavailable));
    assert_eq!(scene.asks(), ["failure a"]);
}

#[test]
fn a_tool_that_asks_for_patience_gets_it() {
    let mut scene = one("t.set", ", retry: {jitter: false}");
    let mut failure = Failure::new(Category::RateLimited, "slow down");
    failure.retry_after = Some(Millis::seconds(90));
    scene.returns("a", Outcome::NotDone(failure.clone()));
    assert_eq!(scene.wakes_in(), Some(90_000));
    failure.retry_after = Some(Millis::hours(99));
    scene.wait();
    scene.returns("a", Outcome::NotDone(failure));
    assert_eq!(scene.wakes_in(), Some(3_600_000));
}

#[test]
fn every_attempt_of_a_call_has_the_same_key() {
    let mut scene = one("t.keyed", "");
    let (key, parameters) = (scene.call("a").key, scene.call("a").parameters.clone());
    scene.returns("a", maybe(Category::Timeout));
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
    let mut scene =
        one("t.set", ", timeout: 10s, total_timeout: 12s, retry: {max_attempts: 9, jitter: false}");
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
fn a_retry_that_would_come_too_late_is_not_waited_for() {
    let mut scene = one("t.set", ", timeout: 1s, total_timeout: 2s, retry: {jitter: false, initial: 2s}");
    scene.returns("a", fails(Category::Unavailable));
    assert_eq!(scene.asks(), ["failure a"]);
}

#[test]
fn a_retry_held_up_beyond_the_total_timeout_is_abandoned() {
    let mut scene = one("t.set", ", timeout: 1s, total_timeout: 20s, retry: {jitter: false, initial: 2s}");
    scene.returns("a", fails(Category::Unavailable));
    scene.pause();
    scene.later(20_000);
    assert_eq!(scene.events()[0], "RetryAbandoned");
    scene.resume();
    assert_eq!(scene.asks(), ["failure a"]);
}

#[test]
fn lost_attempts_do_not_use_up_the_tries_but_have_a_bound_of_their_own() {
    let mut scene = one("t.set", "");
    for _ in 0..20 {
        scene.crash();
        assert_eq!(scene.calls().len(), 1);
    }
    scene.crash();
    assert_eq!(scene.asks(), ["failure a"]);
    assert_eq!(scene.started_calls(Side::Do).len(), 21);
}

#[test]
fn a_failure_after_losses_still_has_its_tries() {
    let mut scene = one("t.set", "");
    scene.crash();
    scene.crash();
    scene.returns("a", fails(Category::Unavailable));
    scene.wait();
    scene.returns("a", fails(Category::Unavailable));
    scene.wait();
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.execution.view().steps[0].attempts, 5);
}

#[test]
fn a_part_in_back_off_keeps_its_place() {
    let mut scene = Scene::started("steps: [{id: a, tool: t.set}, {id: b, tool: t.set}]");
    scene.returns("a", fails(Category::Unavailable));
    assert_eq!(scene.calls(), [""; 0]);
    assert_eq!(scene.status(), "running");
}
