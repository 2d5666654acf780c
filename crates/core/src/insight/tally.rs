//! The tally of a plan, a tool or a driver.

use super::histogram::MergeableHistogram;
use crate::journal::event::{CallSide, Deviation, ExecutionEnding, ExecutionLimit};
use crate::tool::FailureCategory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts and times. Zeros are not serialized.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActivityTally {
    #[serde(skip_serializing_if = "is_zero")]
    pub opened: u64,
    #[serde(skip_serializing_if = "OutcomeCounts::is_empty")]
    pub ended: OutcomeCounts,
    /// Ended again, after compensations in an execution that had ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub ended_again: u64,
    /// From the opening to the end.
    #[serde(skip_serializing_if = "MergeableHistogram::is_empty")]
    pub duration_ms: MergeableHistogram,
    /// Steps, and items of fan-outs, started per ended execution.
    #[serde(skip_serializing_if = "MergeableHistogram::is_empty")]
    pub steps: MergeableHistogram,
    /// From the first attempt of a step to its completion, including all waits.
    #[serde(skip_serializing_if = "MergeableHistogram::is_empty")]
    pub step_ms: MergeableHistogram,
    /// From the start of an attempt to its answer; attempts without an answer are left out.
    #[serde(skip_serializing_if = "MergeableHistogram::is_empty")]
    pub attempt_ms: MergeableHistogram,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attempts: BTreeMap<CallSide, u64>,
    /// Attempts other than the first of their side.
    #[serde(skip_serializing_if = "is_zero")]
    pub retries: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: u64,
    /// Attempts that failed, and calls that could not be prepared.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<FailureCategory, u64>,
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
    /// How often undoing started; the outcomes are counted per part.
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
    #[serde(skip_serializing_if = "ApprovalTally::is_empty")]
    pub approvals: ApprovalTally,
    /// The duration of waits, by cause; counted on the day they ended.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub waits_ms: BTreeMap<WaitCause, MergeableHistogram>,
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_micros: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<ExecutionLimit, u64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub drifts: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub deviations: BTreeMap<Deviation, u64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub decisions: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub actions: u64,
}

impl ActivityTally {
    pub fn add(&mut self, other: &ActivityTally) {
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

    /// Forward calls, which count towards budgets.
    pub fn calls(&self) -> u64 {
        self.attempts_of(CallSide::Do) + self.attempts_of(CallSide::Fallback)
    }

    pub fn attempts_of(&self, side: CallSide) -> u64 {
        self.attempts.get(&side).copied().unwrap_or(0)
    }

    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }
}

/// Executions by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutcomeCounts {
    pub completed: u64,
    pub partial: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub compensated: u64,
}

impl OutcomeCounts {
    pub fn of(&mut self, outcome: ExecutionEnding) -> &mut u64 {
        match outcome {
            ExecutionEnding::Completed => &mut self.completed,
            ExecutionEnding::Partial => &mut self.partial,
            ExecutionEnding::Failed => &mut self.failed,
            ExecutionEnding::Cancelled => &mut self.cancelled,
            ExecutionEnding::Compensated => &mut self.compensated,
        }
    }

    pub fn all(&self) -> u64 {
        self.completed + self.partial + self.failed + self.cancelled + self.compensated
    }

    pub fn add(&mut self, other: &OutcomeCounts) {
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
pub struct ApprovalTally {
    pub asked: u64,
    pub granted: u64,
    pub denied: u64,
    pub expired: u64,
    /// The call changed after approval was requested.
    pub voided: u64,
}

impl ApprovalTally {
    fn add(&mut self, other: &ApprovalTally) {
        self.asked += other.asked;
        self.granted += other.granted;
        self.denied += other.denied;
        self.expired += other.expired;
        self.voided += other.voided;
    }

    fn is_empty(&self) -> bool {
        *self == ApprovalTally::default()
    }
}

/// What an execution or a part can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    Approval,
    /// A step failed for good and needs a decision.
    Failure,
    /// A compensation failed for good.
    Compensation,
    /// A doubt, until a probe, a late answer or a person settles it.
    Doubt,
    Limit,
    /// A tool has changed since the plan was checked.
    Drift,
    /// A tool asked a question during a call.
    ToolQuestion,
    Paused,
    Replanning,
    /// Between an attempt that failed and the next one.
    BackOff,
}

impl WaitCause {
    pub const ALL: [WaitCause; 10] = [
        WaitCause::Approval,
        WaitCause::Failure,
        WaitCause::Compensation,
        WaitCause::Doubt,
        WaitCause::Limit,
        WaitCause::Drift,
        WaitCause::ToolQuestion,
        WaitCause::Paused,
        WaitCause::Replanning,
        WaitCause::BackOff,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            WaitCause::Approval => "approval",
            WaitCause::Failure => "failure",
            WaitCause::Compensation => "compensation",
            WaitCause::Doubt => "doubt",
            WaitCause::Limit => "limit",
            WaitCause::Drift => "drift",
            WaitCause::ToolQuestion => "tool_question",
            WaitCause::Paused => "paused",
            WaitCause::Replanning => "replanning",
            WaitCause::BackOff => "back_off",
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
