//! The panel of the selected step: arguments, result, attempts and entries.

use super::entries::PageJournal;
use super::table::took;
use super::{ExecutionPageState, ExecutionPageUrl, KnownValue};
use crate::format::{StatusBadge, TimeLabel};
use crate::journal::EntryRow;
use rutter_app::wording::span;
use rutter_core::execution::Execution;
use rutter_core::id::PartId;
use rutter_core::journal::attempts::{AttemptEnd, AttemptHistory, AttemptKey, KnownAttempt, OpenAttempt};
use rutter_core::journal::event::{CallSide, Event, SkipReason};
use rutter_core::plan::{PolicyAction, Step};
use rutter_core::port::query::EntrySummary;
use rutter_core::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// The newest entries about the step.
const EVENTS_MAX: usize = 40;
const ATTEMPTS_MAX: usize = 40;
/// The longest quotation about an attempt.
const QUOTE_CHARS_MAX: usize = 240;

/// What the execution state contains about a step.
pub(super) struct StepValues {
    at: usize,
    parameters: Option<Arc<Value>>,
    result: Option<Value>,
    key: Option<String>,
}

impl StepValues {
    pub(super) fn of(execution: &Execution, step: &str) -> Option<StepValues> {
        let at = execution.plan().find(step)?;
        let part = execution.part(&PartId::whole(execution.plan().steps[at].id.clone()));
        Some(StepValues {
            at,
            parameters: part.and_then(|part| part.parameters.as_ref()?.value().cloned()),
            result: execution.result_of(step).cloned(),
            key: part.and_then(|part| part.key.map(|key| key.to_string())),
        })
    }
}

pub(super) struct StepDetailPanel {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) look: StatusBadge,
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) failure: String,
    pub(super) condition: Option<(String, String)>,
    pub(super) attempts: Vec<AttemptRow>,
    pub(super) parameters: Option<KnownValue>,
    pub(super) result: Option<KnownValue>,
    pub(super) events: Vec<EntryRow>,
    pub(super) events_href: String,
    pub(super) command: Option<String>,
    pub(super) close_href: String,
    /// Link to undo this step and its dependents, once the execution has ended.
    pub(super) undo_href: Option<String>,
}

/// One attempt.
pub(super) struct AttemptRow {
    pub(super) what: String,
    pub(super) started: TimeLabel,
    pub(super) took: String,
    pub(super) look: StatusBadge,
    pub(super) outcome: String,
}

impl StepDetailPanel {
    pub(super) fn of(
        journal: &PageJournal,
        seen: &ExecutionPageState,
        held: &StepValues,
        address: &ExecutionPageUrl<'_>,
        now: Timestamp,
    ) -> StepDetailPanel {
        let (planned, view) = (&seen.plan.steps[held.at], &seen.view.steps[held.at]);
        let id = planned.id.as_str();
        let about = journal.entries.iter().filter(|entry| entry.record.event.is_about(id));
        let entries: Vec<EntrySummary> = about.cloned().collect();
        let newest = entries.len().saturating_sub(EVENTS_MAX);
        let undoes =
            seen.view.status.has_ended() && seen.rollback.parts.iter().any(|(part, _)| part.step == planned.id);
        let tool = planned.call.tool.as_str();
        let call = |json: &Value| format!("rutter tools call {tool} '{}'", json.to_string().replace('\'', "'\\''"));
        let mut facts = facts(seen, planned);
        facts.push(("Took", took(view, now)));
        facts.extend(held.key.clone().map(|key| ("Idempotency key", key)));
        StepDetailPanel {
            id: id.to_owned(),
            name: if planned.name.is_empty() { id.to_owned() } else { planned.name.clone() },
            description: planned.description.clone(),
            look: StatusBadge::of(view.status),
            facts,
            failure: view.failure.as_ref().map(ToString::to_string).or(view.skip_reason.clone()).unwrap_or_default(),
            condition: planned.when.as_ref().map(|when| (when.source.to_string(), verdict(&entries, view.status))),
            attempts: attempts(&entries, now),
            parameters: held
                .parameters
                .as_deref()
                .filter(has_content)
                .map(|value| KnownValue::of("Arguments".to_owned(), value)),
            result: held.result.as_ref().map(|value| KnownValue::of("Result".to_owned(), value)),
            events: entries[newest..].iter().map(|entry| EntryRow::of(entry, now)).collect(),
            events_href: address.with(&[("tab", "events"), ("step", id)]),
            command: held.parameters.as_deref().map(call),
            close_href: address.with(&[("step", "")]),
            undo_href: undoes.then(|| format!("{}/confirm?act=undo&step={id}", address.base)),
        }
    }
}

fn has_content(value: &&Value) -> bool {
    value.as_object().is_none_or(|fields| !fields.is_empty())
}

fn facts(seen: &ExecutionPageState, planned: &Step) -> Vec<(&'static str, String)> {
    let at = seen.plan.find(planned.id.as_str()).unwrap_or_default();
    let needs: Vec<&str> =
        seen.plan.graph.needs[at].iter().map(|need| seen.plan.steps[need.step].id.as_str()).collect();
    let policy = match planned.policy.action {
        PolicyAction::ManualDecision => "wait for a decision",
        PolicyAction::CancelAll => "cancel everything",
        PolicyAction::CancelDependent => "cancel dependent steps",
        PolicyAction::ContinueOthers => "continue with other steps",
        PolicyAction::Compensate => "stop and undo everything",
    };
    let mut facts = vec![
        ("Tool", planned.call.tool.to_string()),
        ("Safety", planned.call.safety.as_str().replace('_', " ")),
        ("If it fails", policy.to_owned()),
        ("Tries", format!("at most {}, timeout {}", planned.call.retry.max_attempts, span(planned.call.timeout))),
    ];
    if !needs.is_empty() {
        facts.insert(1, ("Needs", needs.join(", ")));
    }
    if let Some(compensation) = &planned.compensation {
        facts.push(("Undone by", compensation.call.tool.to_string()));
    }
    if let Some(probe) = &planned.probe {
        facts.push(("Probe", probe.call.tool.to_string()));
    }
    if planned.approval.is_some() {
        facts.push(("Approval", "a person must approve the exact call".to_owned()));
    }
    facts
}

/// How the condition was evaluated.
fn verdict(entries: &[EntrySummary], status: &str) -> String {
    let skipped = entries.iter().find_map(|entry| match &entry.record.event {
        Event::StepsSkipped { because, .. } => Some(because.clone()),
        _ => None,
    });
    match (skipped, status) {
        (Some(SkipReason::Condition), _) => "was false: the step was skipped".to_owned(),
        (Some(SkipReason::NeedsResultOf(step)), _) => format!("was not evaluated: {step} has no result"),
        (Some(SkipReason::ElseOf(step)), _) => format!("was not evaluated: {step} was not skipped by its condition"),
        (Some(SkipReason::LeftUndone), _) => "was not evaluated: the agent ended without the step".to_owned(),
        (None, "pending") => "is not evaluated yet".to_owned(),
        (None, _) => "was true".to_owned(),
    }
}

/// The newest attempts of the step, with everything known about them.
fn attempts(entries: &[EntrySummary], now: Timestamp) -> Vec<AttemptRow> {
    let mut history = AttemptHistory::default();
    for EntrySummary { seq, record, .. } in entries {
        history.apply(*seq, record.at, &record.event);
    }
    let words = |seq: u64| -> Option<String> {
        let place = entries.binary_search_by_key(&seq, |entry| entry.seq).ok()?;
        Some(entries[place].record.describe().brief(QUOTE_CHARS_MAX))
    };
    let closed = history.closed().iter().filter_map(|known| {
        let KnownAttempt { attempt, later_seqs, .. } = known;
        let start = attempt.start.as_ref()?;
        let status = match &attempt.end {
            AttemptEnd::Succeeded { .. } => "completed",
            end if end.is_in_doubt() => "in_doubt",
            AttemptEnd::Failed { .. } | AttemptEnd::Lost { .. } => "failed",
            AttemptEnd::Abandoned => "cancelled",
        };
        let shows_end = !matches!(attempt.end, AttemptEnd::Succeeded { .. });
        let seqs = shows_end.then_some(attempt.ended_seq).into_iter().chain(later_seqs.iter().copied());
        let lines: Vec<String> = seqs.filter_map(words).collect();
        Some(tried(start, attempt.ended_at, status, lines.join("; "), now))
    });
    let open = history.open().iter().map(|open| tried(open, now, "running", String::new(), now));
    let mut all: Vec<AttemptRow> = closed.chain(open).collect();
    all.split_off(all.len().saturating_sub(ATTEMPTS_MAX))
}

fn tried(start: &OpenAttempt, until: Timestamp, status: &'static str, message: String, now: Timestamp) -> AttemptRow {
    let AttemptKey { part, side, number } = &start.key;
    let side = if *side == CallSide::Do { "attempt" } else { side.noun() };
    let item = part.item.map(|item| format!(" of item {item}")).unwrap_or_default();
    AttemptRow {
        what: format!("{side} {number}{item}"),
        started: TimeLabel::of(start.started_at, now),
        took: span(until.since(start.started_at)),
        look: StatusBadge::of(status),
        outcome: message,
    }
}
