//! Rules: when somebody is told. Those that come with Rutter can be changed and switched off, others can be added.

use super::webhook::words;
use crate::auth::{Scope, require};
use crate::dashboard::format::Look;
use crate::dashboard::page::{self, Answer, Posted};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::watch::rule::{Condition, NewRule, Rule, RuleChange, Severity};
use axum::extract::{Path, State};
use serde_json::json;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

pub(super) struct Row {
    pub(super) id: String,
    pub(super) href: String,
    pub(super) look: Look,
    pub(super) severity: &'static str,
    pub(super) enabled: bool,
    pub(super) description: String,
    pub(super) kind: &'static str,
    /// What can be set beside the kind: its name in words, its value, and how small it may be.
    pub(super) threshold: Option<(&'static str, u64, u64)>,
    /// The same in words.
    pub(super) told: String,
    pub(super) plans: String,
    pub(super) webhooks: Option<String>,
    pub(super) commands: String,
    pub(super) built_in: bool,
    /// It came with Rutter, and somebody changed it.
    pub(super) is_changed: bool,
    pub(super) version: u64,
}

impl Row {
    pub(super) fn of(rule: &Rule) -> Row {
        let (kind, threshold) = condition(&rule.condition);
        Row {
            id: rule.id.clone(),
            href: format!("/alerts/rules/{}", crate::dashboard::format::encoded(&rule.id)),
            look: super::row::look(rule.severity),
            severity: rule.severity.as_str(),
            enabled: rule.enabled,
            description: rule.description.clone(),
            kind,
            told: match threshold {
                Some(("after seconds", seconds, _)) => format!("for {seconds} s"),
                Some(("below MiB", size, _)) => format!("below {size} MiB"),
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

/// Every kind of condition, by its name and in words.
pub(super) fn kinds() -> Vec<(&'static str, &'static str)> {
    vec![
        ("execution_failed", "an execution failed"),
        ("execution_stuck", "nothing happens in an execution, after seconds"),
        ("waiting_for_person", "somebody was asked and has not answered, after seconds"),
        ("in_doubt", "nobody knows whether a call took effect, after seconds"),
        ("compensation_failed", "something could not be undone"),
        ("breaker_open", "a server is left alone after many failures"),
        ("tool_changed", "a tool is not the one a plan relies on"),
        ("budget", "an execution reached a limit"),
        ("verify_failed", "the ledger is not what was written"),
        ("disk_low", "little room on the disk, below MiB"),
        ("dead_letters", "deliveries were given up, at least"),
    ]
}

fn condition(condition: &Condition) -> (&'static str, Option<(&'static str, u64, u64)>) {
    match *condition {
        Condition::ExecutionFailed {} => ("execution_failed", None),
        Condition::ExecutionStuck { after_seconds } => {
            ("execution_stuck", Some(("after seconds", after_seconds, 0)))
        }
        Condition::WaitingForPerson { after_seconds } => {
            ("waiting_for_person", Some(("after seconds", after_seconds, 0)))
        }
        Condition::InDoubt { after_seconds } => ("in_doubt", Some(("after seconds", after_seconds, 0))),
        Condition::CompensationFailed {} => ("compensation_failed", None),
        Condition::BreakerOpen {} => ("breaker_open", None),
        Condition::ToolChanged {} => ("tool_changed", None),
        Condition::Budget {} => ("budget", None),
        Condition::VerifyFailed {} => ("verify_failed", None),
        Condition::DiskLow { below_bytes } => ("disk_low", Some(("below MiB", below_bytes / MIB, 0))),
        Condition::DeadLetters { at_least } => ("dead_letters", Some(("at least", at_least, 1))),
    }
}

/// What the form says; a kind that needs a threshold gets it.
fn said(posted: &Posted, kind: &str) -> Result<Condition, Fault> {
    let wrong = |message: &str| Fault::new("server.arguments", message);
    let threshold = posted.said("threshold").map(|text| text.trim().parse::<u64>());
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
    serde_json::from_value(value).map_err(|_| wrong("there is no such kind of rule"))
}

fn severity(posted: &Posted) -> Result<Severity, Fault> {
    let known = [Severity::Info, Severity::Warning, Severity::Critical];
    let said = posted.said("severity").unwrap_or_default();
    let found = known.into_iter().find(|severity| severity.as_str() == said);
    found.ok_or_else(|| Fault::new("server.arguments", "the severity is info, warning or critical"))
}

/// Nothing named means all that want alerts.
fn webhooks(posted: &Posted) -> Option<Vec<String>> {
    Some(words(posted, "webhooks")).filter(|webhooks| !webhooks.is_empty())
}

pub(in crate::dashboard) async fn create(State(desk): State<Arc<Desk>>, posted: Posted) -> Answer {
    let guest = &posted.visitor.guest;
    require(guest, Scope::Admin)?;
    let new = NewRule {
        description: posted.said("description").unwrap_or_default().to_owned(),
        condition: said(&posted, posted.said("kind").unwrap_or_default())?,
        severity: severity(&posted)?,
        plans: words(&posted, "plans"),
        webhooks: webhooks(&posted),
        commands: words(&posted, "commands"),
    };
    desk.watch.create_rule(&guest.tenant, &guest.actor(), new).await?;
    Ok(page::go("/alerts#rules", "saved"))
}

pub(in crate::dashboard) async fn change(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    let guest = &posted.visitor.guest;
    require(guest, Scope::Admin)?;
    let (tenant, actor) = (&guest.tenant, guest.actor());
    let version = posted.said("version").and_then(|version| version.parse().ok());
    let change = match posted.said("act") {
        Some("save") => RuleChange {
            description: Some(posted.said("description").unwrap_or_default().to_owned()),
            condition: Some(said(&posted, posted.said("kind").unwrap_or_default())?),
            severity: Some(severity(&posted)?),
            plans: Some(words(&posted, "plans")),
            webhooks: Some(webhooks(&posted)),
            commands: Some(words(&posted, "commands")),
            enabled: None,
        },
        Some(act @ ("on" | "off")) => RuleChange { enabled: Some(act == "on"), ..RuleChange::default() },
        Some("remove") => {
            desk.watch.delete_rule(tenant, &actor, &id).await?;
            return Ok(page::go("/alerts#rules", "removed"));
        }
        _ => return Err(Fault::new("server.arguments", "the form does not say what to do").into()),
    };
    desk.watch.update_rule(tenant, &actor, &id, change, version).await?;
    Ok(page::go("/alerts#rules", "saved"))
}
