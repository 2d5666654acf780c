//! Pause, resume, cancel and kill, in every phase.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::journal::event::{CallSide, ExecutionEnding};
use rutter_core::tool::CallOutcome;
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::json;

const TWO: &str = "steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}}
  - {id: b, tool: t.once, depends_on: [a], compensation: {tool: t.undo}}";

fn pause() -> ExecutionInput {
    ExecutionInput::Pause { reason: String::new() }
}

fn resume() -> ExecutionInput {
    ExecutionInput::Resume { reason: String::new() }
}

fn cancel() -> ExecutionInput {
    ExecutionInput::Cancel { reason: String::new(), undo: None }
}

fn kill() -> ExecutionInput {
    ExecutionInput::Kill { reason: String::new() }
}

/// One scenario per phase.
fn phases() -> Vec<(&'static str, ExecutionScenario)> {
    let forward = ExecutionScenario::started(TWO);
    let mut draining = ExecutionScenario::started(TWO);
    draining.cancel(Some(true));
    let mut undoing = ExecutionScenario::started(TWO);
    undoing.returns("a", done(json!({})));
    undoing.returns("b", done(json!({})));
    undoing.compensate(None);
    let mut ended = ExecutionScenario::of(TWO);
    ended.cancel(None);
    vec![
        ("pending", ExecutionScenario::of(TWO)),
        ("forward", forward),
        ("draining", draining),
        ("undoing", undoing),
        ("ended", ended),
    ]
}

/// The refusal of each control in each phase; empty means that it is possible.
#[test]
fn each_control_is_possible_where_it_makes_sense() {
    let table = [
        ("pending", ["", "execution.not_started", "execution.not_paused", "", ""]),
        ("forward", ["execution.started", "", "execution.not_paused", "", ""]),
        ("draining", ["execution.started", "", "execution.not_paused", "execution.stopping", ""]),
        ("undoing", ["execution.started", "", "execution.not_paused", "execution.stopping", ""]),
        ("ended", ["execution.ended"; 5]),
    ];
    for (number, input) in [ExecutionInput::Start, pause(), resume(), cancel(), kill()].into_iter().enumerate() {
        for ((phase, mut scene), (named, codes)) in phases().into_iter().zip(table) {
            assert_eq!(phase, named);
            let code = scene.input(&person(), input.clone()).map_or_else(|refusal| refusal.code, |()| "");
            assert_eq!(code, codes[number], "{input:?} while {phase}");
        }
    }
}

#[test]
fn nothing_starts_while_paused_and_everything_continues_after() {
    let mut scene = ExecutionScenario::started(TWO);
    scene.pause();
    assert_eq!(scene.refused(&person(), pause()), "execution.paused");
    scene.returns("a", done(json!({})));
    assert_eq!((scene.calls().len(), scene.status(), scene.step("a")), (0, "paused", "completed"));
    scene.later(1_000);
    scene.crash();
    assert_eq!(scene.count("AttemptStarted"), 1);
    scene.resume();
    assert_eq!(scene.calls(), ["b"]);
}

#[test]
fn retries_probes_and_compensations_wait_for_the_resume() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set}]");
    scene.returns("a", fails(Unavailable));
    scene.pause();
    assert_eq!(scene.wakes_in().map(|wait| wait > 60_000), Some(true), "the retry does not wake a paused one");
    scene.later(3_600);
    assert_eq!(scene.calls(), [""; 0]);
    scene.resume();
    assert_eq!(scene.calls(), ["a#2"]);

    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, probe: {tool: t.find, happened: result.found, settle: 0s}}]",
    );
    scene.pause();
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.calls(), [""; 0]);
    scene.resume();
    assert_eq!(scene.calls(), ["probe a"]);

    let mut scene = ExecutionScenario::started(TWO);
    scene.returns("a", done(json!({})));
    scene.returns("b", done(json!({})));
    scene.compensate(None);
    scene.pause();
    scene.returns("b", done(json!({})));
    assert_eq!((scene.calls().len(), scene.status()), (0, "paused"));
    scene.resume();
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn an_attempt_still_times_out_while_paused() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set, timeout: 5s}]");
    scene.pause();
    scene.later(5_000);
    assert_eq!(scene.step("a"), "retrying");
}

/// How a call in flight ends when a cancel comes, with undo and without.
#[test]
fn a_cancel_waits_for_calls_in_flight() {
    let table: [(CallOutcome, bool, &str, &[&str]); 6] = [
        (done(json!({})), false, "cancelled", &[]),
        (done(json!({})), true, "compensating", &["undo a"]),
        (fails(ToolError), true, "cancelled", &[]),
        (fails(Unavailable), false, "cancelled", &[]),
        (maybe(Timeout), true, "waiting", &[]),
        (maybe(Timeout), false, "waiting", &[]),
    ];
    for (outcome, undo, status, calls) in table {
        let mut scene = ExecutionScenario::started(TWO);
        scene.cancel(Some(undo));
        assert_eq!((scene.status(), scene.step("b")), ("running", "cancelled"));
        assert!(scene.execution.is_unwanted(&part("a"), CallSide::Do, 1));
        scene.returns("a", outcome.clone());
        assert_eq!(
            (scene.status(), scene.calls()),
            (status, calls.iter().map(ToString::to_string).collect()),
            "{outcome:?} {undo}"
        );
        assert_eq!(scene.started_calls(CallSide::Do), ["a"]);
    }
}

#[test]
fn a_cancel_with_a_doubt_ends_once_it_is_settled() {
    for (happened, undo, status) in
        [(true, false, "cancelled"), (false, true, "cancelled"), (true, true, "compensating")]
    {
        let mut scene = ExecutionScenario::started(TWO);
        scene.cancel(Some(undo));
        scene.returns("a", maybe(Timeout));
        scene.settle("a", happened, json!({}));
        assert_eq!(scene.status(), status, "{happened} {undo}");
        assert_eq!(scene.started_calls(CallSide::Do), ["a"], "a call that did not happen is not made now");
    }
}

#[test]
fn a_repeatable_call_that_may_have_happened_is_undone_after_a_cancel() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set, compensation: {tool: t.undo}}]");
    scene.cancel(Some(true));
    scene.returns("a", maybe(Timeout));
    scene.wait();
    assert_eq!(scene.calls(), ["undo a"]);
}

/// A cancel while `a` waits in some way and nothing is in flight.
#[test]
fn a_cancel_ends_at_once_what_only_waits() {
    let asking = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]");
    let mut approved = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]");
    approved.pause();
    approved.approve("a");
    let mut backing_off = ExecutionScenario::started("steps: [{id: a, tool: t.set}]");
    backing_off.returns("a", fails(Unavailable));
    let mut held = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    held.returns("a", fails(ToolError));
    for (mut scene, step) in
        [(asking, "cancelled"), (approved, "cancelled"), (backing_off, "cancelled"), (held, "failed")]
    {
        scene.cancel(Some(true));
        assert_eq!((scene.status(), scene.step("a")), ("cancelled", step));
        assert_eq!(scene.asks(), [""; 0]);
        assert_eq!(scene.execution.wake_at(), None);
    }
}

#[test]
fn a_back_off_after_a_maybe_is_undone() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set, compensation: {tool: t.undo}}]");
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.step("a"), "retrying");
    scene.cancel(Some(true));
    scene.wait();
    assert_eq!(scene.calls(), ["undo a"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn a_cancel_that_does_not_say_follows_the_plan() {
    for (policy, calls) in [("compensate", 1), ("cancel_all", 0), ("manual_decision", 0)] {
        let mut scene = ExecutionScenario::started(&format!("on_failure: {policy}\n{TWO}"));
        scene.returns("a", done(json!({})));
        scene.cancel(None);
        scene.returns("b", fails(ToolError));
        assert_eq!(scene.calls().len(), calls, "{policy}");
    }
}

#[test]
fn a_cancel_before_the_start_ends_it() {
    let mut scene = ExecutionScenario::of(TWO);
    scene.cancel(None);
    assert_eq!((scene.status(), scene.steps()), ("cancelled", vec!["cancelled", "cancelled"]));
    assert_eq!(scene.execution.outcome(), Some(ExecutionEnding::Cancelled));
}

#[test]
fn a_paused_cancel_drains_and_undoes_after_the_resume() {
    let mut scene = ExecutionScenario::started(TWO);
    scene.pause();
    scene.cancel(Some(true));
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), scene.calls().len()), ("paused", 0));
    scene.resume();
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn a_kill_ends_at_once_and_leaves_what_is_unknown_to_a_person() {
    let mut scene = ExecutionScenario::started(TWO);
    scene.kill();
    assert_eq!((scene.status(), scene.step("a"), scene.step("b")), ("cancelled", "in_doubt", "cancelled"));
    assert_eq!(scene.asks(), ["doubt a"]);
    assert_eq!(scene.execution.view().remains, [part("a")]);
    assert!(scene.execution.is_unwanted(&part("b"), CallSide::Do, 1));
    assert_eq!(scene.refused(&person(), compensating(None)), "execution.in_doubt");
    // The answer still counts, and then it can be undone.
    scene.answers("a", CallSide::Do, 1, done(json!({})));
    assert_eq!((scene.step("a"), scene.status()), ("completed", "cancelled"));
    scene.compensate(None);
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn a_kill_drops_reads_and_keeps_doubts() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 3
steps: [{id: a, tool: t.read}, {id: b, tool: t.set}, {id: c, tool: t.once}]",
    );
    scene.returns("c", maybe(Timeout));
    scene.kill();
    assert_eq!(scene.steps(), ["cancelled", "in_doubt", "in_doubt"]);
    scene.settle("c", false, json!(null));
    scene.settle("b", true, json!({}));
    assert_eq!(scene.steps(), ["cancelled", "completed", "failed"]);
    assert_eq!(scene.asks(), [""; 0]);
}

#[test]
fn a_kill_during_the_undoing_says_what_remains() {
    let mut scene = ExecutionScenario::started(TWO);
    scene.returns("a", done(json!({})));
    scene.returns("b", done(json!({})));
    scene.compensate(None);
    scene.returns("b", fails(Unavailable));
    scene.kill();
    assert_eq!((scene.status(), scene.steps()), ("cancelled", vec!["completed", "compensation_failed"]));
    assert_eq!(scene.execution.view().remains, [part("a"), part("b")]);
    // And it can be resumed.
    scene.compensate(None);
    assert_eq!(scene.calls(), ["undo b#2"]);
}

#[test]
fn nothing_moves_after_the_end() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    scene.returns("a", done(json!({})));
    let entries = scene.execution.entries();
    scene.later(1_000_000_000);
    scene.crash();
    assert_eq!(scene.execution.entries(), entries);
    assert_eq!(scene.execution.wake_at(), None);
    scene.answers("a", CallSide::Do, 1, fails(ToolError));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn a_running_call_is_wanted_until_it_is_closed() {
    let mut scene = ExecutionScenario::started(TWO);
    assert!(!scene.execution.is_unwanted(&part("a"), CallSide::Do, 1));
    assert!(scene.execution.is_unwanted(&part("a"), CallSide::Do, 2));
    assert!(scene.execution.is_unwanted(&part("nobody"), CallSide::Do, 1));
    scene.later(60_000);
    assert!(scene.execution.is_unwanted(&part("a"), CallSide::Do, 1));
}
