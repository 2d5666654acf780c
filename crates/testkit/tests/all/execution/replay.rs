//! Replaying: the journal is enough, also when payloads are erased or the clock was wrong.

use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::TenantId;
use rutter_core::journal::event::{CallSide, Event, EventRecord, LateAnswer};
use rutter_core::journal::payload::EventPayload;
use rutter_core::time::Timestamp;
use rutter_core::tool::FailureCategory::{Timeout, ToolError};
use rutter_testkit::scene::*;
use serde_json::json;

fn erase(record: &EventRecord) -> EventRecord {
    let mut record = record.clone();
    let gone = EventPayload::Erased;
    match &mut record.event {
        Event::ExecutionOpened { inputs: payload, .. }
        | Event::FanOutOpened { items: payload, .. }
        | Event::ApprovalRequested { parameters: payload, .. }
        | Event::AttemptStarted { parameters: payload, .. }
        | Event::ToolAsked { schema: payload, .. }
        | Event::ToolAnswered { answer: Some(payload), .. }
        | Event::AttemptSucceeded { result: payload, .. }
        | Event::LateAnswerArrived { answer: LateAnswer::Done(payload), .. }
        | Event::ContextSaved { values: payload } => *payload = gone,
        Event::DoubtSettled { result, evidence, .. } => {
            (*result, *evidence) = (result.as_ref().map(|_| gone.clone()), evidence.as_ref().map(|_| gone));
        }
        _ => {}
    }
    record
}

#[test]
fn a_journal_without_its_payloads_replays_to_the_same_statuses() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 3
steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo, parameters: {id: '{{ result.id }}'}}}
  - {id: f, tool: t.once, for_each: '[1, 2]', parameters: {n: '{{ item }}'}}
  - {id: b, tool: t.once, parameters: {x: '{{ steps.a.result.id }}', y: '{{ steps.f.result }}'}, approval: true}",
    );
    scene.returns("a", maybe(Timeout));
    scene.answers("a", CallSide::Do, 1, done(json!({"id": 1})));
    scene.returns("f[0]", done(json!(1)));
    scene.returns("f[1]", maybe(Timeout));
    scene.settle("f[1]", true, json!(2));
    assert_eq!(scene.asks(), ["approval b"]);
    let erased: Vec<EventRecord> = scene.journal.iter().map(erase).collect();
    let mut execution = Execution::replay(identity(), &erased).unwrap();
    let statuses = |execution: &Execution| execution.view().steps.iter().map(|step| step.status).collect::<Vec<_>>();
    assert_eq!(statuses(&execution), scene.steps());
    // The question stays open, but the call can no longer be displayed, nor can the step be prepared.
    let _ = (execution.brief(), execution.questions());
    let moment = rutter_core::execution::input::DecisionContext { now: scene.now, room: 9 };
    let input = rutter_core::execution::input::ExecutionInput::Approve {
        part: part("b"),
        call: scene.asked("b"),
        reason: String::new(),
    };
    let decision = execution.decide(&person(), input, moment).unwrap();
    assert!(decision.calls.is_empty(), "the approved call can no longer be evaluated: {decision:?}");
}

#[test]
fn a_clock_that_goes_backwards_does_not_move_the_journal_back() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set, timeout: 5s}]");
    scene.later(1_000);
    scene.returns("a", fails(ToolError));
    let latest = scene.journal.last().unwrap().at;
    scene.now = Timestamp(0);
    scene.execution.view();
    scene.cancel(None);
    assert!(scene.journal.iter().all(|record| record.at <= latest));
    assert_eq!(scene.journal.last().unwrap().at, latest);
}

#[test]
fn times_at_the_end_of_time_do_not_overflow() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set}, {id: b, tool: t.once, approval: true}]");
    scene.now = Timestamp(i64::MAX - 1);
    scene
        .execution
        .decide(
            &rutter_core::actor::Actor::rutter(),
            rutter_core::execution::input::ExecutionInput::Wake,
            rutter_core::execution::input::DecisionContext { now: scene.now, room: 9 },
        )
        .unwrap();
}

#[test]
fn keys_differ_between_tenants_steps_and_parameters() {
    let key = |fields: &str, tenant: &str| {
        let scene = ExecutionScenario::of(fields);
        let identity = ExecutionIdentity { tenant: TenantId::new(tenant), ..identity() };
        let mut execution = Execution::replay(identity, &scene.journal).unwrap();
        let moment = rutter_core::execution::input::DecisionContext { now: scene.now, room: 9 };
        let decision =
            execution.decide(&person(), rutter_core::execution::input::ExecutionInput::Start, moment).unwrap();
        decision.calls[0].key
    };
    let first = "steps: [{id: a, tool: t.once, parameters: {n: 1}}]";
    assert_eq!(key(first, "x"), key(first, "x"));
    assert_ne!(key(first, "x"), key(first, "y"));
    assert_ne!(key(first, "x"), key("steps: [{id: a, tool: t.once, parameters: {n: 2}}]", "x"));
    assert_ne!(key(first, "x"), key("steps: [{id: b, tool: t.once, parameters: {n: 1}}]", "x"));
}

#[test]
fn the_actor_is_recorded_and_consequences_are_rutters() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]");
    scene.approve("a");
    let actors: Vec<String> = scene.last.records.iter().map(|record| record.actor.to_string()).collect();
    assert_eq!(actors, ["operator", "rutter"]);
}
