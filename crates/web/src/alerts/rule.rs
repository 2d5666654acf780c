//! Alert rules: built-in ones can be changed and disabled, others can be added.

use super::webhook::words;
use crate::format::StatusBadge;
use crate::page::{self, FormRequest, PageResult};
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_observe::watch::rule::{AlertRule, AlertRuleChange, AlertSeverity, NewAlertRule, RuleCondition};
use serde_json::json;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

pub(super) struct AlertRuleRow {
    pub(super) id: String,
    pub(super) href: String,
    pub(super) look: StatusBadge,
    pub(super) severity: &'static str,
    pub(super) enabled: bool,
    pub(super) description: String,
    pub(super) kind: &'static str,
    /// The threshold of the kind: its label, its value, and its minimum.
    pub(super) threshold: Option<(&'static str, u64, u64)>,
    /// The threshold as text.
    pub(super) notice_condition: String,
    pub(super) plans: String,
    pub(super) webhooks: Option<String>,
    pub(super) commands: String,
    pub(super) built_in: bool,
    /// It is built in and was changed.
    pub(super) is_changed: bool,
    pub(super) version: u64,
}

impl AlertRuleRow {
    pub(super) fn of(rule: &AlertRule) -> AlertRuleRow {
        let (kind, threshold) = condition(&rule.condition);
        AlertRuleRow {
            id: rule.id.clone(),
            href: format!("/alerts/rules/{}", crate::format::encoded(&rule.id)),
            look: super::row::look(rule.severity),
            severity: rule.severity.as_str(),
            enabled: rule.enabled,
            description: rule.description.clone(),
            kind,
            notice_condition: match threshold {
                Some(("after (seconds)", seconds, _)) => format!("for {seconds} s"),
                Some(("below (MiB)", size, _)) => format!("below {size} MiB"),
                Some((what, count, _)) => format!("{what} {count}"),
                None => String::new(),
            },
            threshold,
            plans: rule.plans.join(", "),
            webhooks: rule.webhooks.as_ref().map(|webhooks| webhooks.join(", ")),
            commands: rule.commands.join(", "),
            built_in: rule.built_in,
            is_changed: rule.built_in && rule.version > 0,
            version: rule.version,
        }
    }
}

/// Every kind of condition: its name and a description.
pub(super) fn kinds() -> Vec<(&'static str, &'static str)> {
    vec![
        ("execution_failed", "an execution failed"),
        ("execution_partial", "an execution ended without some of its steps"),
        ("execution_compensated", "an execution was undone"),
        ("execution_stuck", "an execution makes no progress (threshold: seconds)"),
        ("waiting_for_person", "a question is unanswered (threshold: seconds)"),
        ("in_doubt", "it is unknown whether a call took effect (threshold: seconds)"),
        ("compensation_failed", "a compensation failed"),
        ("second_effect", "a call took effect twice, or after it was settled otherwise"),
        ("breaker_open", "the circuit breaker of a server is open"),
        ("tool_changed", "a tool changed since a plan was checked with it"),
        ("budget", "an execution reached a limit"),
        ("agent_silent", "the agent of an execution is silent"),
        ("execution_held", "an execution is held until a person resumes it"),
        ("verify_failed", "verification of the ledger failed"),
        ("disk_low", "free disk space is low (threshold: MiB)"),
        ("dead_letters", "deliveries failed permanently (threshold: count)"),
        ("too_many_alerts", "more conditions want an alert than may fire at the same time"),
    ]
}

fn condition(condition: &RuleCondition) -> (&'static str, Option<(&'static str, u64, u64)>) {
    match *condition {
        RuleCondition::ExecutionFailed {} => ("execution_failed", None),
        RuleCondition::ExecutionPartial {} => ("execution_partial", None),
        RuleCondition::ExecutionCompensated {} => ("execution_compensated", None),
        RuleCondition::ExecutionStuck { after_seconds } => {
            ("execution_stuck", Some(("after (seconds)", after_seconds, 0)))
        }
        RuleCondition::WaitingForPerson { after_seconds } => {
            ("waiting_for_person", Some(("after (seconds)", after_seconds, 0)))
        }
        RuleCondition::InDoubt { after_seconds } => ("in_doubt", Some(("after (seconds)", after_seconds, 0))),
        RuleCondition::CompensationFailed {} => ("compensation_failed", None),
        RuleCondition::SecondEffect {} => ("second_effect", None),
        RuleCondition::BreakerOpen {} => ("breaker_open", None),
        RuleCondition::ToolChanged {} => ("tool_changed", None),
        RuleCondition::Budget {} => ("budget", None),
        RuleCondition::AgentSilent {} => ("agent_silent", None),
        RuleCondition::ExecutionHeld {} => ("execution_held", None),
        RuleCondition::VerifyFailed {} => ("verify_failed", None),
        RuleCondition::DiskLow { below_bytes } => ("disk_low", Some(("below (MiB)", below_bytes / MIB, 0))),
        RuleCondition::DeadLetters { at_least } => ("dead_letters", Some(("at least", at_least, 1))),
        RuleCondition::TooManyAlerts {} => ("too_many_alerts", None),
    }
}

/// The condition in the form, with its threshold if the kind needs one.
fn read_condition(form: &FormRequest, kind: &str) -> Result<RuleCondition, AppError> {
    let wrong = |message: &str| AppError::new("server.arguments", message);
    let threshold = form.value("threshold").map(|text| text.trim().parse::<u64>());
    let threshold = threshold.transpose().map_err(|_| wrong("the threshold must be a whole number"))?;
    let needed = || threshold.ok_or_else(|| wrong("this kind of rule needs a threshold"));
    let value = match kind {
        "execution_stuck" | "waiting_for_person" | "in_doubt" => {
            json!({ "kind": kind, "after_seconds": needed()? })
        }
        "disk_low" => json!({ "kind": kind, "below_bytes": needed()?.saturating_mul(MIB) }),
        "dead_letters" => json!({ "kind": kind, "at_least": needed()? }),
        kind => json!({ "kind": kind }),
    };
    serde_json::from_value(value).map_err(|_| wrong("unknown kind of rule"))
}

fn severity(form: &FormRequest) -> Result<AlertSeverity, AppError> {
    let known = [AlertSeverity::Info, AlertSeverity::Warning, AlertSeverity::Critical];
    let message = form.value("severity").unwrap_or_default();
    let found = known.into_iter().find(|severity| severity.as_str() == message);
    found.ok_or_else(|| AppError::new("server.arguments", "expected severity info, warning or critical"))
}

/// An empty list means all webhooks that subscribe to alerts.
fn webhooks(form: &FormRequest) -> Option<Vec<String>> {
    Some(words(form, "webhooks")).filter(|webhooks| !webhooks.is_empty())
}

pub(crate) async fn create(State(app): State<Arc<App>>, form: FormRequest) -> PageResult {
    let principal = &form.request.principal;
    app.require(principal, Operation::ChangeAlertRules)?;
    let new = NewAlertRule {
        description: form.value("description").unwrap_or_default().to_owned(),
        condition: read_condition(&form, form.value("kind").unwrap_or_default())?,
        severity: severity(&form)?,
        plans: words(&form, "plans"),
        webhooks: webhooks(&form),
        commands: words(&form, "commands"),
    };
    app.create_alert_rule(principal, new).await?;
    Ok(page::redirect_with_flash("/alerts#rules", "saved"))
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    form_request: FormRequest,
) -> PageResult {
    let principal = &form_request.request.principal;
    app.require(principal, Operation::ChangeAlertRules)?;
    let version = form_request.value("version").and_then(|version| version.parse().ok());
    let change = match form_request.value("act") {
        Some("save") => AlertRuleChange {
            description: Some(form_request.value("description").unwrap_or_default().to_owned()),
            condition: Some(read_condition(&form_request, form_request.value("kind").unwrap_or_default())?),
            severity: Some(severity(&form_request)?),
            plans: Some(words(&form_request, "plans")),
            webhooks: Some(webhooks(&form_request)),
            commands: Some(words(&form_request, "commands")),
            enabled: None,
        },
        Some(act @ ("on" | "off")) => AlertRuleChange { enabled: Some(act == "on"), ..AlertRuleChange::default() },
        Some("remove") => {
            app.delete_alert_rule(principal, &id).await?;
            return Ok(page::redirect_with_flash("/alerts#rules", "removed"));
        }
        _ => return Err(AppError::new("server.arguments", "the form has no action").into()),
    };
    app.change_alert_rule(principal, &id, change, version).await?;
    Ok(page::redirect_with_flash("/alerts#rules", "saved"))
}
