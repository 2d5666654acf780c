//! Limits: deadline, budgets and the length of the journal.

use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::journal::event::{CallSide, Event, EventRecord, ExecutionLimit, Question, QuestionAnswer};
use rutter_core::limits;
use rutter_core::tool::CallOutcome;
use rutter_core::tool::FailureCategory::Unavailable;
use rutter_testkit::scene::*;
use serde_json::json;
use std::sync::Arc;

const TWO: &str = "steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}}
  - {id: b, tool: t.once, depends_on: [a]}";

fn costly(cost_micros: u64) -> CallOutcome {
    CallOutcome::Done { result: Arc::new(json!({})), cost_micros }
}

/// The fields of a plan whose execution has this many seconds, and the name of the limit.
fn time_limits(seconds: u32) -> [(String, &'static str); 2] {
    [(format!("deadline: {seconds}s"), "limit Deadline"), (format!("budget: {{time: {seconds}s}}"), "limit Time")]
}

fn limit_of(name: &str) -> Question {
    Question::Limit(if name == "limit Time" { ExecutionLimit::Time } else { ExecutionLimit::Deadline })
}

#[test]
fn the_deadline_holds_for_calls_in_flight() {
    for (field, name) in time_limits(90) {
        let mut scene = ExecutionScenario::started(&format!("{field}\n{TWO}"));
        scene.later(59_000);
        scene.returns("a", costly(0));
        assert_eq!(scene.wakes_in(), Some(31_000));
        scene.later(30_999);
        assert_eq!(scene.asks(), [""; 0]);
        scene.later(1);
        assert_eq!(scene.asks(), ["doubt b", name], "b may have happened: it goes by its safety");
        assert!(scene.execution.is_unwanted(&part("b"), CallSide::Do, 1), "the call in flight is cancelled");
        // The answer comes after all: the doubt is settled, and the question about the limit stays.
        scene.answers("b", CallSide::Do, 1, costly(0));
        assert_eq!((scene.status(), scene.asks()), ("waiting", vec![name.to_owned()]));
        scene.answer(limit_of(name), QuestionAnswer::Continue);
        assert_eq!(scene.status(), "completed");
    }
}

#[test]
fn an_attempt_has_no_more_time_than_its_execution_and_its_step_have_left() {
    let step = "tool: t.set, compensation: {tool: t.undo}, retry: {initial: 1ms, jitter: false}";
    for (field, of_step, first, second) in [
        ("deadline: 90s", "", 60_000, 29_999),
        ("budget: {time: 70s}", "", 60_000, 9_999),
        ("deadline: 20s", "", 20_000, 0),
        ("deadline: 100s", ", total_timeout: 75s", 60_000, 14_999),
        ("deadline: 100s", ", total_timeout: 40s", 40_000, 0),
        ("deadline: 30s", ", total_timeout: 40s", 30_000, 0),
    ] {
        let plan = format!("{field}\non_failure: compensate\nsteps: [{{id: a, {step}{of_step}}}]");
        let mut scene = ExecutionScenario::started(&plan);
        assert_eq!(scene.call("a").deadline.since(scene.now).0, first, "{field} {of_step}");
        scene.wait();
        if second > 0 {
            scene.wait();
            assert_eq!(scene.call("a").deadline.since(scene.now).0, second, "{field} {of_step}");
            scene.wait();
        }
        if scene.calls() != ["undo a"] {
            // The last call may still be under way.
            scene.wait();
        }
        assert_eq!(scene.calls(), ["undo a"], "{field} {of_step}");
        assert_eq!(scene.call("a").deadline.since(scene.now).0, 60_000, "undoing is not cut");
    }
}

#[test]
fn a_probe_is_not_cut_by_the_deadline() {
    let step = "{id: a, tool: t.once, probe: {tool: t.find, happened: result.found}}";
    let mut scene = ExecutionScenario::started(&format!("deadline: 20s\nsteps: [{step}]"));
    scene.later(20_000);
    assert_eq!((scene.calls(), scene.asks()), (vec!["probe a".to_owned()], vec!["limit Deadline".to_owned()]));
    assert_eq!(scene.call("a").deadline.since(scene.now).0, 60_000);
    scene.returns("a", done(json!({"found": true})));
    assert_eq!((scene.status(), scene.step("a")), ("waiting", "completed"));
}

/// An answer that arrives in the moment of the deadline counts, and the execution is not simply completed.
#[test]
fn nothing_is_completed_after_its_deadline_without_a_decision() {
    let table = [
        ("manual_decision", "waiting", 1),
        ("cancel_all", "failed", 0),
        ("cancel_dependent", "failed", 0),
        ("continue_others", "failed", 0),
        ("compensate", "compensating", 0),
    ];
    for (field, name) in time_limits(20) {
        for (policy, status, questions) in table {
            let steps = "steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]";
            let mut scene = ExecutionScenario::started(&format!("{field}\non_failure: {policy}\n{steps}"));
            scene.now.0 += 20_000;
            scene.returns("a", costly(0));
            assert_eq!((scene.status(), scene.asks().len()), (status, questions), "{field} {policy}");
            if questions > 0 {
                scene.later(3_600_000);
                scene.answer(limit_of(name), QuestionAnswer::Continue);
                assert_eq!(scene.status(), "completed", "{field} {policy}");
            }
            let cause = scene.execution.view().cause.unwrap_or_default();
            assert_eq!(cause.contains("was reached"), questions == 0, "{policy}: {cause}");
        }
    }
}

/// A question about calls does not stop the clock, and a raised limit gives its own time from then on.
#[test]
fn time_is_up_also_while_another_limit_waits() {
    let mut scene = ExecutionScenario::started(&format!("deadline: 50s\nbudget: {{calls: 1}}\n{TWO}"));
    scene.returns("a", costly(0));
    assert_eq!(scene.asks(), ["limit Calls"]);
    scene.later(50_000);
    assert_eq!(scene.asks(), ["limit Deadline"]);
    scene.later(1_000_000);
    scene.answer(limit_of("limit Deadline"), QuestionAnswer::Continue);
    assert_eq!((scene.asks(), scene.wakes_in()), (vec!["limit Calls".to_owned()], Some(50_000)));
    scene.answer(Question::Limit(ExecutionLimit::Calls), QuestionAnswer::Continue);
    assert_eq!(scene.call("b").deadline.since(scene.now).0, 50_000);
}

/// A new plan with less time ends the calls in flight, although they were given more.
#[test]
fn a_replan_can_move_the_deadline_before_the_end_of_a_call() {
    let steps = "steps: [{id: a, tool: t.set, timeout: 50s}]";
    let mut scene = ExecutionScenario::started(steps);
    scene.replan(&format!("deadline: 50s\n{steps}"));
    scene.replan(&format!("deadline: 5s\n{}", steps.replace("50s", "4s")));
    scene.later(5_000);
    assert_eq!((scene.asks(), scene.step("a")), (vec!["limit Deadline".to_owned()], "retrying"));
}

/// The policy of the plan decides what reaching a limit means.
#[test]
fn each_policy_has_its_end() {
    let table = [
        ("manual_decision", "waiting", 0),
        ("cancel_all", "failed", 0),
        ("cancel_dependent", "failed", 0),
        ("continue_others", "failed", 0),
        ("compensate", "compensating", 1),
    ];
    for (policy, status, calls) in table {
        let mut scene = ExecutionScenario::started(&format!("on_failure: {policy}\nbudget: {{calls: 1}}\n{TWO}"));
        scene.returns("a", costly(0));
        assert_eq!((scene.status(), scene.calls().len()), (status, calls), "{policy}");
        assert_eq!(scene.count("LimitReached"), 1, "{policy}");
    }
}

#[test]
fn continuing_raises_a_limit_by_its_own_amount() {
    let mut scene = ExecutionScenario::started(
        "budget: {calls: 1}
steps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once}]",
    );
    for name in ["a", "b"] {
        scene.returns(name, costly(0));
        assert_eq!(scene.asks(), ["limit Calls"]);
        scene.answer(Question::Limit(ExecutionLimit::Calls), QuestionAnswer::Continue);
    }
    scene.returns("c", costly(0));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.execution.spent().calls, 3);

    let mut scene = ExecutionScenario::started("deadline: 70s\nsteps: [{id: a, tool: t.once, approval: true}]");
    scene.later(70_000);
    assert_eq!(scene.asks(), ["approval a", "limit Deadline"]);
    scene.answer(Question::Limit(ExecutionLimit::Deadline), QuestionAnswer::Continue);
    assert_eq!(scene.wakes_in(), Some(70_000));
}

#[test]
fn cost_counts_when_it_is_known() {
    let mut scene = ExecutionScenario::started(&format!("budget: {{cost: 0.5}}\n{TWO}"));
    scene.returns("a", costly(499_999));
    assert_eq!(scene.calls(), ["b"]);
    let mut scene = ExecutionScenario::started(&format!("budget: {{cost: 0.5}}\n{TWO}"));
    scene.returns("a", costly(500_000));
    assert_eq!(scene.asks(), ["limit Cost"]);
    scene.answer(Question::Limit(ExecutionLimit::Cost), QuestionAnswer::Continue);
    assert_eq!(scene.calls(), ["b"]);
    scene.returns("b", costly(u64::MAX));
    assert_eq!(scene.execution.spent().cost_micros, u64::MAX, "it does not overflow");
}

#[test]
fn retries_count_as_calls_and_undoing_does_not() {
    let mut scene = ExecutionScenario::started(
        "budget: {calls: 1}
on_failure: compensate
steps: [{id: a, tool: t.set, compensation: {tool: t.undo}}]",
    );
    scene.returns("a", maybe(Unavailable));
    scene.wait();
    scene.wait();
    assert_eq!(scene.calls(), ["undo a"]);
    assert_eq!(scene.execution.spent().calls, 1);
}

#[test]
fn a_limit_is_not_reached_while_stopping() {
    let mut scene = ExecutionScenario::started(&format!("deadline: 61s\n{TWO}"));
    scene.cancel(None);
    scene.now.0 += 50_000;
    scene.wake();
    scene.now.0 += 50_000;
    scene.wake();
    assert_eq!(scene.count("LimitReached"), 0);
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn the_journal_has_a_bound_above_which_nothing_new_starts() {
    let mut scene = ExecutionScenario::of(TWO);
    let record = EventRecord {
        at: scene.now,
        actor: agent(),
        event: Event::DecisionRecorded { step: None, decision: "wait".into(), reason: String::new(), details: None },
    };
    let mut execution = scene.execution.clone();
    while execution.entries() < limits::ENTRIES_MAX {
        execution.apply(&record).unwrap();
    }
    let moment = DecisionContext { now: scene.now, room: 9 };
    let decision = execution.decide(&Actor::rutter(), ExecutionInput::Start, moment).unwrap();
    assert!(decision.calls.is_empty());
    assert_eq!(event_name(&decision.records.last().unwrap().event), "LimitReached");
    scene.start();
    assert_eq!(scene.calls(), ["a"], "far below the bound it continues");
}

#[test]
fn replanning_answers_a_limit() {
    let mut scene = ExecutionScenario::started(&format!("budget: {{calls: 1}}\n{TWO}"));
    scene.returns("a", costly(0));
    scene.answer(Question::Limit(ExecutionLimit::Calls), QuestionAnswer::Replan);
    assert_eq!(scene.status(), "replanning");
    scene.replan_as(&person(), &format!("budget: {{calls: 5}}\n{TWO}"));
    assert_eq!(scene.calls(), ["b"]);
}

/// An agent whose plan may be weakened by a person only cannot give itself more time, calls or money either.
#[test]
fn only_a_person_goes_on_past_a_limit() {
    for (field, limit) in [("deadline: 20s", ExecutionLimit::Deadline), ("budget: {calls: 1}", ExecutionLimit::Calls)] {
        let reached = || {
            let mut scene = ExecutionScenario::started(&format!("{field}\n{TWO}"));
            scene.later(if limit.is_time() { 20_000 } else { 0 });
            scene.answers("a", CallSide::Do, 1, costly(0));
            scene
        };
        let answer = |answer| answering(Question::Limit(limit), answer, None);
        let mut scene = reached();
        assert_eq!(scene.refused(&agent(), answer(QuestionAnswer::Continue)), "execution.not_a_person", "{field}");
        scene.give(&agent(), answer(QuestionAnswer::Stop));
        assert!(scene.execution.outcome().is_some(), "{field}");
        let mut scene = reached();
        scene.give(&person(), answer(QuestionAnswer::Continue));
        assert_eq!(scene.calls(), ["b"], "{field}");
    }
}

/// A call that was cut at the deadline may still be under way: it is undone when it is too old to take effect.
#[test]
fn what_may_still_be_under_way_is_undone_when_it_is_old_enough() {
    let step = "tool: t.set, compensation: {tool: t.undo}";
    let start = || {
        let plan = format!("deadline: 20s\non_failure: compensate\nsteps: [{{id: a, {step}}}]");
        let mut scene = ExecutionScenario::started(&plan);
        scene.later(20_000);
        assert!(scene.execution.is_unwanted(&part("a"), CallSide::Do, 1), "it is cancelled");
        assert_eq!((scene.status(), scene.calls().len(), scene.wakes_in()), ("compensating", 0, Some(40_000)));
        scene
    };
    let mut scene = start();
    scene.later(39_999);
    assert_eq!(scene.calls(), [""; 0]);
    scene.later(1);
    assert_eq!(scene.calls(), ["undo a"]);
    // A hold does not make it older.
    let mut scene = start();
    scene.later(10_000);
    scene.gap(2 * 86_400_000);
    scene.resume();
    assert_eq!(scene.wakes_in(), Some(30_000));
}

/// The answer comes after the call was undone: its effect may stand again.
#[test]
fn a_repeatable_call_that_answers_after_it_was_undone_is_a_second_effect() {
    let step = "tool: t.set, compensation: {tool: t.undo}";
    let plan = format!("deadline: 20s\non_failure: compensate\nsteps: [{{id: a, {step}}}]");
    let mut scene = ExecutionScenario::started(&plan);
    scene.wait();
    scene.wait();
    scene.returns("a", costly(0));
    assert_eq!(scene.status(), "compensated");
    scene.answers("a", CallSide::Do, 1, costly(0));
    assert_eq!(
        (scene.deviations(), scene.asks()),
        (vec!["SecondEffect a".to_owned()], vec!["second effect a".to_owned()])
    );
    assert_eq!(scene.execution.view().remains, [part("a")]);
}

/// Nothing of it is under way: it was approved, and may not be sent before the question is answered.
#[test]
fn an_approved_step_that_waits_for_the_answer_about_a_limit_is_not_running() {
    let mut scene = ExecutionScenario::started(
        "budget: {calls: 1}\nmax_parallel: 2\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once, approval: true}]",
    );
    scene.approve("b");
    assert_eq!(scene.asks(), ["limit Calls"]);
    assert_eq!((scene.step("a"), scene.step("b")), ("running", "waiting"));
    scene.answer(Question::Limit(ExecutionLimit::Calls), QuestionAnswer::Continue);
    assert_eq!((scene.calls(), scene.step("b")), (vec!["b".to_owned()], "running"));
}
