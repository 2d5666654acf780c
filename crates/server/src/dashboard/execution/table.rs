//! The steps as a table: the same as the graph, for those who would rather read, and for plans too large to draw.

use super::{Address, Seen};
use crate::dashboard::format::Look;
use crate::words::span;
use rutter_core::execution::view::StepView;
use rutter_core::time::Timestamp;

/// So many rows are shown; a group of a folded plan has fewer.
const ROWS_MAX: usize = 300;

pub(super) struct StepRow {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) href: String,
    pub(super) is_chosen: bool,
    pub(super) look: Look,
    pub(super) tool: String,
    pub(super) needs: String,
    pub(super) attempts: u32,
    pub(super) took: String,
    pub(super) failure: String,
}

/// The rows, and what to say about those that are not among them.
pub(super) fn rows(
    seen: &Seen,
    members: Option<&[usize]>,
    address: &Address<'_>,
    now: Timestamp,
) -> (Vec<StepRow>, Option<String>) {
    let all: Vec<usize> = (0..seen.view.steps.len()).collect();
    let wanted = members.unwrap_or(&all);
    let shown = wanted.iter().take(ROWS_MAX).filter_map(|&at| row(seen, at, address, now));
    let note = (wanted.len() > ROWS_MAX).then(|| {
        format!("The first {ROWS_MAX} of {} steps; open a group of the graph to see its steps.", wanted.len())
    });
    (shown.collect(), note)
}

fn row(seen: &Seen, at: usize, address: &Address<'_>, now: Timestamp) -> Option<StepRow> {
    let (step, planned) = (seen.view.steps.get(at)?, seen.plan.steps.get(at)?);
    let needs: Vec<&str> =
        seen.plan.graph.needs[at].iter().map(|need| seen.plan.steps[need.step].id.as_str()).collect();
    let id = step.id.as_str();
    Some(StepRow {
        href: address.with(&[("step", id)]),
        is_chosen: address.visitor.asked("step") == Some(id),
        id: id.to_owned(),
        name: planned.name.clone(),
        look: Look::of(step.status),
        tool: step.tool.to_string(),
        needs: needs.join(", "),
        attempts: step.attempts,
        took: took(step, now),
        failure: step.failure.as_ref().map(ToString::to_string).unwrap_or_default(),
    })
}

pub(super) fn took(step: &StepView, now: Timestamp) -> String {
    let until = step.ended_at.unwrap_or(now);
    step.began_at.map_or_else(|| "–".to_owned(), |began| span(until.since(began)))
}
