//! One alert as a line of a list.

use crate::dashboard::format::{Id, Look, Moment};
use crate::watch::alert::Alert;
use crate::watch::rule::Severity;
use rutter_core::time::Timestamp;

pub(super) struct Row {
    pub(super) id: String,
    pub(super) look: Look,
    pub(super) severity: Severity,
    pub(super) rule: String,
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) execution: Option<Id>,
    pub(super) plan: String,
    pub(super) since: Moment,
    pub(super) over: Option<(Moment, String)>,
    /// Who sees to it.
    pub(super) acknowledged: Option<String>,
    pub(super) silenced: bool,
    pub(super) notices: u32,
}

impl Row {
    pub(super) fn of(alert: &Alert, now: Timestamp) -> Row {
        let acknowledged = alert.acknowledged.as_ref().map(|seen| match seen.note.as_str() {
            "" => seen.by.clone(),
            note => format!("{}: {note}", seen.by),
        });
        let over = alert
            .resolved_at
            .map(|at| (Moment::of(at.0, now), alert.resolved_because.clone().unwrap_or_default()));
        Row {
            id: alert.id.clone(),
            look: look(alert.severity),
            severity: alert.severity,
            rule: alert.rule.clone(),
            subject: alert.subject.clone(),
            text: alert.text.clone(),
            execution: alert.execution.as_deref().map(Id::execution),
            plan: alert.plan.as_ref().map(|plan| plan.name.clone()).unwrap_or_default(),
            since: Moment::of(alert.since.0, now),
            over,
            acknowledged,
            silenced: alert.silenced_by.is_some(),
            notices: alert.notices,
        }
    }
}

pub(super) fn look(severity: Severity) -> Look {
    match severity {
        Severity::Critical => Look::like("failed", "critical"),
        Severity::Warning => Look::like("partial", "warning"),
        Severity::Info => Look::like("running", "info"),
    }
}
