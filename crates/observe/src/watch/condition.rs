//! Conditions that may need attention, derived from ledger entries. Rules decide which of them raise alerts.

mod effect;

pub use effect::{ConditionChange, effects};

use super::plans::NamedPlan;
use super::rfc3339::Rfc3339Timestamp;
use super::rule::AlertSeverity;
use rutter_core::actor::Actor;
use rutter_core::execution::agent_lease::is_driving_agent;
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Active conditions held, and their size as JSON: they are stored as one item, of at most 1 MiB.
const CONDITIONS_MAX: usize = 1_000;
const CONDITIONS_BYTES_MAX: usize = 900 << 10;
/// Executions listed in one condition.
const MEMBERS_MAX: usize = 100;
/// An execution that ended stays as it ended, so the condition expires after a day.
const END_LASTS: Millis = Millis::hours(24);
const LEFT_OUT_LASTS: Millis = Millis::hours(24);

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
    TooManyAlerts,
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

impl ActiveCondition {
    fn stored_bytes(&self) -> usize {
        serde_json::to_vec(self).expect("a condition has only text keys and whole numbers").len() + 1
    }
}

/// All active conditions derived from the ledger, in the order they were raised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActiveConditions {
    #[serde(rename = "matters", default)]
    conditions: Vec<ActiveCondition>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<AlertKind, LeftOutConditions>,
}

/// Conditions of one kind that were not held because there were too many. Whether they still hold is not known, so they
/// are counted until a day after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOutConditions {
    pub count: u64,
    last_at: Rfc3339Timestamp,
}

impl ActiveConditions {
    pub fn iter(&self) -> impl Iterator<Item = &ActiveCondition> {
        self.conditions.iter()
    }

    pub fn left_out(&self) -> &BTreeMap<AlertKind, LeftOutConditions> {
        &self.left_out
    }

    /// Whether there are more than are held: [`ActiveConditions::limit`] must follow.
    pub fn are_too_many(&self) -> bool {
        self.conditions.len() > CONDITIONS_MAX
            || self.iter().map(ActiveCondition::stored_bytes).sum::<usize>() > CONDITIONS_BYTES_MAX
    }

    /// Leaves out what is too much: what no rule wants, then the oldest of the least severe. What a rule wants is counted.
    pub fn limit(&mut self, severity: impl Fn(&ActiveCondition) -> Option<AlertSeverity>, now: Timestamp) {
        let mut important_first: Vec<usize> = (0..self.conditions.len()).collect();
        important_first.sort_by_cached_key(|&at| {
            let condition = &self.conditions[at];
            Reverse((severity(condition), condition.since, at))
        });
        let (mut count, mut bytes) = (0, 0);
        let is_held = |at: &usize| {
            count += 1;
            bytes += self.conditions[*at].stored_bytes();
            count <= CONDITIONS_MAX && bytes <= CONDITIONS_BYTES_MAX
        };
        let held: BTreeSet<usize> = important_first.into_iter().take_while(is_held).collect();
        for (at, condition) in std::mem::take(&mut self.conditions).into_iter().enumerate() {
            if held.contains(&at) {
                self.conditions.push(condition);
            } else if severity(&condition).is_some() {
                let none = LeftOutConditions { count: 0, last_at: now.into() };
                let left_out = self.left_out.entry(condition.concern).or_insert(none);
                *left_out = LeftOutConditions { count: left_out.count + 1, last_at: now.into() };
            }
        }
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

    /// Removes what has expired; true when there was anything.
    pub fn age(&mut self, now: Timestamp) -> bool {
        let left_out = self.left_out.len();
        self.left_out.retain(|_, left_out| now < left_out.last_at.0.plus(LEFT_OUT_LASTS));
        let are_ended = self.remove(|condition| condition.concern.is_end() && now >= condition.since.0.plus(END_LASTS));
        are_ended || self.left_out.len() < left_out
    }

    fn raise(&mut self, condition: ActiveCondition) -> bool {
        let is_same = |it: &&mut ActiveCondition| it.concern == condition.concern && it.subject == condition.subject;
        if let Some(there) = self.conditions.iter_mut().find(is_same) {
            for member in condition.members {
                if there.members.len() < MEMBERS_MAX && !there.members.contains(&member) {
                    there.members.push(member);
                }
            }
            there.text = condition.text;
            there.agent = condition.agent;
            return true;
        }
        self.conditions.push(condition);
        true
    }

    /// Removes an execution from the condition of a changed tool, or of every changed tool.
    fn leave(&mut self, tool: Option<&str>, execution: &str) -> bool {
        let concerns = |condition: &ActiveCondition| {
            condition.concern == AlertKind::ToolChanged && tool.is_none_or(|tool| condition.subject == tool)
        };
        for active in self.conditions.iter_mut().filter(|other| concerns(other)) {
            active.members.retain(|member| member != execution);
        }
        self.remove(|other| other.concern == AlertKind::ToolChanged && other.members.is_empty())
    }

    fn remove(&mut self, goes: impl Fn(&ActiveCondition) -> bool) -> bool {
        let before = self.conditions.len();
        self.conditions.retain(|condition| !goes(condition));
        self.conditions.len() < before
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
