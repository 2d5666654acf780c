//! What might concern somebody, as the ledger tells it. Rules decide whether somebody is told.

mod effect;

pub(super) use effect::{Effect, effects};

use super::moment::Moment;
use super::plans::PlanOf;
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Matters of the ledger that are kept; the oldest failures give way first.
const MATTERS_MAX: usize = 1_000;
/// Executions that are kept of one matter.
const MEMBERS_MAX: usize = 100;
/// Nothing more happens to an execution that has failed; after a day it is history.
const FAILURE_LASTS: Millis = Millis::hours(24);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Concern {
    ExecutionFailed,
    ExecutionStuck,
    WaitingForPerson,
    InDoubt,
    CompensationFailed,
    BreakerOpen,
    ToolChanged,
    Budget,
    VerifyFailed,
    DiskLow,
    DeadLetters,
}

/// Something that is so at the moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Matter {
    pub concern: Concern,
    /// What it is about: an execution, a part of one, a tool, a server, a webhook, the disk, the ledger.
    pub subject: String,
    pub since: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanOf>,
    pub text: String,
    /// Bytes that are free, or deliveries that were given up.
    #[serde(default)]
    pub measure: u64,
    /// Where it holds only as long as it holds for one of these executions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

/// Everything the ledger has told and not taken back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Matters(Vec<Matter>);

impl Matters {
    pub fn iter(&self) -> impl Iterator<Item = &Matter> {
        self.0.iter()
    }

    /// Takes in what an entry means; true when that changes anything.
    pub fn take(&mut self, effect: Effect, plan: Option<&PlanOf>) -> bool {
        match effect {
            Effect::Raise(matter) => self.raise(Matter { plan: plan.cloned(), ..matter }),
            Effect::Settle(concern, subject) => {
                self.remove(|matter| matter.concern == concern && matter.subject == subject)
            }
            Effect::Leave(tool, execution) => self.leave(tool.as_deref(), &execution),
            Effect::Forget(execution) => {
                let left = self.leave(None, &execution);
                self.remove(|matter| matter.execution.as_ref() == Some(&execution)) || left
            }
        }
    }

    /// Lets go of what is history; true when there was any.
    pub fn age(&mut self, now: Timestamp) -> bool {
        self.remove(|matter| {
            matter.concern == Concern::ExecutionFailed && now >= matter.since.0.plus(FAILURE_LASTS)
        })
    }

    fn raise(&mut self, matter: Matter) -> bool {
        let is_same = |it: &&mut Matter| it.concern == matter.concern && it.subject == matter.subject;
        if let Some(there) = self.0.iter_mut().find(is_same) {
            for member in matter.members {
                if there.members.len() < MEMBERS_MAX && !there.members.contains(&member) {
                    there.members.push(member);
                }
            }
            there.text = matter.text;
            return true;
        }
        if self.0.len() >= MATTERS_MAX {
            let failed = self.0.iter().position(|matter| matter.concern == Concern::ExecutionFailed);
            self.0.remove(failed.unwrap_or(0));
        }
        self.0.push(matter);
        true
    }

    /// A tool that changed concerns an execution no longer: this one, or any.
    fn leave(&mut self, tool: Option<&str>, execution: &str) -> bool {
        let concerns = |matter: &Matter| {
            matter.concern == Concern::ToolChanged && tool.is_none_or(|tool| matter.subject == tool)
        };
        for matter in self.0.iter_mut().filter(|matter| concerns(matter)) {
            matter.members.retain(|member| member != execution);
        }
        self.remove(|matter| matter.concern == Concern::ToolChanged && matter.members.is_empty())
    }

    fn remove(&mut self, goes: impl Fn(&Matter) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|matter| !goes(matter));
        self.0.len() < before
    }
}

/// When each thing that is only looked at was first seen to be so.
#[derive(Default)]
pub(super) struct Sightings(BTreeMap<(Concern, String), Timestamp>);

impl Sightings {
    /// Keeps the first moment for what is still there, and forgets the rest.
    pub fn date(&mut self, matters: &mut [Matter]) {
        let mut seen = BTreeMap::new();
        for matter in matters {
            let key = (matter.concern, matter.subject.clone());
            let since = self.0.get(&key).copied().map_or(matter.since.0, |first| first.min(matter.since.0));
            matter.since = since.into();
            seen.insert(key, since);
        }
        self.0 = seen;
    }
}

#[cfg(test)]
mod tests;
