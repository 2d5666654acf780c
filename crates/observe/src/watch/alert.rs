//! An alert: one per rule and subject, from the time it fires until it is resolved.

use super::condition::AlertKind;
use super::execution_state::ExecutionState;
use super::plans::NamedPlan;
use super::rfc3339::Rfc3339Timestamp;
use super::rule::AlertSeverity;
use rutter_core::hash::Hash;
use rutter_core::port;
use rutter_core::port::register::RegisterItem;
use rutter_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertRecord {
    pub id: String,
    pub rule: String,
    pub kind: AlertKind,
    pub severity: AlertSeverity,
    /// An execution, a part of one, a tool, a server, a webhook, the disk or the ledger.
    pub subject: String,
    /// The condition as a sentence. Parts of it may come from a tool.
    pub text: String,
    pub state: AlertState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<NamedPlan>,
    /// The state of the execution when the last notice was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_state: Option<ExecutionState>,
    /// When the condition began.
    pub since: Rfc3339Timestamp,
    pub fired_at: Rfc3339Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Rfc3339Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_because: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledgement>,
    /// The silence that suppresses notices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silenced_by: Option<String>,
    /// How many notices were sent.
    pub notices: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_notice_at: Option<Rfc3339Timestamp>,
    /// Commands still to be run for the last notice.
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
    pub at: Rfc3339Timestamp,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl AlertRecord {
    /// The same, and its text says why the execution ended or what it waits for.
    pub fn with_cause(&self) -> AlertRecord {
        let cause = self.execution_state.as_ref().and_then(|state| state.cause.as_ref());
        match cause.filter(|cause| !self.text.contains(*cause)) {
            Some(cause) => AlertRecord { text: format!("{}: {cause}", self.text), ..self.clone() },
            None => self.clone(),
        }
    }

    /// Sorts by start time; the same rule, subject and start give the same id.
    pub fn id(rule: &str, subject: &str, began: Timestamp) -> String {
        let hash = Hash::of_fields("rutter/alert/v1", &[rule.as_bytes(), subject.as_bytes()]).short();
        format!("al_{:012x}{hash}", began.0.max(0))
    }

    pub fn is_firing(&self) -> bool {
        self.state == AlertState::Firing
    }

    pub fn read(note: &RegisterItem) -> Result<AlertRecord, port::Error> {
        let alert: Result<AlertRecord, _> = serde_json::from_value((*note.value).clone());
        alert.map_err(|error| port::Error::Corrupt(format!("alert {}: {error}", note.id)))
    }

    pub fn value(&self) -> Value {
        serde_json::to_value(self).expect("an alert has only text keys and whole numbers")
    }
}
