//! What is counted of a plan, a tool or a driver.

use super::histogram::Histogram;
use crate::journal::event::{Deviation, EndedAs, Limit, Side};
use crate::tool::Category;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts and times. What stands at zero is not written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    #[serde(skip_serializing_if = "is_zero")]
    pub opened: u64,
    #[serde(skip_serializing_if = "Endings::is_empty")]
    pub ended: Endings,
    /// Ended once more, after something was undone in an execution that had ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub ended_again: u64,
    /// From the opening to the end.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub duration_ms: Histogram,
    /// Steps, and items of steps that fan out, that were begun in an execution that has ended.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub steps: Histogram,
    /// From the first attempt of a step to its completion, with everything it waited for in between.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub step_ms: Histogram,
    /// From the start of an attempt to its answer; those that nobody answered are left out.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub attempt_ms: Histogram,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attempts: BTreeMap<Side, u64>,
    /// Attempts that were not the first of their kind.
    #[serde(skip_serializing_if = "is_zero")]
    pub retries: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: u64,
    /// Attempts that failed, and calls that could not be prepared.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<Category, u64>,
    /// Steps whose failure was final.
    #[serde(skip_serializing_if = "is_zero")]
    pub steps_failed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub steps_skipped: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub doubts: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub late_answers: u64,
    /// How often undoing began, and what came of it part by part.
    #[serde(skip_serializing_if = "is_zero")]
    pub compensations: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub compensated: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub compensations_failed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub replans: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub handovers: u64,
    #[serde(skip_serializing_if = "Approvals::is_empty")]
    pub approvals: Approvals,
    /// How long each wait took, by what was waited for; counted on the day it ended.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub waits_ms: BTreeMap<Cause, Histogram>,
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_micros: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<Limit, u64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub drifts: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub deviations: BTreeMap<Deviation, u64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub decisions: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub actions: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.opened += other.opened;
        self.ended.add(&other.ended);
        self.ended_again += other.ended_again;
        self.duration_ms.add(&other.duration_ms);
        self.steps.add(&other.steps);
        self.step_ms.add(&other.step_ms);
        self.attempt_ms.add(&other.attempt_ms);
        add_each(&mut self.attempts, &other.attempts);
        self.retries += other.retries;
        self.succeeded += other.succeeded;
        add_each(&mut self.failures, &other.failures);
        self.steps_failed += other.steps_failed;
        self.steps_skipped += other.steps_skipped;
        self.lost += other.lost;
        self.doubts += other.doubts;
        self.late_answers += other.late_answers;
        self.compensations += other.compensations;
        self.compensated += other.compensated;
        self.compensations_failed += other.compensations_failed;
        self.replans += other.replans;
        self.handovers += other.handovers;
        self.approvals.add(&other.approvals);
        for (cause, histogram) in &other.waits_ms {
            self.waits_ms.entry(*cause).or_default().add(histogram);
        }
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
        add_each(&mut self.limits, &other.limits);
        self.drifts += other.drifts;
        add_each(&mut self.deviations, &other.deviations);
        self.decisions += other.decisions;
        self.actions += other.actions;
    }

    /// Calls that went forward, which is what budgets count.
    pub fn calls(&self) -> u64 {
        self.attempts_of(Side::Do) + self.attempts_of(Side::Fallback)
    }

    pub fn attempts_of(&self, side: Side) -> u64 {
        self.attempts.get(&side).copied().unwrap_or(0)
    }

    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// How many in a thousand of those that ended reached their goal.
    pub fn completed_permille(&self) -> Option<u64> {
        (self.ended.completed * 1_000).checked_div(self.ended.all())
    }
}

/// Executions by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endings {
    pub completed: u64,
    pub partial: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub compensated: u64,
}

impl Endings {
    pub fn of(&mut self, outcome: EndedAs) -> &mut u64 {
        match outcome {
            EndedAs::Completed => &mut self.completed,
            EndedAs::Partial => &mut self.partial,
            EndedAs::Failed => &mut self.failed,
            EndedAs::Cancelled => &mut self.cancelled,
            EndedAs::Compensated => &mut self.compensated,
        }
    }

    pub fn all(&self) -> u64 {
        self.completed + self.partial + self.failed + self.cancelled + self.compensated
    }

    pub fn add(&mut self, other: &Endings) {
        self.completed += other.completed;
        self.partial += other.partial;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.compensated += other.compensated;
    }

    pub fn is_empty(&self) -> bool {
        self.all() == 0
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Approvals {
    pub asked: u64,
    pub granted: u64,
    pub denied: u64,
    pub expired: u64,
    /// The call was no longer the one that was asked for.
    pub voided: u64,
}

impl Approvals {
    fn add(&mut self, other: &Approvals) {
        self.asked += other.asked;
        self.granted += other.granted;
        self.denied += other.denied;
        self.expired += other.expired;
        self.voided += other.voided;
    }

    fn is_empty(&self) -> bool {
        *self == Approvals::default()
    }
}

/// What an execution, or one part of it, can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Approval,
    /// A step failed for good and somebody must decide.
    Failure,
    /// A compensation failed for good.
    Compensation,
    /// Whether something happened, until that is known: by probe, late answer or word.
    Doubt,
    Limit,
    /// A tool is not the one the plan was checked with.
    Drift,
    /// A tool asked something in the middle of a call.
    ToolQuestion,
    Paused,
    Replanning,
    /// Between an attempt that failed and the next one.
    BackOff,
}

impl Cause {
    pub const ALL: [Cause; 10] = [
        Cause::Approval,
        Cause::Failure,
        Cause::Compensation,
        Cause::Doubt,
        Cause::Limit,
        Cause::Drift,
        Cause::ToolQuestion,
        Cause::Paused,
        Cause::Replanning,
        Cause::BackOff,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Approval => "approval",
            Cause::Failure => "failure",
            Cause::Compensation => "compensation",
            Cause::Doubt => "doubt",
            Cause::Limit => "limit",
            Cause::Drift => "drift",
            Cause::ToolQuestion => "tool_question",
            Cause::Paused => "paused",
            Cause::Replanning => "replanning",
            Cause::BackOff => "back_off",
        }
    }
}

fn add_each<K: Ord + Copy>(mine: &mut BTreeMap<K, u64>, theirs: &BTreeMap<K, u64>) {
    for (key, count) in theirs {
        *mine.entry(*key).or_default() += count;
    }
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}
