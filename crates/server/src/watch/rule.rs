//! When somebody is to be told: the rules that come with Rutter, and those operators add.

use super::matter::{Concern, Matter};
use super::webhook::{check_length, check_names, invalid};
use crate::fault::Fault;
use rutter_core::port;
use rutter_core::port::register::Note;
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// A year; who wants to wait longer wants to be told never.
const AFTER_SECONDS_MAX: u64 = 366 * 24 * 3_600;
const DESCRIPTION_CHARS_MAX: usize = 300;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    pub id: String,
    /// Comes with Rutter: it can be changed and switched off, and removing it restores it.
    pub built_in: bool,
    pub description: String,
    pub condition: Condition,
    pub severity: Severity,
    pub enabled: bool,
    /// Only executions of these plans, by id or name; empty means all.
    pub plans: Vec<String>,
    /// Ids of webhooks that are told; without it all that want alerts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Vec<String>>,
    /// Names of commands of rutter.toml that are started.
    pub commands: Vec<String>,
    /// Counts changes; 0 for a rule that is as it came.
    #[serde(default)]
    pub version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    Warning,
    Critical,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Condition {
    /// An execution ended as failed.
    ExecutionFailed {},
    /// Nothing was recorded for so long although it should go on by itself, or an agent should carry it on.
    ExecutionStuck {
        after_seconds: u64,
    },
    /// Somebody was asked something and has not answered for so long.
    WaitingForPerson {
        after_seconds: u64,
    },
    /// For so long nobody knows whether a call took effect.
    InDoubt {
        after_seconds: u64,
    },
    /// Something could not be undone.
    CompensationFailed {},
    /// A server failed so often that it is left alone for a while.
    BreakerOpen {},
    /// A tool is not the one a plan was checked with.
    ToolChanged {},
    /// An execution reached a limit of time, calls, cost or entries.
    Budget {},
    /// The ledger is not what was written.
    VerifyFailed {},
    DiskLow {
        below_bytes: u64,
    },
    /// So many deliveries to a webhook were given up.
    DeadLetters {
        at_least: u64,
    },
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRule {
    #[serde(default)]
    pub description: String,
    pub condition: Condition,
    pub severity: Severity,
    #[serde(default)]
    pub plans: Vec<String>,
    pub webhooks: Option<Vec<String>>,
    #[serde(default)]
    pub commands: Vec<String>,
}

/// What is not said stays as it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleChange {
    pub description: Option<String>,
    /// Of the same kind as before.
    pub condition: Option<Condition>,
    pub severity: Option<Severity>,
    pub enabled: Option<bool>,
    pub plans: Option<Vec<String>>,
    /// Null for all that want alerts.
    #[serde(default, deserialize_with = "even_null")]
    #[schemars(with = "Option<Vec<String>>")]
    pub webhooks: Option<Option<Vec<String>>>,
    pub commands: Option<Vec<String>>,
}

/// Tells null from nothing.
fn even_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl Condition {
    pub(super) fn concern(&self) -> Concern {
        match self {
            Condition::ExecutionFailed {} => Concern::ExecutionFailed,
            Condition::ExecutionStuck { .. } => Concern::ExecutionStuck,
            Condition::WaitingForPerson { .. } => Concern::WaitingForPerson,
            Condition::InDoubt { .. } => Concern::InDoubt,
            Condition::CompensationFailed {} => Concern::CompensationFailed,
            Condition::BreakerOpen {} => Concern::BreakerOpen,
            Condition::ToolChanged {} => Concern::ToolChanged,
            Condition::Budget {} => Concern::Budget,
            Condition::VerifyFailed {} => Concern::VerifyFailed,
            Condition::DiskLow { .. } => Concern::DiskLow,
            Condition::DeadLetters { .. } => Concern::DeadLetters,
        }
    }

    fn holds(&self, matter: &Matter, now: Timestamp) -> bool {
        match *self {
            Condition::ExecutionStuck { after_seconds }
            | Condition::WaitingForPerson { after_seconds }
            | Condition::InDoubt { after_seconds } => {
                now.since(matter.since.0) >= Millis(after_seconds.saturating_mul(1_000))
            }
            Condition::DiskLow { below_bytes } => matter.measure < below_bytes,
            Condition::DeadLetters { at_least } => matter.measure >= at_least,
            Condition::ExecutionFailed {}
            | Condition::CompensationFailed {}
            | Condition::BreakerOpen {}
            | Condition::ToolChanged {}
            | Condition::Budget {}
            | Condition::VerifyFailed {} => true,
        }
    }
}

impl Rule {
    /// Whether somebody is to be told of it now.
    pub(super) fn applies(&self, matter: &Matter, now: Timestamp) -> bool {
        let of_plan = || matter.plan.as_ref().is_some_and(|plan| plan.is_among(&self.plans));
        self.enabled
            && self.condition.concern() == matter.concern
            && (self.plans.is_empty() || of_plan())
            && self.condition.holds(matter, now)
    }

    pub(super) fn check(&self, commands: &[String]) -> Result<(), Fault> {
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
            Condition::ExecutionStuck { after_seconds }
            | Condition::WaitingForPerson { after_seconds }
            | Condition::InDoubt { after_seconds }
                if after_seconds > AFTER_SECONDS_MAX =>
            {
                Err(invalid(format!("expected `after_seconds` of at most {AFTER_SECONDS_MAX}")))
            }
            Condition::DeadLetters { at_least: 0 } => Err(invalid("expected `at_least` of 1 or more")),
            _ => Ok(()),
        }
    }

    pub(super) fn read(note: &Note) -> Result<Rule, port::Error> {
        let rule: Result<Rule, _> = serde_json::from_value((*note.value).clone());
        let rule = rule.map_err(|error| port::Error::Corrupt(format!("rule {}: {error}", note.id)))?;
        Ok(Rule { version: note.version, ..rule })
    }

    pub(super) fn value(&self) -> Value {
        serde_json::to_value(self).expect("a rule has only text keys and whole numbers")
    }
}

/// The rules that come with Rutter, as they come.
pub fn built_in() -> Vec<Rule> {
    let rule = |id: &str, severity, condition, description: &str| Rule {
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
    use Severity::{Critical, Info, Warning};
    vec![
        rule("execution_failed", Warning, Condition::ExecutionFailed {}, "an execution failed"),
        rule(
            "execution_stuck",
            Warning,
            Condition::ExecutionStuck { after_seconds: 15 * 60 },
            "nothing happens in an execution that should go on",
        ),
        rule(
            "waiting_for_person",
            Info,
            Condition::WaitingForPerson { after_seconds: 5 * 60 },
            "somebody was asked and has not answered",
        ),
        rule(
            "in_doubt",
            Critical,
            Condition::InDoubt { after_seconds: 30 },
            "nobody knows whether a call took effect",
        ),
        rule("compensation_failed", Critical, Condition::CompensationFailed {}, "something was not undone"),
        rule(
            "breaker_open",
            Warning,
            Condition::BreakerOpen {},
            "a server is left alone after many failures",
        ),
        rule("tool_changed", Warning, Condition::ToolChanged {}, "a tool is not the one a plan relies on"),
        rule("budget", Warning, Condition::Budget {}, "an execution reached a limit"),
        rule("verify_failed", Critical, Condition::VerifyFailed {}, "the ledger is not what was written"),
        rule("disk_low", Warning, Condition::DiskLow { below_bytes: GIB }, "the disk is filling up"),
        rule("disk_full", Critical, Condition::DiskLow { below_bytes: 128 * MIB }, "the disk is nearly full"),
        rule("dead_letters", Warning, Condition::DeadLetters { at_least: 1 }, "deliveries were given up"),
    ]
}
