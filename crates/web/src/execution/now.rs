//! The current state of an execution in one sentence.

use crate::format::{relative, sentence};
use rutter_app::wording::span;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus, PendingQuestion};
use rutter_core::text::listed;
use rutter_core::time::Timestamp;

/// How many steps of one status are named.
const NAMED_MAX: usize = 3;
/// How many steps a line about the end names.
const LISTED_MAX: usize = 10;

pub(super) fn line(view: &ExecutionSnapshot, now: Timestamp) -> String {
    if view.status.has_ended() {
        return ended(view, now);
    }
    let mut lines: Vec<String> = Vec::new();
    match view.status {
        ExecutionStatus::Paused => lines.push("paused: nothing new starts until it is resumed".to_owned()),
        ExecutionStatus::Replanning => lines.push("waiting for a changed plan".to_owned()),
        ExecutionStatus::Pending => lines.push("created, not started".to_owned()),
        _ => {}
    }
    // A name stays as it is written, also at the beginning.
    let begins_with_name = lines.is_empty() && view.questions.first().is_some_and(PendingQuestion::begins_with_name);
    lines.extend(view.questions.first().map(ToString::to_string));
    if view.questions.len() > 1 {
        let more = view.questions.len() - 1;
        lines.push(if more == 1 { "1 more question".to_owned() } else { format!("{more} more questions") });
    }
    for (status, word) in [("running", "running"), ("retrying", "retrying"), ("compensating", "undoing")] {
        lines.extend(named(view, status).map(|names| format!("{word} {names}")));
    }
    if let Some(at) = view.wake_at.filter(|at| *at > now && view.questions.is_empty()) {
        lines.push(format!("continues {}", relative(at, now)));
    }
    match view.steps.iter().filter(|step| step.status == "pending").count() {
        0 => {}
        1 => lines.push("1 step not started".to_owned()),
        count => lines.push(format!("{count} steps not started")),
    }
    if lines.is_empty() {
        lines.push(view.summary());
    }
    match (begins_with_name, lines.join("; ")) {
        (true, text) => format!("{text}."),
        (false, text) => sentence(&text),
    }
}

/// How an execution ended: why, what failed, was undone, was skipped, is unmet. Text of tools is quoted.
pub(super) fn ending(view: &ExecutionSnapshot) -> Vec<(&'static str, String)> {
    if !view.status.has_ended() {
        return Vec::new();
    }
    let failed: Vec<String> = view.failures.iter().map(ToString::to_string).collect();
    let lines = [
        ("Cause", view.cause.clone().unwrap_or_default()),
        ("Failed", listed(&failed, LISTED_MAX)),
        ("Undone", listed(&view.undone, LISTED_MAX)),
        ("Skipped", listed(&view.skipped_as_planned(), LISTED_MAX)),
        ("Unmet", listed(&view.unmet, LISTED_MAX)),
    ];
    lines.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

fn ended(view: &ExecutionSnapshot, now: Timestamp) -> String {
    let took = view.started_at.map(|started| format!(" after {}", span(view.last_at.since(started))));
    let mut text = format!("{} {}{}", view.status.as_str(), relative(view.last_at, now), took.unwrap_or_default());
    if let Some(ask) = view.questions.first() {
        text.push_str(&format!("; {ask}"));
    }
    sentence(&text)
}

fn named(view: &ExecutionSnapshot, status: &str) -> Option<String> {
    let steps: Vec<&str> =
        view.steps.iter().filter(|step| step.status == status).map(|step| step.id.as_str()).collect();
    let first = steps.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match steps.len() {
        0 => None,
        count if count > NAMED_MAX => Some(format!("{first} and {} more", count - NAMED_MAX)),
        _ => Some(first),
    }
}
