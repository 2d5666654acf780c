//! What entries mean, one line per story: the entries, and what is the matter after them.

use super::*;
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, TenantId, ToolName};
use rutter_core::journal::codec::Stored;
use rutter_core::journal::event::{
    Answer, DoubtSource, EndedAs, Event, Limit, Question, Record, Removed, Side, Then,
};
use rutter_core::journal::payload::Salt;
use rutter_core::plan::PolicyAction;
use rutter_core::tool::{Category, Failure};

fn stored(execution: &str, at: i64, event: Event) -> Stored {
    let record = Record { at: Timestamp(at), actor: Actor::rutter(), event };
    let (tenant, execution) = (TenantId::new("default"), ExecutionId::new(execution));
    let mut salts = || Salt([7; 16]);
    Stored::split(&tenant, &execution, 1, &record, &mut salts).unwrap().0
}

fn after(events: Vec<(&str, Event)>) -> Vec<String> {
    let mut matters = Matters::default();
    for (at, (execution, event)) in events.into_iter().enumerate() {
        for effect in effects(&stored(execution, at as i64, event)) {
            matters.take(effect, None);
        }
    }
    matters.iter().map(|matter| format!("{:?} {}", matter.concern, matter.subject)).collect()
}

fn part() -> PartId {
    PartId::parse("pay").unwrap()
}

fn failed(side: Side, then: Then) -> Event {
    let failure = Failure::new(Category::Timeout, "no answer");
    Event::AttemptFailed { part: part(), side, attempt: 1, failure, maybe: true, then }
}

fn settled(side: Side, happened: bool, then: Then) -> Event {
    let (source, reason) = (DoubtSource::Person, "seen".to_owned());
    Event::DoubtSettled { part: part(), side, happened, source, reason, result: None, evidence: None, then }
}

fn ended(outcome: EndedAs) -> Event {
    Event::ExecutionEnded { outcome, reason: String::new(), remains: Vec::new() }
}

fn drifted() -> Event {
    Event::ToolDrifted { tool: ToolName::new("shop.buy"), pinned: Hash::ZERO, found: Hash::ZERO }
}

fn accepted() -> Event {
    let reason = "looked at it".to_owned();
    Event::ToolAccepted { tool: ToolName::new("shop.buy"), definition: Hash::ZERO, reason }
}

fn limit() -> Event {
    Event::LimitReached { limit: Limit::Calls, action: PolicyAction::ManualDecision }
}

fn answered(about: Question) -> Event {
    let (answer, reason) = (Answer::Continue, String::new());
    Event::QuestionAnswered { about, answer, reason, result: None, evidence: None, skipped: Vec::new() }
}

#[test]
fn entries_raise_and_settle_what_is_the_matter() {
    let retry = Then::RetryAt(Timestamp(9));
    let none: &[&str] = &[];
    for (name, events, expected) in [
        ("a failure", vec![("a", ended(EndedAs::Failed))], &["ExecutionFailed a"][..]),
        ("undone", vec![("a", ended(EndedAs::Failed)), ("a", ended(EndedAs::Compensated))], none),
        ("completed", vec![("a", ended(EndedAs::Completed))], none),
        ("doubt", vec![("a", failed(Side::Do, Then::InDoubt))], &["InDoubt a/pay"]),
        ("a retry is no doubt", vec![("a", failed(Side::Do, retry))], none),
        ("a probe is no doubt", vec![("a", failed(Side::Probe, Then::InDoubt))], none),
        (
            "doubt settled",
            vec![("a", failed(Side::Do, Then::InDoubt)), ("a", settled(Side::Do, true, Then::GiveUp))],
            none,
        ),
        (
            "the doubt of another",
            vec![("a", failed(Side::Do, Then::InDoubt)), ("b", settled(Side::Do, true, Then::GiveUp))],
            &["InDoubt a/pay"],
        ),
        ("not undone", vec![("a", failed(Side::Undo, Then::GiveUp))], &["CompensationFailed a/pay"]),
        ("a step that failed is no compensation", vec![("a", failed(Side::Do, Then::GiveUp))], none),
        (
            "undone after all",
            vec![("a", failed(Side::Undo, Then::GiveUp)), ("a", answered(Question::Compensation(part())))],
            none,
        ),
        (
            "doubt about undoing, and it did not happen",
            vec![("a", failed(Side::Undo, Then::InDoubt)), ("a", settled(Side::Undo, false, Then::GiveUp))],
            &["CompensationFailed a/pay"],
        ),
        ("a limit", vec![("a", limit())], &["Budget a"]),
        (
            "a limit that was lifted",
            vec![("a", limit()), ("a", answered(Question::Limit(Limit::Calls)))],
            none,
        ),
        ("a limit that ended it", vec![("a", limit()), ("a", ended(EndedAs::Cancelled))], none),
        ("a tool for two", vec![("a", drifted()), ("b", drifted())], &["ToolChanged shop.buy"]),
        (
            "accepted by one",
            vec![("a", drifted()), ("b", drifted()), ("a", accepted())],
            &["ToolChanged shop.buy"],
        ),
        (
            "accepted by one, ended for the other",
            vec![("a", drifted()), ("b", drifted()), ("a", accepted()), ("b", ended(EndedAs::Completed))],
            none,
        ),
        (
            "removed",
            vec![
                ("a", failed(Side::Do, Then::InDoubt)),
                ("a", drifted()),
                ("b", ended(EndedAs::Failed)),
                ("ledger", removed("a")),
            ],
            &["ExecutionFailed b"],
        ),
    ] {
        assert_eq!(after(events), expected, "{name}");
    }
}

fn removed(execution: &str) -> Event {
    let removed = Removed { execution: ExecutionId::new(execution), entries: 3, head: Hash::ZERO };
    Event::ExecutionsRemoved { executions: vec![removed], reason: "old".to_owned() }
}

#[test]
fn there_are_at_most_a_thousand_matters_and_old_failures_give_way_first() {
    let mut matters = Matters::default();
    let take = |matters: &mut Matters, execution: &str, event: Event| {
        for effect in effects(&stored(execution, 1, event)) {
            matters.take(effect, None);
        }
    };
    take(&mut matters, "doubtful", failed(Side::Do, Then::InDoubt));
    for at in 0..MATTERS_MAX + 10 {
        take(&mut matters, &format!("exec_{at}"), ended(EndedAs::Failed));
    }
    assert_eq!(matters.iter().count(), MATTERS_MAX);
    let subjects: Vec<&str> = matters.iter().map(|matter| matter.subject.as_str()).collect();
    assert_eq!((subjects[0], subjects[1]), ("doubtful/pay", "exec_11"));
}

#[test]
fn a_failure_is_history_after_a_day_and_what_is_kept_is_read_back() {
    let mut matters = Matters::default();
    for effect in effects(&stored("a", 5, ended(EndedAs::Failed))) {
        matters.take(effect, None);
    }
    let kept = serde_json::to_value(&matters).unwrap();
    assert_eq!(serde_json::from_value::<Matters>(kept).unwrap(), matters);
    let day = FAILURE_LASTS.0 as i64;
    assert!(!matters.age(Timestamp(5 + day - 1)));
    assert!(matters.age(Timestamp(5 + day)));
    assert_eq!(matters.iter().count(), 0);
}
