//! Starts and ends of attempts, in every order that occurs in journals.

use super::*;
use crate::hash::Hash;
use crate::journal::event::{DoubtSource, ExecutionEnding};
use crate::journal::payload::EventPayload;
use crate::tool::FailureCategory;
use serde_json::json;

const PART: &str = "charge";

fn part() -> PartId {
    PartId::parse(PART).unwrap()
}

fn started(side: CallSide, attempt: u32, by: Driver) -> Event {
    Event::AttemptStarted {
        part: part(),
        side,
        attempt,
        by,
        tool: ToolName::new("payments.charge"),
        definition: Hash::of(&[]),
        call: Hash::of(&[]),
        key: Hash::of(&[]),
        parameters: EventPayload::new(json!({})),
        deadline: None,
    }
}

fn succeeded(side: CallSide, attempt: u32) -> Event {
    Event::AttemptSucceeded { part: part(), side, attempt, result: EventPayload::new(json!(1)), cost_micros: 7 }
}

fn failed(attempt: u32, then: AttemptFollowUp) -> Event {
    let failure = ToolFailure::new(FailureCategory::Timeout, "no answer");
    Event::AttemptFailed { part: part(), side: CallSide::Do, attempt, failure, maybe: true, then }
}

fn lost(attempt: u32, then: AttemptFollowUp) -> Event {
    Event::AttemptLost { part: part(), side: CallSide::Do, attempt, then }
}

fn settled(happened: bool) -> Event {
    Event::DoubtSettled {
        part: part(),
        side: CallSide::Do,
        happened,
        source: DoubtSource::Person,
        reason: String::new(),
        result: None,
        evidence: None,
        then: AttemptFollowUp::GiveUp,
    }
}

fn late(attempt: u32, answer: LateAnswer) -> Event {
    Event::LateAnswerArrived { part: part(), side: CallSide::Do, attempt, answer, cost_micros: 0, effect: None }
}

/// Ten milliseconds pass between two entries.
fn history(events: &[Event]) -> AttemptHistory {
    let mut history = AttemptHistory::default();
    for (seq, event) in (1..).zip(events) {
        history.apply(seq, Timestamp(seq as i64 * 10), event);
    }
    history
}

/// Number, side, how it ended, how long it took, late answer, settled as.
fn outlines(history: &AttemptHistory) -> Vec<String> {
    let of = |known: &KnownAttempt| {
        let KnownAttempt { attempt, late_answer, settled, .. } = known;
        let took = attempt.took().map_or("?".to_owned(), |took| took.to_string());
        let (side, number, end) = (attempt.key.side.as_str(), attempt.key.number, attempt.end.as_str());
        format!("{side} {number} {end} {took} {late_answer:?} {settled:?}")
    };
    history.closed().iter().map(of).collect()
}

#[test]
fn starts_and_ends_are_paired() {
    use CallSide::{Do, Probe};
    use Driver::{Agent, Server};
    let end = Event::ExecutionEnded { outcome: ExecutionEnding::Cancelled, reason: String::new(), remains: Vec::new() };
    let killed = Event::Killed { reason: String::new() };
    let cases: &[(&str, &[Event], &[&str])] = &[
        (
            "retried once",
            &[
                started(Do, 1, Server),
                failed(1, AttemptFollowUp::RetryAt(Timestamp(0))),
                started(Do, 2, Server),
                succeeded(Do, 2),
            ],
            &["do 1 failed 10ms None None", "do 2 succeeded 10ms None None"],
        ),
        (
            "started and ended by an agent at once",
            &[started(Do, 1, Agent), succeeded(Do, 1)],
            &["do 1 succeeded 10ms None None"],
        ),
        (
            "lost in a crash, then found by a probe",
            &[
                started(Do, 1, Server),
                lost(1, AttemptFollowUp::InDoubt),
                started(Probe, 1, Server),
                succeeded(Probe, 1),
                settled(true),
            ],
            &["do 1 lost 10ms None Some(true)", "probe 1 succeeded 10ms None None"],
        ),
        (
            "settled by a person while the probe was under way",
            &[started(Do, 1, Server), lost(1, AttemptFollowUp::InDoubt), started(Probe, 1, Server), settled(false)],
            &["do 1 lost 10ms None Some(false)", "probe 1 abandoned 10ms None None"],
        ),
        (
            "answered late",
            &[
                started(Do, 1, Server),
                failed(1, AttemptFollowUp::RetryAt(Timestamp(0))),
                started(Do, 2, Server),
                late(1, LateAnswer::Done(EventPayload::new(json!(1)))),
                succeeded(Do, 2),
            ],
            &["do 1 failed 10ms Some(Done) None", "do 2 succeeded 20ms None None"],
        ),
        (
            "killed, then settled after the end",
            &[started(Do, 1, Server), killed, end.clone(), settled(true)],
            &["do 1 abandoned 10ms None Some(true)"],
        ),
        ("begun before the first entry that was read", &[succeeded(Do, 3)], &["do 3 succeeded ? None None"]),
        (
            "counted from one again by a new plan",
            &[started(Do, 1, Server), succeeded(Do, 1), started(Do, 1, Server), failed(1, AttemptFollowUp::GiveUp)],
            &["do 1 succeeded 10ms None None", "do 1 failed 10ms None None"],
        ),
    ];
    for (what, events, expected) in cases {
        let history = history(events);
        assert_eq!(outlines(&history), *expected, "{what}");
        assert!(history.open().is_empty(), "{what}");
    }
}

#[test]
fn an_attempt_under_way_knows_its_tool_and_its_ticket() {
    let accepted =
        Event::AttemptAccepted { part: part(), side: CallSide::Do, attempt: 1, ticket: "ticket-7".to_owned() };
    let history = history(&[started(CallSide::Do, 1, Driver::Server), accepted]);
    let open = history.open().find(&part(), CallSide::Do).unwrap();
    assert_eq!((open.seq, open.started_at, open.tool.as_str()), (1, Timestamp(10), "payments.charge"));
    assert_eq!(open.ticket.as_deref(), Some("ticket-7"));
    assert_eq!(history.open().find(&part(), CallSide::Undo), None);
}

#[test]
fn open_attempts_are_bounded() {
    let mut open = OpenAttempts::default();
    for number in 0..OPEN_ATTEMPTS_MAX as u32 + 5 {
        open.apply(1, Timestamp(0), &started(CallSide::Do, number, Driver::Server));
    }
    assert_eq!(open.len(), OPEN_ATTEMPTS_MAX);
    let key = |number| AttemptKey { part: part(), side: CallSide::Do, number };
    assert_eq!(open.remove(&key(4)), None);
    assert!(open.remove(&key(5)).is_some());
}
