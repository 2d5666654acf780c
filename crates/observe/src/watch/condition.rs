//! Conditions that may need attention, derived from ledger entries. Rules decide which of them raise alerts.

mod effect;

pub use effect::{ConditionChange, effects};

use super::plans::NamedPlan;
use super::rfc3339::Rfc3339Timestamp;
use rutter_core::actor::Actor;
use rutter_core::execution::agent_lease::is_driving_agent;
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Active conditions held; the oldest failures are dropped first.
const CONDITIONS_MAX: usize = 1_000;
/// Executions listed in one condition.
const MEMBERS_MAX: usize = 100;
/// An execution that ended stays as it ended, so the condition expires after a day.
const END_LASTS: Millis = Millis::hours(24);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    ExecutionFailed,
    ExecutionPartial,
    ExecutionCompensated,
    ExecutionStuck,
    WaitingForPerson,
    InDoubt,
    CompensationFailed,
    SecondEffect,
    BreakerOpen,
    ToolChanged,
    Budget,
    AgentSilent,
    ExecutionHeld,
    VerifyFailed,
    DiskLow,
    DeadLetters,
}

impl AlertKind {
    /// The conditions of an execution that ended and did not complete.
    pub const ENDS: [AlertKind; 3] =
        [AlertKind::ExecutionFailed, AlertKind::ExecutionPartial, AlertKind::ExecutionCompensated];

    fn is_end(self) -> bool {
        AlertKind::ENDS.contains(&self)
    }
}

/// A condition that holds at present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActiveCondition {
    pub concern: AlertKind,
    /// The subject: an execution, a part of one, a tool, a server, a webhook, the disk, the ledger.
    pub subject: String,
    pub since: Rfc3339Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<NamedPlan>,
    pub text: String,
    /// Free bytes, or the number of deliveries that failed permanently.
    #[serde(default)]
    pub measure: u64,
    /// The executions concerned; the condition ends when the last one leaves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The agent that is silent, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Actor>,
}

/// All active conditions derived from the ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActiveConditions(Vec<ActiveCondition>);

impl ActiveConditions {
    pub fn iter(&self) -> impl Iterator<Item = &ActiveCondition> {
        self.0.iter()
    }

    /// Applies a change; true when anything changed.
    pub fn take(&mut self, effect: ConditionChange, plan: Option<&NamedPlan>) -> bool {
        match effect {
            ConditionChange::Raise(condition) => self.raise(ActiveCondition { plan: plan.cloned(), ..condition }),
            ConditionChange::Settle(concern, subject) => {
                self.remove(|active| active.concern == concern && active.subject == subject)
            }
            ConditionChange::Hear(execution, actor) => self.remove(|active| {
                let is_silence = active.concern == AlertKind::AgentSilent && active.subject == execution;
                is_silence && is_driving_agent(active.agent.as_ref(), &actor)
            }),
            ConditionChange::Leave(tool, execution) => self.leave(tool.as_deref(), &execution),
            ConditionChange::Forget(execution) => {
                let left = self.leave(None, &execution);
                self.remove(|other| other.execution.as_ref() == Some(&execution)) || left
            }
        }
    }

    /// Removes expired conditions; true when there were any.
    pub fn age(&mut self, now: Timestamp) -> bool {
        self.remove(|condition| condition.concern.is_end() && now >= condition.since.0.plus(END_LASTS))
    }

    fn raise(&mut self, condition: ActiveCondition) -> bool {
        let is_same = |it: &&mut ActiveCondition| it.concern == condition.concern && it.subject == condition.subject;
        if let Some(there) = self.0.iter_mut().find(is_same) {
            for member in condition.members {
                if there.members.len() < MEMBERS_MAX && !there.members.contains(&member) {
                    there.members.push(member);
                }
            }
            there.text = condition.text;
            there.agent = condition.agent;
            return true;
        }
        if self.0.len() >= CONDITIONS_MAX {
            let failed = self.0.iter().position(|active| active.concern.is_end());
            self.0.remove(failed.unwrap_or(0));
        }
        self.0.push(condition);
        true
    }

    /// Removes an execution from the condition of a changed tool, or of every changed tool.
    fn leave(&mut self, tool: Option<&str>, execution: &str) -> bool {
        let concerns = |condition: &ActiveCondition| {
            condition.concern == AlertKind::ToolChanged && tool.is_none_or(|tool| condition.subject == tool)
        };
        for active in self.0.iter_mut().filter(|other| concerns(other)) {
            active.members.retain(|member| member != execution);
        }
        self.remove(|other| other.concern == AlertKind::ToolChanged && other.members.is_empty())
    }

    fn remove(&mut self, goes: impl Fn(&ActiveCondition) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|condition| !goes(condition));
        self.0.len() < before
    }
}

/// When each inspected condition was first seen.
#[derive(Default)]
pub struct ConditionSightings(BTreeMap<(AlertKind, String), Timestamp>);

impl ConditionSightings {
    /// Sets the first time seen on conditions that still hold, and drops the others.
    pub fn date(&mut self, conditions: &mut [ActiveCondition]) {
        let mut seen = BTreeMap::new();
        for condition in conditions {
            let key = (condition.concern, condition.subject.clone());
            let since = self.0.get(&key).copied().map_or(condition.since.0, |first| first.min(condition.since.0));
            condition.since = since.into();
            seen.insert(key, since);
        }
        self.0 = seen;
    }
}

#[cfg(test)]
mod tests;
