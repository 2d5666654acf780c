//! The state of a step in an execution: its parts, and its stage for its dependents.

use super::part::{PartState, StepPart};
use crate::journal::payload::EventPayload;
use crate::tool::ToolFailure;
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct StepState {
    pub stage: StepStage,
    /// The number of dependencies that are not settled.
    pub unmet: u32,
    /// One, or one per item once a fan-out has been opened.
    pub parts: Vec<StepPart>,
    /// Parts that must settle before the step does.
    pub unsettled: u32,
    /// Parts that were started and are not settled, and those among them that are in doubt and not being probed.
    pub active: u32,
    pub idle_doubts: u32,
    /// Parts that can start.
    pub queued: u32,
    /// In a fan-out: the next item to queue, and whether queueing has stopped.
    pub next_item: u32,
    pub halted: bool,
    pub items: Option<EventPayload>,
    /// Of a completed fan-out: the list of its parts' results.
    pub results: Option<Arc<Value>>,
    /// Of a step that failed before it had any part.
    pub failure: Option<ToolFailure>,
    /// Of a failed step: why, even after its parts were compensated.
    pub failed_with: Option<ToolFailure>,
    /// Of a skipped or cancelled step: why.
    pub skip_reason: Option<Box<str>>,
    pub skip_cause: Option<SkipCause>,
    /// Of a failed step: by its policy or by decision, the others went on without it.
    pub left_behind: bool,
    /// Of a step that the current revision no longer has: it is only there to be undone.
    pub retired: bool,
    /// The generation of new parts.
    pub generation: u32,
}

/// Why a step did not run, as far as other decisions depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipCause {
    /// Its own `when` was false.
    Condition,
    /// It is the other branch of a step that was not skipped by its `when`.
    OtherBranch,
    /// It needs the result of a step that has none.
    NoResult,
    /// Somebody decided to go on without it.
    Decision,
    /// The agent ended without doing it.
    LeftUndone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepStage {
    Waiting,
    Begun,
    /// Failed for good; its policy is applied next.
    Failing,
    /// Failed for good; waits for a decision.
    Held,
    Completed,
    Failed,
    Skipped,
    Cancelled,
}

impl StepStage {
    /// Whether the step is settled: its dependents may start.
    pub fn is_settled(self) -> bool {
        match self {
            StepStage::Waiting | StepStage::Begun | StepStage::Failing | StepStage::Held => false,
            StepStage::Completed | StepStage::Failed | StepStage::Skipped | StepStage::Cancelled => true,
        }
    }
}

impl StepState {
    pub fn new(unmet: u32, fans_out: bool) -> StepState {
        let parts = if fans_out { Vec::new() } else { vec![StepPart::new()] };
        StepState {
            stage: StepStage::Waiting,
            unmet,
            unsettled: if fans_out { 0 } else { 1 },
            parts,
            active: 0,
            idle_doubts: 0,
            queued: 0,
            next_item: 0,
            halted: false,
            items: None,
            results: None,
            failure: None,
            failed_with: None,
            skip_reason: None,
            skip_cause: None,
            left_behind: false,
            retired: false,
            generation: 0,
        }
    }

    /// The state of the step when it begins anew. What was undone has other keys then: its tools would take a call with an
    /// old one for done.
    pub fn anew(&self, fans_out: bool) -> StepState {
        let mut fresh = StepState::new(0, fans_out);
        fresh.generation = self.parts.iter().map(|part| part.generation).fold(self.generation, u32::max);
        fresh.parts.iter_mut().for_each(|part| part.generation = fresh.generation);
        fresh
    }

    /// How many of a fan-out's slots are taken. A doubt gives its slot back, except in a list that is done one by one.
    pub fn slots_taken(&self, max_parallel: u32) -> u32 {
        let given_back = if max_parallel > 1 { self.idle_doubts } else { 0 };
        self.active.saturating_sub(given_back)
    }

    /// The result, as its dependents can read it.
    pub fn result(&self) -> Option<&Value> {
        if self.stage != StepStage::Completed {
            return None;
        }
        match &self.results {
            Some(list) => Some(list),
            None => self.parts.first()?.result.as_ref()?.value().map(|value| &**value),
        }
    }

    /// Settled, and its effects were taken back.
    pub fn is_undone(&self) -> bool {
        self.stage.is_settled() && self.status() == "compensated"
    }

    /// How somebody took it out of what the execution does.
    pub(super) fn set_aside(&self) -> Option<&'static str> {
        match self.skip_cause {
            Some(SkipCause::Decision) => Some("was skipped by decision"),
            _ => self.is_undone().then_some("was undone"),
        }
    }

    /// Completed, although an item failed for good.
    pub fn has_failed_item(&self) -> bool {
        let failed = |part: &StepPart| matches!(part.state, PartState::Failed { .. }) && !part.accepted;
        self.stage == StepStage::Completed && !self.retired && self.parts.iter().any(failed)
    }

    /// Whether an item was skipped by decision.
    pub fn has_left_out_item(&self) -> bool {
        !self.retired && self.parts.iter().any(|part| part.accepted)
    }

    /// The first failure of its parts, or of the step itself.
    pub fn first_failure(&self) -> Option<&ToolFailure> {
        let failed = self.parts.iter().find_map(|part| match &part.state {
            PartState::Failed { failure } | PartState::CompensationFailed { failure, .. } => Some(failure),
            _ => None,
        });
        let remembered = self.failed_with.as_ref().filter(|_| self.stage == StepStage::Failed);
        failed.or(self.failure.as_ref()).or(remembered)
    }

    /// The status of the step in expressions, snapshots and briefs.
    pub fn status(&self) -> &'static str {
        let parts = || self.parts.iter().map(|part| &part.state);
        let any = |test: fn(&PartState) -> bool| parts().any(test);
        if any(|s| matches!(s, PartState::InDoubt { .. })) {
            return "in_doubt";
        }
        if any(|s| matches!(s, PartState::CompensationFailed { .. })) {
            return "compensation_failed";
        }
        if self.parts.iter().any(StepPart::is_undoing) {
            return "compensating";
        }
        if any(|s| matches!(s, PartState::Compensated { .. })) {
            return "compensated";
        }
        match self.stage {
            StepStage::Waiting => "pending",
            StepStage::Begun if any(|s| matches!(s, PartState::Running(attempt) if attempt.inquiry.is_none())) => {
                "running"
            }
            StepStage::Begun if any(|s| matches!(s, PartState::BackingOff { .. })) => "retrying",
            // Approved and not sent: it waits for room, or for the answer to a question about the whole execution.
            StepStage::Begun
                if any(|s| {
                    matches!(s, PartState::Asking { .. } | PartState::Approved { .. } | PartState::Running(_))
                }) =>
            {
                "waiting"
            }
            StepStage::Begun => "running",
            StepStage::Failing | StepStage::Failed => "failed",
            StepStage::Held => "waiting",
            StepStage::Completed => "completed",
            StepStage::Skipped => "skipped",
            StepStage::Cancelled => "cancelled",
        }
    }
}
