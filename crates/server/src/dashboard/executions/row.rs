//! One execution as a line of a list.

use crate::dashboard::format::{Id, Look, Moment, encoded};
use crate::words::span;
use rutter_core::plan::Driver;
use rutter_core::port::query::ExecutionSummary;
use rutter_core::time::Timestamp;

#[derive(Clone, Debug)]
pub struct Row {
    pub id: Id,
    pub look: Look,
    pub name: String,
    pub plan_href: String,
    pub revision: u32,
    pub settled: u32,
    pub total: u32,
    pub questions: u32,
    pub opened: Moment,
    /// How long it took, or takes so far.
    pub took: String,
    pub driver: &'static str,
    pub has_ended: bool,
}

impl Row {
    pub fn of(summary: &ExecutionSummary, now: Timestamp) -> Row {
        let row = &summary.row;
        let has_ended = row.status.has_ended();
        let until = if has_ended { row.last_at } else { now };
        let took = row.started_at.map(|started| span(until.since(started)));
        Row {
            id: Id::execution(summary.id.as_str()),
            look: Look::of(row.status.as_str()),
            name: summary.name.clone(),
            plan_href: format!("/plans/{}@{}", encoded(summary.plan.as_str()), row.revision),
            revision: row.revision,
            settled: row.settled,
            total: row.total,
            questions: row.questions,
            opened: Moment::of(row.opened_at, now),
            took: took.unwrap_or_else(|| "–".to_owned()),
            driver: if row.driver == Driver::Agent { "agent" } else { "Rutter" },
            has_ended,
        }
    }

    pub fn progress(&self) -> String {
        format!("{} of {} steps", self.settled, self.total)
    }
}
