//! The chosen step: what it was called with, what came of it, how often it was tried and why.

use super::entries::{is_about, records};
use super::table::took;
use super::{Address, Known, Seen};
use crate::dashboard::format::{Look, Moment};
use crate::dashboard::journal::Told;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::words::span;
use rutter_core::execution::Execution;
use rutter_core::execution::Identity;
use rutter_core::id::PartId;
use rutter_core::journal::event::{Event, Side, SkipReason, Then};
use rutter_core::plan::{PolicyAction, Step};
use rutter_core::port::query::EntrySummary;
use rutter_core::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// Of the entries about the step, the newest.
const EVENTS_MAX: usize = 40;
const ATTEMPTS_MAX: usize = 40;

/// What the execution holds of a step.
pub(super) struct Held {
    at: usize,
    parameters: Option<Arc<Value>>,
    result: Option<Value>,
    key: Option<String>,
}

impl Held {
    pub(super) fn of(execution: &Execution, step: &str) -> Option<Held> {
        let at = execution.plan().find(step)?;
        let part = execution.part(&PartId::whole(execution.plan().steps[at].id.clone()));
        Some(Held {
            at,
            parameters: part.and_then(|part| part.parameters.as_ref()?.value().cloned()),
            result: execution.result_of(step).cloned(),
            key: part.and_then(|part| part.key.map(|key| key.to_string())),
        })
    }
}

pub(super) struct StepPanel {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) look: Look,
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) failure: String,
    pub(super) condition: Option<(String, String)>,
    pub(super) attempts: Vec<Tried>,
    pub(super) parameters: Option<Known>,
    pub(super) result: Option<Known>,
    pub(super) events: Vec<Told>,
    pub(super) events_href: String,
    pub(super) command: Option<String>,
    pub(super) close_href: String,
    /// Undoing this one and what depends on it, once the execution is over.
    pub(super) undo_href: Option<String>,
}

/// One attempt.
pub(super) struct Tried {
    pub(super) what: String,
    pub(super) started: Moment,
    pub(super) took: String,
    pub(super) look: Look,
    pub(super) said: String,
}

impl StepPanel {
    pub(super) async fn read(
        desk: &Desk,
        identity: &Identity,
        seen: &Seen,
        held: &Held,
        address: &Address<'_>,
        now: Timestamp,
    ) -> Result<StepPanel, Fault> {
        let (planned, view) = (&seen.plan.steps[held.at], &seen.view.steps[held.at]);
        let id = planned.id.as_str();
        let (mut entries, _) = records(desk, identity).await?;
        entries.retain(|entry| is_about(entry, id));
        let newest = entries.len().saturating_sub(EVENTS_MAX);
        let undoes = seen.view.status.has_ended()
            && seen.rollback.parts.iter().any(|(part, _)| part.step == planned.id);
        let tool = planned.call.tool.as_str();
        let call =
            |json: &Value| format!("rutter tools call {tool} '{}'", json.to_string().replace('\'', "'\\''"));
        let mut facts = facts(seen, planned);
        facts.push(("Took", took(view, now)));
        facts.extend(held.key.clone().map(|key| ("Idempotency key", key)));
        Ok(StepPanel {
            id: id.to_owned(),
            name: if planned.name.is_empty() { id.to_owned() } else { planned.name.clone() },
            description: planned.description.clone(),
            look: Look::of(view.status),
            facts,
            failure: view.failure.as_ref().map(ToString::to_string).unwrap_or_default(),
            condition: planned
                .when
                .as_ref()
                .map(|when| (when.source.to_string(), verdict(&entries, view.status))),
            attempts: attempts(&entries, now),
            parameters: held
                .parameters
                .as_deref()
                .filter(has_content)
                .map(|value| Known::of("Arguments".to_owned(), value)),
            result: held.result.as_ref().map(|value| Known::of("Result".to_owned(), value)),
            events: entries[newest..].iter().map(|entry| Told::of(entry, now)).collect(),
            events_href: address.with(&[("tab", "events"), ("step", id)]),
            command: held.parameters.as_deref().map(call),
            close_href: address.with(&[("step", "")]),
            undo_href: undoes.then(|| format!("{}/confirm?act=undo&step={id}", address.base)),
        })
    }
}

fn has_content(value: &&Value) -> bool {
    value.as_object().is_none_or(|fields| !fields.is_empty())
}

fn facts(seen: &Seen, planned: &Step) -> Vec<(&'static str, String)> {
    let at = seen.plan.find(planned.id.as_str()).unwrap_or_default();
    let needs: Vec<&str> =
        seen.plan.graph.needs[at].iter().map(|need| seen.plan.steps[need.step].id.as_str()).collect();
    let policy = match planned.policy.action {
        PolicyAction::ManualDecision => "somebody decides",
        PolicyAction::CancelAll => "everything is cancelled",
        PolicyAction::CancelDependent => "what depends on it is cancelled",
        PolicyAction::ContinueOthers => "the others go on",
        PolicyAction::Compensate => "everything is undone",
    };
    let mut facts = vec![
        ("Tool", planned.call.tool.to_string()),
        ("Safety", planned.call.safety.as_str().replace('_', " ")),
        ("If it fails", policy.to_owned()),
        (
            "Tries",
            format!("{} at the most, {} each", planned.call.retry.max_attempts, span(planned.call.timeout)),
        ),
    ];
    if !needs.is_empty() {
        facts.insert(1, ("Needs", needs.join(", ")));
    }
    if let Some(compensation) = &planned.compensation {
        facts.push(("Undone by", compensation.call.tool.to_string()));
    }
    if let Some(probe) = &planned.probe {
        facts.push(("Found out by", probe.call.tool.to_string()));
    }
    if planned.approval.is_some() {
        facts.push(("Approval", "a person must say yes to the exact call".to_owned()));
    }
    facts
}

/// What came of the condition.
fn verdict(entries: &[EntrySummary], status: &str) -> String {
    let skipped = entries.iter().find_map(|entry| match &entry.record.event {
        Event::StepsSkipped { because, .. } => Some(because.clone()),
        _ => None,
    });
    match (skipped, status) {
        (Some(SkipReason::Condition), _) => "was false: the step was skipped".to_owned(),
        (Some(SkipReason::NeedsResultOf(step)), _) => format!("was not looked at: {step} has no result"),
        (Some(SkipReason::LeftUndone), _) => "was not looked at: it was left undone".to_owned(),
        (None, "pending") => "not looked at yet".to_owned(),
        (None, _) => "was true".to_owned(),
    }
}

fn attempts(entries: &[EntrySummary], now: Timestamp) -> Vec<Tried> {
    let mut open: Vec<(PartId, Side, u32, Timestamp)> = Vec::new();
    let mut tried: Vec<Tried> = Vec::new();
    for EntrySummary { record, .. } in entries {
        let (part, side, attempt, status, said) = match &record.event {
            Event::AttemptStarted { part, side, attempt, .. } => {
                open.push((part.clone(), *side, *attempt, record.at));
                continue;
            }
            Event::AttemptSucceeded { part, side, attempt, .. } => {
                (part, side, attempt, "completed", String::new())
            }
            Event::AttemptFailed { part, side, attempt, failure, then, .. } => {
                (part, side, attempt, ended(*then), format!("{failure}{}", next(*then, record.at)))
            }
            Event::AttemptLost { part, side, attempt, then } => (
                part,
                side,
                attempt,
                ended(*then),
                format!("nobody could say how it ended{}", next(*then, record.at)),
            ),
            _ => continue,
        };
        let is_it = |(of, on, number, _): &(PartId, Side, u32, Timestamp)| {
            of == part && on == side && number == attempt
        };
        if let Some(place) = open.iter().position(is_it) {
            let (part, side, attempt, started) = open.remove(place);
            let took = span(record.at.since(started));
            tried.push(row(&part, side, attempt, started, took, Look::of(status), said, now));
        }
    }
    for (part, side, attempt, started) in open {
        let took = span(now.since(started));
        tried.push(row(&part, side, attempt, started, took, Look::of("running"), String::new(), now));
    }
    let skipped = tried.len().saturating_sub(ATTEMPTS_MAX);
    tried.split_off(skipped)
}

#[allow(clippy::too_many_arguments, reason = "it only puts them into one row")]
fn row(
    part: &PartId,
    side: Side,
    attempt: u32,
    started: Timestamp,
    took: String,
    look: Look,
    said: String,
    now: Timestamp,
) -> Tried {
    let side = match side {
        Side::Do => "attempt",
        Side::Fallback => "fallback",
        Side::Undo => "undo",
        Side::Probe => "probe",
    };
    let item = part.item.map(|item| format!(" of item {item}")).unwrap_or_default();
    Tried { what: format!("{side} {attempt}{item}"), started: Moment::of(started, now), took, look, said }
}

fn ended(then: Then) -> &'static str {
    if then == Then::InDoubt { "in_doubt" } else { "failed" }
}

fn next(then: Then, at: Timestamp) -> String {
    match then {
        Then::RetryAt(due) => format!("; tried again after {}", span(due.since(at))),
        Then::FallBack => "; the fallback came next".to_owned(),
        Then::InDoubt => "; in doubt".to_owned(),
        Then::GiveUp => String::new(),
    }
}
