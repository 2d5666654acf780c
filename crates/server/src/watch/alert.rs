//! What somebody is, or was, told: one alert per rule and subject, from when it begins until it is over.

use super::matter::Concern;
use super::moment::Moment;
use super::plans::PlanOf;
use super::rule::Severity;
use rutter_core::hash::Hash;
use rutter_core::port;
use rutter_core::port::register::Note;
use rutter_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    pub id: String,
    pub rule: String,
    pub kind: Concern,
    pub severity: Severity,
    /// An execution, a part of one, a tool, a server, a webhook, the disk or the ledger.
    pub subject: String,
    /// What is the matter, in words. Some of them may be a tool's.
    pub text: String,
    pub state: AlertState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanOf>,
    /// Since when it is so.
    pub since: Moment,
    pub fired_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_because: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledgement>,
    /// The silence under which nobody is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silenced_by: Option<String>,
    /// How often somebody was told.
    pub notices: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_notice_at: Option<Moment>,
    /// Commands that are still to be started for the last notice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_ring: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    Firing,
    Resolved,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acknowledgement {
    pub by: String,
    pub at: Moment,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Alert {
    /// Sorts by when it began; the same again for the same rule, subject and beginning.
    pub(super) fn id(rule: &str, subject: &str, began: Timestamp) -> String {
        let hash = Hash::of_fields("rutter/alert/v1", &[rule.as_bytes(), subject.as_bytes()]).short();
        format!("al_{:012x}{hash}", began.0.max(0))
    }

    pub fn is_firing(&self) -> bool {
        self.state == AlertState::Firing
    }

    pub(super) fn read(note: &Note) -> Result<Alert, port::Error> {
        let alert: Result<Alert, _> = serde_json::from_value((*note.value).clone());
        alert.map_err(|error| port::Error::Corrupt(format!("alert {}: {error}", note.id)))
    }

    pub(super) fn value(&self) -> Value {
        serde_json::to_value(self).expect("an alert has only text keys and whole numbers")
    }
}
