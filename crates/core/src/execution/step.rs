//! A step in an execution: its parts, and where it stands for those that need it.

use super::part::{Part, PartState};
use crate::journal::payload::Payload;
use crate::tool::Failure;
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct StepState {
    pub stage: Stage,
    /// Needs that have not come to rest.
    pub unmet: u32,
    /// One, or one per item once a fan-out has been opened.
    pub parts: Vec<Part>,
    /// Parts that must come to rest before the step does.
    pub unsettled: u32,
    /// Parts that hold a place.
    pub active: u32,
    /// Parts that could begin.
    pub queued: u32,
    /// In a fan-out: the next item to make ready, and whether no more shall be.
    pub next_item: u32,
    pub halted: bool,
    pub items: Option<Payload>,
    /// Of a completed fan-out: the list of its parts' results.
    pub results: Option<Arc<Value>>,
    /// Of a step that failed before it had any part.
    pub failure: Option<Failure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Waiting,
    Begun,
    /// Failed for good; its policy comes next.
    Failing,
    /// Failed for good; somebody has to decide.
    Held,
    Completed,
    Failed,
    Skipped,
    Cancelled,
}

impl Stage {
    /// At rest: what comes after it may begin.
    pub fn is_settled(self) -> bool {
        match self {
            Stage::Waiting | Stage::Begun | Stage::Failing | Stage::Held => false,
            Stage::Completed | Stage::Failed | Stage::Skipped | Stage::Cancelled => true,
        }
    }
}

impl StepState {
    pub fn new(unmet: u32, fans_out: bool) -> StepState {
        let parts = if fans_out { Vec::new() } else { vec![Part::new()] };
        StepState {
            stage: Stage::Waiting,
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
        }
    }

    /// What those that need it can read.
    pub fn result(&self) -> Option<&Value> {
        if self.stage != Stage::Completed {
            return None;
        }
        match &self.results {
            Some(list) => Some(list),
            None => self.parts.first()?.result.as_ref()?.value().map(|value| &**value),
        }
    }

    /// The word for the step in expressions, views and briefs.
    pub fn status(&self) -> &'static str {
        let parts = || self.parts.iter().map(|part| &part.state);
        let any = |test: fn(&PartState) -> bool| parts().any(test);
        if any(|s| matches!(s, PartState::InDoubt { .. })) {
            return "in_doubt";
        }
        if any(|s| matches!(s, PartState::CompensationFailed { .. })) {
            return "compensation_failed";
        }
        if self.parts.iter().any(Part::is_undoing) {
            return "compensating";
        }
        if any(|s| matches!(s, PartState::Compensated { .. })) {
            return "compensated";
        }
        match self.stage {
            Stage::Waiting => "pending",
            Stage::Begun
                if any(|s| matches!(s, PartState::Running(attempt) if attempt.inquiry.is_none())) =>
            {
                "running"
            }
            Stage::Begun if any(|s| matches!(s, PartState::BackingOff { .. })) => "retrying",
            Stage::Begun if any(|s| matches!(s, PartState::Asking { .. } | PartState::Running(_))) => {
                "waiting"
            }
            Stage::Begun => "running",
            Stage::Failing | Stage::Failed => "failed",
            Stage::Held => "waiting",
            Stage::Completed => "completed",
            Stage::Skipped => "skipped",
            Stage::Cancelled => "cancelled",
        }
    }
}
