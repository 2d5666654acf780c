//! Conditions by tables: entries, and the active conditions after them.

use super::*;
use crate::watch::rule::built_in;
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, TenantId, ToolName};
use rutter_core::journal::codec::StoredRecord;
use rutter_core::journal::event::{
    AttemptFollowUp, CallSide, Deviation, DoubtSource, Event, EventRecord, ExecutionEnding, ExecutionLimit, Question,
    QuestionAnswer, RemovedExecution,
};
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::plan::{Driver, PolicyAction};
use rutter_core::tool::{FailureCategory, ToolFailure};

fn stored(execution: &str, at: i64, event: Event) -> StoredRecord {
    let record = EventRecord { at: Timestamp(at), actor: Actor::rutter(), event };
    let (tenant, execution) = (TenantId::new("default"), ExecutionId::new(execution));
    let mut salts = || PayloadSalt([7; 16]);
    StoredRecord::split(&tenant, &execution, 1, &record, &mut salts).unwrap().0
}

fn after(events: Vec<(&str, Event)>) -> Vec<String> {
    let mut conditions = ActiveConditions::default();
    for (at, (execution, event)) in events.into_iter().enumerate() {
        for effect in effects(&stored(execution, at as i64, event)) {
            conditions.take(effect, None);
        }
    }
    conditions.iter().map(|condition| format!("{:?} {}", condition.concern, condition.subject)).collect()
}

fn part() -> PartId {
    PartId::parse("pay").unwrap()
}

fn failed(side: CallSide, then: AttemptFollowUp) -> Event {
    let failure = ToolFailure::new(FailureCategory::Timeout, "no answer");
    Event::AttemptFailed { part: part(), side, attempt: 1, failure, maybe: true, then }
}

fn settled(side: CallSide, happened: bool, then: AttemptFollowUp) -> Event {
    let (source, reason) = (DoubtSource::Person, "seen".to_owned());
    Event::DoubtSettled { part: part(), side, happened, source, reason, result: None, evidence: None, then }
}

fn ended(outcome: ExecutionEnding) -> Event {
    Event::ExecutionEnded { outcome, reason: String::new(), remains: Vec::new() }
}

fn drifted() -> Event {
    Event::ToolDrifted { tool: ToolName::new("shop.buy"), pinned: Hash::ZERO, found: Hash::ZERO }
}

fn accepted() -> Event {
    let reason = "looked at it".to_owned();
    Event::ToolAccepted { tool: ToolName::new("shop.buy"), definition: Hash::ZERO, reason }
}

fn twice() -> Event {
    let step = Some(part().step);
    Event::DeviationFound { kind: Deviation::SecondEffect, step, description: "it took effect twice".into() }
}

fn limit() -> Event {
    Event::LimitReached { limit: ExecutionLimit::Calls, action: PolicyAction::ManualDecision }
}

fn answered(about: Question) -> Event {
    let (answer, reason) = (QuestionAnswer::Continue, String::new());
    Event::QuestionAnswered { about, answer, reason, result: None, evidence: None, skipped: Vec::new() }
}

fn silent() -> Event {
    Event::AgentSilent { since: Timestamp(0), agent: None }
}

fn handed_over() -> Event {
    Event::HandedOver { to: Driver::Server, reason: "the agent is silent".to_owned() }
}

fn held() -> Event {
    Event::Held { reason: "no worker ran for 3 days".to_owned(), since: Timestamp(0), due: Vec::new(), more: 0 }
}

fn hold_ended() -> Event {
    Event::HoldEnded { reason: "looked".to_owned(), frozen: None, expired: Vec::new() }
}

#[test]
fn entries_raise_and_settle_conditions() {
    let retry = AttemptFollowUp::RetryAt(Timestamp(9));
    let none: &[&str] = &[];
    for (name, events, expected) in [
        ("a failure", vec![("a", ended(ExecutionEnding::Failed))], &["ExecutionFailed a"][..]),
        (
            "undone",
            vec![("a", ended(ExecutionEnding::Failed)), ("a", ended(ExecutionEnding::Compensated))],
            &["ExecutionCompensated a"],
        ),
        ("without some steps", vec![("a", ended(ExecutionEnding::Partial))], &["ExecutionPartial a"]),
        (
            "taken up again and completed",
            vec![("a", ended(ExecutionEnding::Partial)), ("a", ended(ExecutionEnding::Completed))],
            none,
        ),
        ("completed", vec![("a", ended(ExecutionEnding::Completed))], none),
        ("doubt", vec![("a", failed(CallSide::Do, AttemptFollowUp::InDoubt))], &["InDoubt a/pay"]),
        ("a retry is no doubt", vec![("a", failed(CallSide::Do, retry))], none),
        ("a probe is no doubt", vec![("a", failed(CallSide::Probe, AttemptFollowUp::InDoubt))], none),
        (
            "doubt settled",
            vec![
                ("a", failed(CallSide::Do, AttemptFollowUp::InDoubt)),
                ("a", settled(CallSide::Do, true, AttemptFollowUp::GiveUp)),
            ],
            none,
        ),
        (
            "the doubt of another",
            vec![
                ("a", failed(CallSide::Do, AttemptFollowUp::InDoubt)),
                ("b", settled(CallSide::Do, true, AttemptFollowUp::GiveUp)),
            ],
            &["InDoubt a/pay"],
        ),
        ("not undone", vec![("a", failed(CallSide::Undo, AttemptFollowUp::GiveUp))], &["CompensationFailed a/pay"]),
        ("a step that failed is no compensation", vec![("a", failed(CallSide::Do, AttemptFollowUp::GiveUp))], none),
        (
            "undone after all",
            vec![
                ("a", failed(CallSide::Undo, AttemptFollowUp::GiveUp)),
                ("a", answered(Question::Compensation(part()))),
            ],
            none,
        ),
        (
            "doubt about undoing, and it did not happen",
            vec![
                ("a", failed(CallSide::Undo, AttemptFollowUp::InDoubt)),
                ("a", settled(CallSide::Undo, false, AttemptFollowUp::GiveUp)),
            ],
            &["CompensationFailed a/pay"],
        ),
        ("a second effect", vec![("a", twice())], &["SecondEffect a/pay"]),
        (
            "a second effect that stands by decision",
            vec![("a", twice()), ("a", answered(Question::SecondEffect(part())))],
            none,
        ),
        ("a limit", vec![("a", limit())], &["Budget a"]),
        (
            "a limit that was lifted",
            vec![("a", limit()), ("a", answered(Question::Limit(ExecutionLimit::Calls)))],
            none,
        ),
        ("a limit that ended it", vec![("a", limit()), ("a", ended(ExecutionEnding::Cancelled))], none),
        ("a silent agent", vec![("a", silent())], &["AgentSilent a"]),
        ("the silence of another", vec![("a", silent()), ("b", handed_over())], &["AgentSilent a"]),
        ("a silent agent that was handed over", vec![("a", silent()), ("a", handed_over())], none),
        ("a silence that a person waits for", vec![("a", silent()), ("a", answered(Question::Silence))], none),
        ("a silent agent whose execution ended", vec![("a", silent()), ("a", ended(ExecutionEnding::Cancelled))], none),
        ("a hold", vec![("a", held())], &["ExecutionHeld a"]),
        (
            "a hold is not ended by an answer",
            vec![("a", held()), ("a", answered(Question::Silence))],
            &["ExecutionHeld a"],
        ),
        ("a hold that was ended", vec![("a", held()), ("a", hold_ended())], none),
        ("a held execution that ended", vec![("a", held()), ("a", ended(ExecutionEnding::Cancelled))], none),
        ("a tool for two", vec![("a", drifted()), ("b", drifted())], &["ToolChanged shop.buy"]),
        ("accepted by one", vec![("a", drifted()), ("b", drifted()), ("a", accepted())], &["ToolChanged shop.buy"]),
        (
            "accepted by one, ended for the other",
            vec![("a", drifted()), ("b", drifted()), ("a", accepted()), ("b", ended(ExecutionEnding::Completed))],
            none,
        ),
        (
            "removed",
            vec![
                ("a", failed(CallSide::Do, AttemptFollowUp::InDoubt)),
                ("a", drifted()),
                ("b", ended(ExecutionEnding::Failed)),
                ("ledger", removed("a")),
            ],
            &["ExecutionFailed b"],
        ),
    ] {
        assert_eq!(after(events), expected, "{name}");
    }
}

/// As in the core: only the agent that was silent is heard, and any agent where nobody knew which one it was.
#[test]
fn only_the_agent_that_drives_ends_its_silence() {
    let (pilot, another) = (Actor::agent("pilot"), Actor::agent("another"));
    for (silent, heard, is_silent) in [
        (Some(&pilot), &pilot, false),
        (Some(&pilot), &another, true),
        (Some(&pilot), &Actor::person("pilot"), true),
        (None, &another, false),
        (None, &Actor::rutter(), true),
    ] {
        let mut conditions = ActiveConditions::default();
        let silence = Event::AgentSilent { since: Timestamp(1), agent: silent.cloned() };
        let (mut look, mut elsewhere) = (stored("a", 3, Event::AgentSeen {}), stored("b", 3, Event::AgentSeen {}));
        (look.actor, elsewhere.actor) = (heard.clone(), heard.clone());
        for entry in [stored("a", 2, silence), elsewhere] {
            for effect in effects(&entry) {
                conditions.take(effect, None);
            }
        }
        assert_eq!(conditions.iter().count(), 1);
        for effect in effects(&look) {
            conditions.take(effect, None);
        }
        assert_eq!(conditions.iter().count() == 1, is_silent, "{silent:?} was silent, {heard:?} acts");
    }
}

fn removed(execution: &str) -> Event {
    let removed = RemovedExecution { execution: ExecutionId::new(execution), entries: 3, head: Hash::ZERO };
    Event::ExecutionsRemoved { executions: vec![removed], reason: "old".to_owned() }
}

/// The severity of the built-in rules.
fn severity(condition: &ActiveCondition) -> Option<AlertSeverity> {
    built_in().iter().filter(|rule| rule.concerns(condition)).map(|rule| rule.severity).max()
}

#[test]
fn there_are_at_most_a_thousand_conditions_and_the_oldest_of_the_least_severe_are_left_out() {
    let mut conditions = ActiveConditions::default();
    let take = |actives: &mut ActiveConditions, execution: &str, event: Event| {
        for effect in effects(&stored(execution, 1, event)) {
            actives.take(effect, None);
        }
    };
    take(&mut conditions, "doubtful", failed(CallSide::Do, AttemptFollowUp::InDoubt));
    take(&mut conditions, "undone", ended(ExecutionEnding::Compensated));
    for at in 0..CONDITIONS_MAX + 10 {
        take(&mut conditions, &format!("exec_{at}"), ended(ExecutionEnding::Failed));
    }
    assert!(conditions.are_too_many());
    conditions.limit(severity, Timestamp(7));
    assert!(!conditions.are_too_many());
    let subjects: Vec<&str> = conditions.iter().map(|condition| condition.subject.as_str()).collect();
    assert_eq!((subjects.len(), subjects[0], subjects[1]), (CONDITIONS_MAX, "doubtful/pay", "exec_11"));
    let left_out: Vec<(AlertKind, u64)> = conditions.left_out().iter().map(|(kind, it)| (*kind, it.count)).collect();
    assert_eq!(left_out, [(AlertKind::ExecutionFailed, 11), (AlertKind::ExecutionCompensated, 1)]);
    assert!(!conditions.age(Timestamp(7)));
    conditions.age(Timestamp(7 + LEFT_OUT_LASTS.0 as i64));
    assert!(conditions.left_out().is_empty());
}

#[test]
fn what_no_rule_wants_is_left_out_first_and_is_not_counted() {
    let mut conditions = ActiveConditions::default();
    for (at, event) in [ended(ExecutionEnding::Partial), ended(ExecutionEnding::Failed)].into_iter().enumerate() {
        for number in 0..CONDITIONS_MAX {
            for effect in effects(&stored(&format!("exec_{at}_{number}"), 1, event.clone())) {
                conditions.take(effect, None);
            }
        }
    }
    let is_wanted = |it: &ActiveCondition| (it.concern == AlertKind::ExecutionPartial).then_some(AlertSeverity::Info);
    conditions.limit(is_wanted, Timestamp(1));
    assert!(conditions.iter().all(|condition| condition.concern == AlertKind::ExecutionPartial));
    assert_eq!((conditions.iter().count(), conditions.left_out().len()), (CONDITIONS_MAX, 0));
}

#[test]
fn conditions_with_long_texts_fit_into_the_item_they_are_stored_in() {
    let mut conditions = ActiveConditions::default();
    for at in 0..CONDITIONS_MAX {
        let long = ActiveCondition {
            concern: AlertKind::Budget,
            subject: format!("exec_{at}"),
            since: Timestamp(1).into(),
            execution: Some(format!("exec_{at}")),
            plan: None,
            text: "\u{20ac}".repeat(300),
            measure: 0,
            members: Vec::new(),
            agent: None,
        };
        conditions.take(ConditionChange::Raise(long), None);
    }
    conditions.limit(severity, Timestamp(1));
    let stored = serde_json::to_value(&conditions).unwrap().to_string();
    assert!(stored.len() < rutter_core::limits::NOTE_BYTES_MAX, "{}", stored.len());
    let held = conditions.iter().count() as u64;
    assert_eq!(held + conditions.left_out()[&AlertKind::Budget].count, CONDITIONS_MAX as u64);
}

#[test]
fn a_failure_expires_after_a_day_and_stored_conditions_are_read_back() {
    let mut conditions = ActiveConditions::default();
    for effect in effects(&stored("a", 5, ended(ExecutionEnding::Failed))) {
        conditions.take(effect, None);
    }
    let stored = serde_json::to_value(&conditions).unwrap();
    assert_eq!(serde_json::from_value::<ActiveConditions>(stored).unwrap(), conditions);
    let day = END_LASTS.0 as i64;
    assert!(!conditions.age(Timestamp(5 + day - 1)));
    assert!(conditions.age(Timestamp(5 + day)));
    assert_eq!(conditions.iter().count(), 0);
}
