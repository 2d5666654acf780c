//! The age of a doubt: what a probe may say when, what a key is good for, and what a doubt holds up.

use rutter_core::execution::part::PartState;
use rutter_core::journal::event::{CallSide, QuestionAnswer};
use rutter_core::limits;
use rutter_core::plan::Driver;
use rutter_core::time::Millis;
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::json;
use std::sync::Arc;

const PROBED: &str = "steps:
  - {id: a, tool: t.once, timeout: 30s, retry: {max_attempts: 3}, probe: {tool: t.find, happened: result.found}}";

const KEYED: &str = "steps:
  - {id: a, tool: t.keyed, parameters: {key: '{{ key }}'}, retry: {max_attempts: 5, initial: 1s, jitter: false}, probe: {tool: t.find, happened: result.found, settle: 0s}}";

fn missing() -> rutter_core::tool::CallOutcome {
    done(json!({"found": false}))
}

#[test]
fn a_probe_that_finds_nothing_is_not_believed_before_the_call_is_old_enough() {
    for (settle, wait) in [("", 30_000), (", settle: 5s", 5_000), (", settle: 2m", 120_000)] {
        let mut scene =
            ExecutionScenario::started(&PROBED.replace("result.found}", &format!("result.found{settle}}}")));
        scene.returns("a", maybe(Timeout));
        scene.returns("a", missing());
        assert_eq!(
            (scene.events(), scene.step("a")),
            (vec!["AttemptSucceeded".into(), "ProbePostponed".into()], "in_doubt")
        );
        assert_eq!((scene.calls(), scene.asks(), scene.wakes_in()), (vec![], vec![], Some(wait)), "{settle}");
        scene.later(wait - 1);
        assert_eq!(scene.calls(), [""; 0]);
        scene.later(1);
        assert_eq!(scene.calls(), ["probe a#2"]);
        scene.returns("a", missing());
        assert_eq!(scene.calls(), ["a#2"], "{settle}");
    }
}

#[test]
fn a_probe_that_finds_it_is_believed_at_once() {
    let mut scene = ExecutionScenario::started(PROBED);
    scene.returns("a", maybe(Timeout));
    scene.returns("a", missing());
    scene.wait();
    scene.returns("a", done(json!({"found": true})));
    assert_eq!((scene.status(), scene.started_calls(CallSide::Do)), ("completed", vec!["a".to_owned()]));
    let mut scene = ExecutionScenario::started(PROBED);
    scene.returns("a", maybe(Timeout));
    scene.returns("a", done(json!({"found": true})));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn after_a_crash_the_age_counts_from_the_recovery_and_survives_another_crash() {
    let mut scene = ExecutionScenario::started(PROBED);
    scene.now.0 += 10_000;
    scene.crash();
    assert_eq!(scene.calls(), ["probe a"]);
    scene.returns("a", missing());
    assert_eq!((scene.calls(), scene.wakes_in()), (vec![], Some(30_000)));
    scene.now.0 += 20_000;
    scene.crash();
    assert_eq!((scene.calls(), scene.wakes_in()), (vec![], Some(10_000)));
    scene.wait();
    scene.returns("a", missing());
    assert_eq!(scene.calls(), ["a#2"]);
}

#[test]
fn the_probe_of_a_compensation_waits_as_well() {
    let mut scene = ExecutionScenario::started(
        "on_failure: compensate
steps:
  - id: a
    tool: t.once
    compensation: {tool: t.undo_once, timeout: 7s, probe: {tool: t.find, happened: result.found}}
  - {id: b, tool: t.once, depends_on: [a]}",
    );
    scene.returns("a", done(json!({})));
    scene.returns("b", fails(ToolError));
    assert_eq!(scene.calls(), ["undo a"]);
    scene.returns("a", maybe(Timeout));
    scene.returns("a", missing());
    assert_eq!((scene.calls(), scene.wakes_in()), (vec![], Some(7_000)));
    scene.wait();
    scene.returns("a", missing());
    assert_eq!(scene.calls(), ["undo a#2"]);
}

#[test]
fn a_person_need_not_wait_for_the_second_probe() {
    let mut scene = ExecutionScenario::started(PROBED);
    scene.returns("a", maybe(Timeout));
    scene.returns("a", missing());
    scene.settle("a", true, json!({}));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn a_lost_keyed_call_is_sent_again_only_while_the_tool_remembers_its_key() {
    let window = limits::KEY_WINDOW_DEFAULT.0 as i64;
    let deadline = "deadline: 48h\n";
    for (age, calls) in [(window - 1, ["a#2"]), (window, ["probe a"]), (window + 1, ["probe a"])] {
        let mut scene =
            ExecutionScenario::started(&format!("{deadline}{KEYED}").replace("t.keyed,", "t.keyed, timeout: 24h,"));
        scene.now.0 += age;
        // The attempt is still open: its timeout is as long as the window.
        scene.crash();
        assert_eq!(scene.calls(), calls, "{age}");
    }
}

#[test]
fn a_retry_that_waited_too_long_is_in_doubt_and_not_sent_with_its_old_key() {
    let window = limits::KEY_WINDOW_DEFAULT.0 as i64;
    let mut scene = ExecutionScenario::started(&format!("deadline: 90h\n{KEYED}"));
    let key = scene.call("a").key;
    scene.returns("a", maybe(Unavailable));
    scene.pause();
    scene.now.0 += window;
    scene.resume();
    assert_eq!(scene.events(), ["Resumed", "KeyExpired", "AttemptStarted"]);
    assert_eq!((scene.calls(), scene.step("a")), (vec!["probe a".to_owned()], "in_doubt"));
    // Settled: nothing has happened, so this use of the key is the first.
    scene.returns("a", missing());
    assert_eq!((scene.calls(), scene.call("a").key), (vec!["a#2".to_owned()], key));
    scene.returns("a", maybe(Unavailable));
    assert_eq!(scene.step("a"), "retrying");
}

#[test]
fn a_person_who_retries_the_next_day_does_not_reuse_a_forgotten_key() {
    let window = limits::KEY_WINDOW_DEFAULT.0 as i64;
    let mut scene = ExecutionScenario::started(
        "deadline: 90h
steps: [{id: a, tool: t.keyed, parameters: {key: '{{ key }}'}, retry: {max_attempts: 1}}]",
    );
    scene.returns("a", maybe(Unavailable));
    assert_eq!(scene.asks(), ["failure a"]);
    scene.later(window);
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["doubt a".to_owned()]));
    assert_eq!(scene.started_calls(CallSide::Do), ["a"]);
}

#[test]
fn a_key_whose_calls_certainly_failed_can_be_used_at_any_time() {
    let window = limits::KEY_WINDOW_DEFAULT.0 as i64;
    let mut scene = ExecutionScenario::started(&format!("deadline: 90h\n{KEYED}"));
    scene.returns("a", fails(Unavailable));
    scene.pause();
    scene.now.0 += window + 1;
    scene.resume();
    assert_eq!(scene.calls(), ["a#2"]);
}

fn many(count: usize, fields: &str) -> String {
    let doubts = (0..count).map(|at| format!("  - {{id: a{at}, tool: t.once, priority: 1}}\n"));
    let others = (0..count).map(|at| format!("  - {{id: b{at}, tool: t.once}}\n"));
    format!("{fields}\nsteps:\n{}", doubts.chain(others).collect::<String>())
}

#[test]
fn eight_doubts_do_not_block_eight_independent_steps() {
    let mut scene = ExecutionScenario::started(&many(8, "max_parallel: 8"));
    for at in 0..8 {
        scene.returns(&format!("a{at}"), maybe(Timeout));
        assert_eq!(scene.calls(), [format!("b{at}")]);
    }
    // Settled as not done, they are sent again, but never more than eight calls at once.
    scene.settle("a0", false, json!(null));
    assert_eq!(scene.calls(), [""; 0]);
    scene.returns("b0", done(json!({})));
    assert_eq!(scene.calls(), ["a0#2"]);
}

#[test]
fn one_after_the_other_means_that_a_doubt_is_settled_first() {
    let mut scene = ExecutionScenario::started(&many(1, "max_parallel: 1"));
    scene.returns("a0", maybe(Timeout));
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["doubt a0".to_owned()]));
}

#[test]
fn doubtful_items_of_a_list_give_their_place_to_the_next_ones() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 4
steps: [{id: a, tool: t.once, for_each: {items: '[1, 2, 3]', max_parallel: 2}}]",
    );
    assert_eq!(scene.calls(), ["a[0]", "a[1]"]);
    scene.returns("a[0]", maybe(Timeout));
    assert_eq!(scene.calls(), ["a[2]"]);
    assert!(matches!(scene.part("a[0]").state, PartState::InDoubt { .. }));
}

#[test]
fn doubtful_compensations_give_their_place_back() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 2
steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo_once}}
  - {id: b, tool: t.once, compensation: {tool: t.undo_once}}
  - {id: c, tool: t.once, compensation: {tool: t.undo_once}}",
    );
    for name in ["a", "b", "c"] {
        scene.returns(name, done(json!({})));
    }
    scene.compensate(None);
    assert_eq!(scene.calls(), ["undo c", "undo b"]);
    scene.returns("c", maybe(Timeout));
    assert_eq!(scene.calls(), ["undo a"]);
}

/// A program that is told to stop may go on until it is killed.
#[test]
fn a_probe_is_not_believed_while_the_program_may_still_run() {
    for (grace, wait) in [(4, 5_000), (5, 5_000), (8, 8_000)] {
        let mut tools = catalog();
        let once = tools.tools.get_mut(&tool("t.once")).expect("it is in the catalog");
        Arc::make_mut(once).grace = Some(Millis::seconds(grace));
        let fields = PROBED.replace("result.found}", "result.found, settle: 5s}");
        let mut scene = ExecutionScenario::open(plan_with(&tools, &fields), Driver::Server, json!({}));
        scene.start();
        scene.returns("a", maybe(Timeout));
        scene.returns("a", missing());
        assert_eq!(scene.wakes_in(), Some(wait), "{grace} s");
    }
}

#[test]
fn what_may_have_happened_is_not_undone_while_the_program_may_still_run() {
    for (grace, wait) in [(0, 30_000), (10, 40_000)] {
        let mut tools = catalog();
        let set = tools.tools.get_mut(&tool("t.set")).expect("it is in the catalog");
        Arc::make_mut(set).grace = Some(Millis::seconds(grace));
        let fields = "on_failure: compensate
steps: [{id: a, tool: t.set, timeout: 30s, retry: {max_attempts: 1}, compensation: {tool: t.undo}}]";
        let mut scene = ExecutionScenario::open(plan_with(&tools, fields), Driver::Server, json!({}));
        scene.start();
        scene.returns("a", maybe(Unavailable));
        assert_eq!(scene.wakes_in(), Some(wait), "{grace} s");
        scene.wait();
        assert_eq!(scene.calls(), ["undo a"]);
    }
}

/// Probes count from the beginning of the doubt: neither earlier doubts nor answers that came too early use them up.
#[test]
fn every_doubt_has_all_the_attempts_of_its_probe() {
    let fields = "deadline: 7d
steps:
  - id: a
    tool: t.once
    retry: {max_attempts: 9}
    probe: {tool: t.find, happened: result.found, settle: 1m, retry: {max_attempts: 2, initial: 1s, jitter: false}}";
    let mut scene = ExecutionScenario::started(fields);
    for doubt in 1..=3 {
        scene.returns("a", maybe(Timeout));
        scene.returns("a", missing());
        assert_eq!(scene.events().last().map(String::as_str), Some("ProbePostponed"));
        scene.wait();
        scene.returns("a", fails(Unavailable));
        assert_eq!(scene.asks(), [""; 0], "doubt {doubt}: the probe is asked once more");
        scene.wait();
        scene.returns("a", missing());
        assert_eq!(scene.running("a"), (CallSide::Do, doubt + 1));
    }
    scene.returns("a", maybe(Timeout));
    scene.returns("a", fails(Unavailable));
    scene.wait();
    scene.returns("a", fails(Unavailable));
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn a_probe_that_is_lost_to_a_crash_is_no_attempt_of_its_step() {
    let fields = PROBED.replace("max_attempts: 3", "max_attempts: 2").replace("found}", "found, settle: 0s}");
    let mut scene = ExecutionScenario::started(&fields);
    scene.returns("a", maybe(Timeout));
    for _ in 0..3 {
        scene.crash();
        assert_eq!(scene.running("a").0, CallSide::Probe);
    }
    scene.returns("a", missing());
    assert_eq!(scene.running("a"), (CallSide::Do, 2));
}
