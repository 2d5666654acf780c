//! Tickets: a call whose tool can be asked for its state is resumed after a crash, never repeated.

use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::hash::Hash;
use rutter_core::journal::event::{CallSide, Event, EventRecord};
use rutter_core::journal::payload::EventPayload;
use rutter_core::limits;
use rutter_core::plan::Driver;
use rutter_core::time::Timestamp;
use rutter_core::tool::FailureCategory::{Timeout, ToolError};
use rutter_core::tool::{CallOutcome, ToolFailure};
use rutter_testkit::scene::*;
use serde_json::json;

const PLAN: &str = "steps:
  - {id: a, tool: t.once, parameters: {n: 1}, timeout: 60s, compensation: {tool: t.undo_once}, probe: {tool: t.find, happened: result.found, settle: 0s}}
  - {id: b, tool: t.once, depends_on: [a]}";

fn accepted(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.accepts("a", "ticket-7");
    scene
}

fn accepting(name: &str, side: CallSide, attempt: u32, ticket: &str) -> ExecutionInput {
    ExecutionInput::Accepted { part: part(name), side, attempt, ticket: ticket.into() }
}

#[test]
fn a_ticket_is_recorded_by_rutter_and_starts_nothing() {
    let scene = accepted(PLAN);
    assert_eq!((scene.events(), scene.calls()), (vec!["AttemptAccepted".to_owned()], vec![]));
    assert_eq!(scene.last.records[0].actor, Actor::rutter());
    assert_eq!((scene.status(), scene.step("a")), ("running", "running"));
}

#[test]
fn after_a_crash_the_same_call_is_resumed_under_its_ticket() {
    let mut scene = ExecutionScenario::started(PLAN);
    let first = scene.call("a").clone();
    assert_eq!(first.ticket, None);
    scene.accepts("a", "ticket-7");
    scene.later(10_000);
    for _ in 0..3 {
        scene.crash();
        let mut again = scene.call("a").clone();
        assert_eq!(again.ticket.take().as_deref(), Some("ticket-7"));
        assert_eq!(again, first, "everything else is unchanged, including the deadline");
        assert_eq!((scene.events(), scene.asks()), (vec![], vec![]));
    }
    scene.returns("a", done(json!({})));
    assert_eq!(scene.calls(), ["b"]);
    assert_eq!(scene.started_calls(CallSide::Do), ["a", "b"]);
    assert_eq!(scene.execution.spent().calls, 2);
}

#[test]
fn a_resumed_call_that_is_not_made_may_have_happened() {
    let mut scene = ExecutionScenario::started(PLAN);
    let not_made = |scene: &ExecutionScenario| scene.call("a").not_made(ToolFailure::new(Timeout, "too late"));
    assert!(matches!(not_made(&scene), CallOutcome::NotDone(_)), "nothing was sent");
    scene.accepts("a", "ticket-7");
    scene.crash();
    assert!(matches!(not_made(&scene), CallOutcome::Maybe(_)), "it was sent before the crash");
}

#[test]
fn without_a_ticket_a_crash_loses_the_attempt() {
    let mut scene = ExecutionScenario::started(PLAN);
    scene.crash();
    assert_eq!((scene.step("a"), scene.calls()), ("in_doubt", vec!["probe a".to_owned()]));
}

#[test]
fn a_resumed_call_needs_no_capacity() {
    let mut scene = accepted(PLAN);
    scene.room = 0;
    scene.crash();
    assert_eq!(scene.calls(), ["a"]);
}

#[test]
fn the_call_is_resumed_only_at_recovery() {
    let mut scene = accepted(PLAN);
    scene.later(1_000);
    assert_eq!(scene.calls(), [""; 0]);
    scene.pause();
    scene.resume();
    assert_eq!(scene.calls(), [""; 0]);
}

/// The deadline of the attempt, or of all attempts of the step, may pass while no driver runs.
#[test]
fn a_deadline_that_passed_meanwhile_closes_the_attempt_as_timed_out() {
    for (fields, late) in [("timeout: 60s", 60_000), ("timeout: 60s, total_timeout: 61s", 61_000)] {
        let mut scene = accepted(&format!("steps: [{{id: a, tool: t.once, {fields}}}]"));
        scene.now.0 += late;
        scene.crash();
        assert_eq!((scene.step("a"), scene.calls()), ("in_doubt", vec![]), "{fields}");
        assert_eq!((scene.count("AttemptFailed"), scene.count("AttemptLost")), (1, 0), "{fields}");
    }
    let mut scene = accepted("steps: [{id: a, tool: t.once, timeout: 60s}]");
    scene.now.0 += 59_999;
    scene.crash();
    assert_eq!((scene.calls(), scene.wakes_in()), (vec!["a".to_owned()], Some(1)));
}

#[test]
fn undo_and_probe_calls_are_resumed_under_tickets_too() {
    let mut scene = ExecutionScenario::started(PLAN);
    scene.returns("a", maybe(Timeout));
    let probe = scene.call("a").clone();
    scene.accepts("a", "probing");
    scene.crash();
    assert_eq!(scene.calls(), ["probe a"]);
    let again = scene.call("a");
    assert_eq!(
        (&again.parameters, again.key, again.ticket.as_deref()),
        (&probe.parameters, probe.key, Some("probing"))
    );
    scene.returns("a", done(json!({"found": true})));
    scene.returns("b", done(json!({})));
    scene.compensate(None);
    let undo = scene.call("a").clone();
    scene.accepts("a", "undoing");
    scene.crash();
    assert_eq!(scene.calls(), ["undo a"]);
    let again = scene.call("a");
    assert_eq!((&again.parameters, again.key, again.ticket.as_deref()), (&undo.parameters, undo.key, Some("undoing")));
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

/// What happened before the crash, and what the recovered driver does: a running attempt stays one.
#[test]
fn whatever_else_happened_the_call_is_resumed() {
    let mut paused = accepted(PLAN);
    paused.pause();
    let mut cancelled = accepted(PLAN);
    cancelled.cancel(None);
    let mut handed_over = accepted(PLAN);
    handed_over.hand_over(Driver::Agent);
    let mut replanned = accepted(PLAN);
    replanned.replan(PLAN);
    let mut drifted = accepted(PLAN);
    drifted.give(&person(), ExecutionInput::ReportDefinition { tool: tool("t.once"), found: Hash::ZERO });
    for (name, mut scene, unwanted) in [
        ("paused", paused, false),
        ("cancelled", cancelled, true),
        ("handed over", handed_over, false),
        ("replanned", replanned, false),
        ("drifted", drifted, false),
    ] {
        scene.crash();
        assert_eq!(scene.calls(), ["a"], "{name}");
        assert_eq!(scene.call("a").ticket.as_deref(), Some("ticket-7"), "{name}");
        assert_eq!(scene.execution.is_unwanted(&part("a"), CallSide::Do, 1), unwanted, "{name}");
        scene.returns("a", done(json!({})));
        assert_eq!(scene.part("a").result.as_ref(), Some(&EventPayload::new(json!({}))), "{name}");
    }
    let mut killed = accepted(PLAN);
    killed.kill();
    killed.crash();
    assert_eq!((killed.calls(), killed.asks()), (vec![], vec!["doubt a".to_owned()]));
}

#[test]
fn a_ticket_ends_with_its_attempt() {
    let mut scene = accepted("steps: [{id: a, tool: t.set, retry: {jitter: false}}]");
    scene.returns("a", fails(rutter_core::tool::FailureCategory::Unavailable));
    scene.crash();
    assert_eq!(scene.calls(), [""; 0]);
    scene.wait();
    assert_eq!((scene.calls(), scene.call("a").ticket.clone()), (vec!["a#2".to_owned()], None));
    scene.crash();
    assert_eq!((scene.calls(), scene.call("a").ticket.clone()), (vec!["a#3".to_owned()], None));
}

#[test]
fn a_failure_under_a_ticket_is_a_failure_like_any_other() {
    let mut scene = accepted(PLAN);
    scene.crash();
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.asks(), ["failure a"]);
    let mut scene = accepted(PLAN);
    scene.crash();
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.calls(), ["probe a"]);
}

#[test]
fn only_an_attempt_that_rutter_is_making_gets_a_ticket() {
    let rutter = Actor::rutter();
    let mut scene = ExecutionScenario::started(PLAN);
    for (name, side, attempt) in [
        ("a", CallSide::Do, 0),
        ("a", CallSide::Do, 2),
        ("a", CallSide::Undo, 1),
        ("a", CallSide::Probe, 1),
        ("b", CallSide::Do, 1),
        ("nobody", CallSide::Do, 1),
        ("a[0]", CallSide::Do, 1),
    ] {
        let code = scene.refused(&rutter, accepting(name, side, attempt, "x"));
        assert_eq!(code, "execution.unknown_attempt", "{name} {side:?} {attempt}");
    }
    scene.returns("a", done(json!({})));
    assert_eq!(scene.refused(&rutter, accepting("a", CallSide::Do, 1, "x")), "execution.unknown_attempt");
    let mut scene = ExecutionScenario::by_agent(PLAN);
    scene.start();
    scene.record_started("a");
    assert_eq!(scene.refused(&rutter, accepting("a", CallSide::Do, 1, "x")), "execution.unknown_attempt");
}

#[test]
fn the_first_ticket_stays() {
    let mut scene = accepted(PLAN);
    for ticket in ["ticket-7", "ticket-8"] {
        let input = accepting("a", CallSide::Do, 1, ticket);
        assert_eq!(scene.refused(&Actor::rutter(), input), "execution.told_already");
    }
    scene.crash();
    assert_eq!(scene.call("a").ticket.as_deref(), Some("ticket-7"));
}

#[test]
fn a_ticket_has_a_length() {
    let ticket = |bytes: usize| accepting("a", CallSide::Do, 1, &"x".repeat(bytes));
    for bytes in [limits::TICKET_BYTES_MAX - 1, limits::TICKET_BYTES_MAX] {
        ExecutionScenario::started(PLAN).give(&Actor::rutter(), ticket(bytes));
    }
    let code = ExecutionScenario::started(PLAN).refused(&Actor::rutter(), ticket(limits::TICKET_BYTES_MAX + 1));
    assert_eq!(code, "execution.text_too_long");
}

#[test]
fn a_call_can_be_resumed_although_its_parameters_were_erased() {
    let scene = accepted(PLAN);
    let mut journal: Vec<EventRecord> = scene.journal.clone();
    for record in &mut journal {
        if let Event::AttemptStarted { parameters, .. } = &mut record.event {
            *parameters = EventPayload::Erased;
        }
    }
    let mut execution = Execution::replay(identity(), &journal).unwrap();
    let moment = DecisionContext { now: Timestamp(scene.now.0 + 1), room: 9 };
    let decision = execution.decide(&Actor::rutter(), ExecutionInput::Recovered, moment).unwrap();
    assert_eq!((decision.records.len(), decision.calls.len()), (0, 1));
    assert_eq!(decision.calls[0].ticket.as_deref(), Some("ticket-7"));
}
