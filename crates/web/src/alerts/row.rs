//! One alert as a row of a list.

use crate::format::{IdentifierLink, StatusBadge, TimeLabel};
use rutter_core::time::Timestamp;
use rutter_observe::watch::alert::AlertRecord;
use rutter_observe::watch::rule::AlertSeverity;

pub(super) struct AlertRow {
    pub(super) id: String,
    pub(super) look: StatusBadge,
    pub(super) severity: AlertSeverity,
    pub(super) rule: String,
    pub(super) subject: String,
    pub(super) text: String,
    /// The state of its execution in one line.
    pub(super) execution_summary: Option<String>,
    pub(super) execution: Option<IdentifierLink>,
    pub(super) plan: String,
    pub(super) since: TimeLabel,
    pub(super) over: Option<(TimeLabel, String)>,
    /// Who acknowledged it.
    pub(super) acknowledged: Option<String>,
    pub(super) silenced: bool,
    pub(super) notices: u32,
}

impl AlertRow {
    pub(super) fn of(alert: &AlertRecord, now: Timestamp) -> AlertRow {
        let acknowledged = alert.acknowledged.as_ref().map(|seen| match seen.note.as_str() {
            "" => seen.by.clone(),
            note => format!("{}: {note}", seen.by),
        });
        let over =
            alert.resolved_at.map(|at| (TimeLabel::of(at.0, now), alert.resolved_because.clone().unwrap_or_default()));
        AlertRow {
            id: alert.id.clone(),
            look: look(alert.severity),
            severity: alert.severity,
            rule: alert.rule.clone(),
            subject: alert.subject.clone(),
            text: alert.text.clone(),
            execution_summary: alert.execution_state.as_ref().map(|state| state.summary.clone()),
            execution: alert.execution.as_deref().map(IdentifierLink::execution),
            plan: alert.plan.as_ref().map(|plan| plan.name.clone()).unwrap_or_default(),
            since: TimeLabel::of(alert.since.0, now),
            over,
            acknowledged,
            silenced: alert.silenced_by.is_some(),
            notices: alert.notices,
        }
    }
}

pub(super) fn look(severity: AlertSeverity) -> StatusBadge {
    match severity {
        AlertSeverity::Critical => StatusBadge::like("failed", "critical"),
        AlertSeverity::Warning => StatusBadge::like("partial", "warning"),
        AlertSeverity::Info => StatusBadge::like("running", "info"),
    }
}
