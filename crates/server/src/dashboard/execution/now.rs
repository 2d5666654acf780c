//! What is going on, in one sentence.

use crate::dashboard::format::{relative, sentence};
use crate::words::span;
use rutter_core::execution::view::{Status, View};
use rutter_core::time::Timestamp;

/// Of steps that are in one state.
const NAMED_MAX: usize = 3;

pub(super) fn line(view: &View, now: Timestamp) -> String {
    if view.status.has_ended() {
        return ended(view, now);
    }
    let mut said: Vec<String> = Vec::new();
    match view.status {
        Status::Paused => said.push("paused: nothing new begins until somebody resumes it".to_owned()),
        Status::Replanning => said.push("somebody is changing the plan".to_owned()),
        Status::Pending => said.push("on record, not begun".to_owned()),
        _ => {}
    }
    said.extend(view.questions.first().map(ToString::to_string));
    if view.questions.len() > 1 {
        said.push(format!("{} more questions", view.questions.len() - 1));
    }
    for (status, word) in [("running", "running"), ("retrying", "trying again"), ("compensating", "undoing")]
    {
        said.extend(named(view, status).map(|names| format!("{word} {names}")));
    }
    if let Some(at) = view.wake_at.filter(|at| *at > now && view.questions.is_empty()) {
        said.push(format!("goes on by itself {}", relative(at, now)));
    }
    match view.steps.iter().filter(|step| step.status == "pending").count() {
        0 => {}
        1 => said.push("1 step not begun".to_owned()),
        count => said.push(format!("{count} steps not begun")),
    }
    if said.is_empty() {
        said.push(format!("{}, {} of {} steps settled", view.status.as_str(), view.settled, view.total));
    }
    sentence(&said.join("; "))
}

fn ended(view: &View, now: Timestamp) -> String {
    let took = view.started_at.map(|started| format!(" after {}", span(view.last_at.since(started))));
    let mut text =
        format!("{} {}{}", view.status.as_str(), relative(view.last_at, now), took.unwrap_or_default());
    if let Some(ask) = view.questions.first() {
        text.push_str(&format!("; {ask}"));
    }
    sentence(&text)
}

fn named(view: &View, status: &str) -> Option<String> {
    let steps: Vec<&str> =
        view.steps.iter().filter(|step| step.status == status).map(|step| step.id.as_str()).collect();
    let first = steps.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match steps.len() {
        0 => None,
        count if count > NAMED_MAX => Some(format!("{first} and {} more", count - NAMED_MAX)),
        _ => Some(first),
    }
}
