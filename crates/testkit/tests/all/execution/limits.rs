//! Limits: deadline, budgets and the length of the journal.

use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::journal::event::{Event, EventRecord, ExecutionLimit, Question, QuestionAnswer};
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

#[test]
fn the_deadline_is_enforced() {
    for (field, name) in [("deadline: 90s", "limit Deadline"), ("budget: {time: 90s}", "limit Time")] {
        let mut scene = ExecutionScenario::started(&format!("{field}\n{TWO}"));
        scene.later(59_000);
        scene.returns("a", costly(0));
        assert_eq!(scene.wakes_in(), Some(31_000));
        scene.later(30_999);
        assert_eq!(scene.asks(), [""; 0]);
        scene.later(1);
        assert_eq!(scene.asks(), [name]);
        assert_eq!(scene.status(), "running", "b is still under way");
        scene.returns("b", costly(0));
        assert_eq!(scene.status(), "completed", "{name}: running steps could finish");
    }
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
    scene.replan(&format!("budget: {{calls: 5}}\n{TWO}"));
    assert_eq!(scene.calls(), ["b"]);
}
