//! The steps as a table: the content of the graph as text, and for plans too large to draw.

use super::{ExecutionPageState, ExecutionPageUrl};
use crate::format::StatusBadge;
use rutter_app::wording::span;
use rutter_core::execution::view::StepSnapshot;
use rutter_core::time::Timestamp;

/// Rows shown; a group of a folded plan has fewer.
const ROWS_MAX: usize = 300;

pub(super) struct StepTableRow {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) href: String,
    pub(super) is_chosen: bool,
    pub(super) look: StatusBadge,
    pub(super) tool: String,
    pub(super) needs: String,
    pub(super) attempts: u32,
    pub(super) took: String,
    pub(super) failure: String,
}

/// The rows, and a note about rows that are left out.
pub(super) fn rows(
    seen: &ExecutionPageState,
    members: Option<&[usize]>,
    address: &ExecutionPageUrl<'_>,
    now: Timestamp,
) -> (Vec<StepTableRow>, Option<String>) {
    let all: Vec<usize> = (0..seen.view.steps.len()).collect();
    let wanted = members.unwrap_or(&all);
    let filter_map = wanted.iter().take(ROWS_MAX).filter_map(|&at| row(seen, at, address, now));
    let note = (wanted.len() > ROWS_MAX).then(|| {
        format!("The first {ROWS_MAX} of {} steps; open a group of the graph to see its steps.", wanted.len())
    });
    (filter_map.collect(), note)
}

fn row(seen: &ExecutionPageState, at: usize, address: &ExecutionPageUrl<'_>, now: Timestamp) -> Option<StepTableRow> {
    let (step, planned) = (seen.view.steps.get(at)?, seen.plan.steps.get(at)?);
    let needs: Vec<&str> =
        seen.plan.graph.needs[at].iter().map(|need| seen.plan.steps[need.step].id.as_str()).collect();
    let id = step.id.as_str();
    Some(StepTableRow {
        href: address.with(&[("step", id)]),
        is_chosen: address.request.query_value("step") == Some(id),
        id: id.to_owned(),
        name: planned.name.clone(),
        look: StatusBadge::of(step.status),
        tool: step.tool.to_string(),
        needs: needs.join(", "),
        attempts: step.attempts,
        took: took(step, now),
        failure: step.failure.as_ref().map(ToString::to_string).or(step.skip_reason.clone()).unwrap_or_default(),
    })
}

pub(super) fn took(step: &StepSnapshot, now: Timestamp) -> String {
    let until = step.ended_at.unwrap_or(now);
    step.began_at.map_or_else(|| "–".to_owned(), |began| span(until.since(began)))
}
