//! One execution as a row of a list.

use crate::format::{IdentifierLink, StatusBadge, TimeLabel, encoded};
use rutter_app::wording::span;
use rutter_core::plan::Driver;
use rutter_core::port::query::ExecutionSummary;
use rutter_core::time::Timestamp;

#[derive(Clone, Debug)]
pub struct ExecutionRow {
    pub id: IdentifierLink,
    pub look: StatusBadge,
    pub name: String,
    /// Why it did not complete, or what it waits for.
    pub remark: Option<String>,
    /// How it departed from its plan, by kind.
    pub deviations: Vec<String>,
    pub plan_href: String,
    pub revision: u32,
    pub completed: u32,
    pub total: u32,
    pub questions: u32,
    pub opened: TimeLabel,
    /// The duration, so far if it has not ended.
    pub took: String,
    pub driver: &'static str,
    pub has_ended: bool,
}

impl ExecutionRow {
    pub fn of(summary: &ExecutionSummary, now: Timestamp) -> ExecutionRow {
        let row = &summary.row;
        let has_ended = row.status.has_ended();
        let until = if has_ended { row.last_at } else { now };
        let took = row.started_at.map(|started| span(until.since(started)));
        ExecutionRow {
            id: IdentifierLink::execution(summary.id.as_str()),
            look: StatusBadge::of(row.status.as_str()),
            name: summary.name.clone(),
            remark: row.remark().map(str::to_owned),
            deviations: row.deviation_marks(),
            plan_href: format!("/plans/{}@{}", encoded(summary.plan.as_str()), row.revision),
            revision: row.revision,
            completed: row.completed.unwrap_or(row.settled),
            total: row.total,
            questions: row.questions,
            opened: TimeLabel::of(row.opened_at, now),
            took: took.unwrap_or_else(|| "–".to_owned()),
            driver: if row.driver == Driver::Agent { "agent" } else { "Rutter" },
            has_ended,
        }
    }

    pub fn progress(&self) -> String {
        format!("{} of {} steps", self.completed, self.total)
    }
}
