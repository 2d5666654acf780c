//! Alert rules: the built-in ones, and those operators add.

use super::condition::{ActiveCondition, AlertKind};
use super::webhook::{check_length, check_names, invalid};
use crate::Error;
use rutter_core::port;
use rutter_core::port::register::RegisterItem;
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// A year; a rule that waits longer would never fire.
const AFTER_SECONDS_MAX: u64 = 366 * 24 * 3_600;
const DESCRIPTION_CHARS_MAX: usize = 300;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertRule {
    pub id: String,
    /// Comes with Rutter: it can be changed and disabled, and removing it restores its defaults.
    pub built_in: bool,
    pub description: String,
    pub condition: RuleCondition,
    pub severity: AlertSeverity,
    pub enabled: bool,
    /// Only executions of these plans, by id or name; empty means all.
    pub plans: Vec<String>,
    /// Ids of webhooks to notify; without it, all that subscribe to alerts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Vec<String>>,
    /// Names of commands in rutter.toml to run.
    pub commands: Vec<String>,
    /// Counts changes; 0 for an unchanged built-in rule.
    #[serde(default)]
    pub version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertSeverity {
    Info,
    Warning,
    Critical,
}

impl AlertSeverity {
    pub fn as_str(self) -> &'static str {
        match self {
            AlertSeverity::Info => "info",
            AlertSeverity::Warning => "warning",
            AlertSeverity::Critical => "critical",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RuleCondition {
    /// An execution failed.
    ExecutionFailed {},
    /// An execution ended without some of its steps.
    ExecutionPartial {},
    /// An execution was undone.
    ExecutionCompensated {},
    /// Nothing was recorded for this long although the server or an agent should make progress.
    ExecutionStuck {
        after_seconds: u64,
    },
    /// A question has been unanswered for this long.
    WaitingForPerson {
        after_seconds: u64,
    },
    /// It has been unknown for this long whether a call took effect.
    InDoubt {
        after_seconds: u64,
    },
    /// A compensation failed.
    CompensationFailed {},
    /// A call took effect twice, or after it was settled otherwise; so did a compensation.
    SecondEffect {},
    /// The circuit breaker of a server is open after repeated failures.
    BreakerOpen {},
    /// A tool changed since a plan was checked with it.
    ToolChanged {},
    /// An execution reached a limit of time, calls, cost or entries.
    Budget {},
    /// An agent that drives has given no sign of life for longer than its plan allows.
    AgentSilent {},
    /// Time stands still for an execution until a person has looked.
    ExecutionHeld {},
    /// Verification of the ledger failed.
    VerifyFailed {},
    DiskLow {
        below_bytes: u64,
    },
    /// This many deliveries to a webhook failed permanently.
    DeadLetters {
        at_least: u64,
    },
    /// More conditions want an alert than may fire at the same time.
    TooManyAlerts {},
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAlertRule {
    #[serde(default)]
    pub description: String,
    pub condition: RuleCondition,
    pub severity: AlertSeverity,
    #[serde(default)]
    pub plans: Vec<String>,
    pub webhooks: Option<Vec<String>>,
    #[serde(default)]
    pub commands: Vec<String>,
}

/// Fields that are absent stay as they are.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertRuleChange {
    pub description: Option<String>,
    /// Of the same kind as before.
    pub condition: Option<RuleCondition>,
    pub severity: Option<AlertSeverity>,
    pub enabled: Option<bool>,
    pub plans: Option<Vec<String>>,
    /// Null for all that subscribe to alerts.
    #[serde(default, deserialize_with = "even_null")]
    #[schemars(with = "Option<Vec<String>>")]
    pub webhooks: Option<Option<Vec<String>>>,
    pub commands: Option<Vec<String>>,
}

/// Distinguishes null from absent.
fn even_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl RuleCondition {
    pub fn concern(&self) -> AlertKind {
        match self {
            RuleCondition::ExecutionFailed {} => AlertKind::ExecutionFailed,
            RuleCondition::ExecutionPartial {} => AlertKind::ExecutionPartial,
            RuleCondition::ExecutionCompensated {} => AlertKind::ExecutionCompensated,
            RuleCondition::ExecutionStuck { .. } => AlertKind::ExecutionStuck,
            RuleCondition::WaitingForPerson { .. } => AlertKind::WaitingForPerson,
            RuleCondition::InDoubt { .. } => AlertKind::InDoubt,
            RuleCondition::CompensationFailed {} => AlertKind::CompensationFailed,
            RuleCondition::SecondEffect {} => AlertKind::SecondEffect,
            RuleCondition::BreakerOpen {} => AlertKind::BreakerOpen,
            RuleCondition::ToolChanged {} => AlertKind::ToolChanged,
            RuleCondition::Budget {} => AlertKind::Budget,
            RuleCondition::AgentSilent {} => AlertKind::AgentSilent,
            RuleCondition::ExecutionHeld {} => AlertKind::ExecutionHeld,
            RuleCondition::VerifyFailed {} => AlertKind::VerifyFailed,
            RuleCondition::DiskLow { .. } => AlertKind::DiskLow,
            RuleCondition::DeadLetters { .. } => AlertKind::DeadLetters,
            RuleCondition::TooManyAlerts {} => AlertKind::TooManyAlerts,
        }
    }

    fn holds(&self, condition: &ActiveCondition, now: Timestamp) -> bool {
        match *self {
            RuleCondition::ExecutionStuck { after_seconds }
            | RuleCondition::WaitingForPerson { after_seconds }
            | RuleCondition::InDoubt { after_seconds } => {
                now.since(condition.since.0) >= Millis(after_seconds.saturating_mul(1_000))
            }
            RuleCondition::DiskLow { below_bytes } => condition.measure < below_bytes,
            RuleCondition::DeadLetters { at_least } => condition.measure >= at_least,
            RuleCondition::ExecutionFailed {}
            | RuleCondition::ExecutionPartial {}
            | RuleCondition::ExecutionCompensated {}
            | RuleCondition::CompensationFailed {}
            | RuleCondition::SecondEffect {}
            | RuleCondition::BreakerOpen {}
            | RuleCondition::ToolChanged {}
            | RuleCondition::Budget {}
            | RuleCondition::AgentSilent {}
            | RuleCondition::ExecutionHeld {}
            | RuleCondition::VerifyFailed {}
            | RuleCondition::TooManyAlerts {} => true,
        }
    }
}

impl AlertRule {
    /// Whether the rule raises an alert for the condition now.
    pub fn applies(&self, condition: &ActiveCondition, now: Timestamp) -> bool {
        self.concerns(condition) && self.condition.holds(condition, now)
    }

    /// Whether the rule raises an alert for the condition, now or once it has lasted long enough.
    pub fn concerns(&self, condition: &ActiveCondition) -> bool {
        let of_plan = || condition.plan.as_ref().is_some_and(|plan| plan.is_among(&self.plans));
        self.enabled && self.condition.concern() == condition.concern && (self.plans.is_empty() || of_plan())
    }

    pub fn check(&self, commands: &[String]) -> Result<(), Error> {
        check_length("a description", &self.description, DESCRIPTION_CHARS_MAX)?;
        check_names("plans of a rule", &self.plans)?;
        check_names("webhooks of a rule", self.webhooks.as_deref().unwrap_or_default())?;
        check_names("commands of a rule", &self.commands)?;
        if let Some(unknown) = self.commands.iter().find(|name| !commands.contains(name)) {
            return Err(invalid(format!(
                "there is no command {unknown:?}; the operator names commands in rutter.toml under \
                 [alerts.commands.NAME]"
            )));
        }
        match self.condition {
            RuleCondition::ExecutionStuck { after_seconds }
            | RuleCondition::WaitingForPerson { after_seconds }
            | RuleCondition::InDoubt { after_seconds }
                if after_seconds > AFTER_SECONDS_MAX =>
            {
                Err(invalid(format!("expected `after_seconds` of at most {AFTER_SECONDS_MAX}")))
            }
            RuleCondition::DeadLetters { at_least: 0 } => Err(invalid("expected `at_least` of 1 or more")),
            _ => Ok(()),
        }
    }

    pub fn read(note: &RegisterItem) -> Result<AlertRule, port::Error> {
        let rule: Result<AlertRule, _> = serde_json::from_value((*note.value).clone());
        let rule = rule.map_err(|error| port::Error::Corrupt(format!("rule {}: {error}", note.id)))?;
        Ok(AlertRule { version: note.version, ..rule })
    }

    pub fn value(&self) -> Value {
        serde_json::to_value(self).expect("a rule has only text keys and whole numbers")
    }
}

/// The built-in rules with their defaults.
pub fn built_in() -> Vec<AlertRule> {
    let rule = |id: &str, severity, condition, description: &str| AlertRule {
        id: id.to_owned(),
        built_in: true,
        description: description.to_owned(),
        condition,
        severity,
        enabled: true,
        plans: Vec::new(),
        webhooks: None,
        commands: Vec::new(),
        version: 0,
    };
    use AlertSeverity::{Critical, Info, Warning};
    vec![
        rule("execution_failed", Warning, RuleCondition::ExecutionFailed {}, "an execution failed"),
        rule(
            "execution_partial",
            Warning,
            RuleCondition::ExecutionPartial {},
            "an execution ended without some of its steps",
        ),
        rule("execution_compensated", Info, RuleCondition::ExecutionCompensated {}, "an execution was undone"),
        rule(
            "execution_stuck",
            Warning,
            RuleCondition::ExecutionStuck { after_seconds: 15 * 60 },
            "an execution makes no progress",
        ),
        rule(
            "waiting_for_person",
            Info,
            RuleCondition::WaitingForPerson { after_seconds: 5 * 60 },
            "a question is unanswered",
        ),
        rule(
            "in_doubt",
            Critical,
            RuleCondition::InDoubt { after_seconds: 30 },
            "it is unknown whether a call took effect",
        ),
        rule("compensation_failed", Critical, RuleCondition::CompensationFailed {}, "a compensation failed"),
        rule(
            "second_effect",
            Critical,
            RuleCondition::SecondEffect {},
            "a call took effect twice, or after it was settled otherwise",
        ),
        rule("breaker_open", Warning, RuleCondition::BreakerOpen {}, "the circuit breaker of a server is open"),
        rule("tool_changed", Warning, RuleCondition::ToolChanged {}, "a tool changed since a plan was checked with it"),
        rule("budget", Warning, RuleCondition::Budget {}, "an execution reached a limit"),
        rule("agent_silent", Warning, RuleCondition::AgentSilent {}, "the agent of an execution is silent"),
        rule(
            "execution_held",
            Warning,
            RuleCondition::ExecutionHeld {},
            "an execution is held until a person resumes it",
        ),
        rule("verify_failed", Critical, RuleCondition::VerifyFailed {}, "verification of the ledger failed"),
        rule("disk_low", Warning, RuleCondition::DiskLow { below_bytes: GIB }, "the disk is filling up"),
        rule("disk_full", Critical, RuleCondition::DiskLow { below_bytes: 128 * MIB }, "the disk is nearly full"),
        rule("dead_letters", Warning, RuleCondition::DeadLetters { at_least: 1 }, "deliveries failed permanently"),
        rule(
            "too_many_alerts",
            Critical,
            RuleCondition::TooManyAlerts {},
            "more conditions want an alert than may fire at the same time",
        ),
    ]
}
