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
    /// Parts that occupy a slot.
    pub active: u32,
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
    /// Of a skipped or cancelled step: why.
    pub skip_reason: Option<Box<str>>,
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
            queued: 0,
            next_item: 0,
            halted: false,
            items: None,
            results: None,
            failure: None,
            skip_reason: None,
        }
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
            StepStage::Begun if any(|s| matches!(s, PartState::Asking { .. } | PartState::Running(_))) => "waiting",
            StepStage::Begun => "running",
            StepStage::Failing | StepStage::Failed => "failed",
            StepStage::Held => "waiting",
            StepStage::Completed => "completed",
            StepStage::Skipped => "skipped",
            StepStage::Cancelled => "cancelled",
        }
    }
}
