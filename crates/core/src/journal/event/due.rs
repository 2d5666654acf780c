//! Timers that came due before a hold.

use crate::id::PartId;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A timer that came due before a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverdueTimer {
    pub what: DueKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartId>,
    pub at: Timestamp,
}

impl OverdueTimer {
    /// Whether people mean this timer by the name: its step or item, or `deadline`, `time` or `agent` of the execution.
    pub fn is_named(&self, name: &str) -> bool {
        match &self.part {
            Some(part) => part.step.as_str() == name || part.to_string() == name,
            None => self.name() == name,
        }
    }

    /// The name by which it is meant.
    pub fn name(&self) -> String {
        match (&self.part, self.what) {
            (Some(part), _) => part.to_string(),
            (None, DueKind::Time) => "time".to_owned(),
            (None, DueKind::Agent) => "agent".to_owned(),
            (None, _) => "deadline".to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DueKind {
    /// The deadline of an attempt.
    Attempt,
    /// The deadline of all attempts of a step together.
    Step,
    Approval,
    Retry,
    /// The next attempt of a compensation.
    Compensation,
    /// The next attempt of a probe.
    Probe,
    /// The deadline of the execution.
    Deadline,
    /// The time budget of the execution.
    Time,
    /// The lease of the agent that drives.
    Agent,
}

impl DueKind {
    /// What came due, for people.
    pub fn words(self) -> &'static str {
        match self {
            DueKind::Attempt => "the deadline of an attempt",
            DueKind::Step => "the total timeout",
            DueKind::Approval => "the approval",
            DueKind::Retry => "a retry",
            DueKind::Compensation => "a retry of the compensation",
            DueKind::Probe => "a probe",
            DueKind::Deadline => "the deadline of the execution",
            DueKind::Time => "the time budget of the execution",
            DueKind::Agent => "the lease of the agent",
        }
    }
}
