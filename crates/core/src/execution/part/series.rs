//! Where a series of attempts begins and ends: a new run, a stop, an undoing.

use super::{PartEffect, PartState, StepPart};
use crate::journal::event::{AttemptFollowUp, CallSide};
use crate::time::Timestamp;
use crate::tool::{FailureCategory, ToolFailure};

impl StepPart {
    /// The state in which a new run starts: the first call, unless the fallback may have taken effect.
    pub(super) fn anew(&self, at: Timestamp) -> PartState {
        match self.effect {
            Some(PartEffect { side: side @ CallSide::Fallback, .. }) => {
                PartState::BackingOff { side, until: at, pause: None }
            }
            Some(_) | None => PartState::Pending,
        }
    }

    /// Restarts the part, but keeps its attempts, effect and generation. What took effect after all is completed.
    pub fn revive(&mut self, at: Timestamp) {
        if self.is_done_after_all() {
            self.state = PartState::Completed { by_hand: false };
            (self.failures, self.losses, self.accepted, self.late_own) = (0, 0, false, false);
            return;
        }
        self.state = self.anew(at);
        self.failures = 0;
        self.losses = 0;
        self.approved = None;
        self.accepted = false;
        self.result = None;
        self.began_at = None;
        self.ended_at = None;
    }

    /// Settles the part without another attempt, unless one is open. Returns whether it did.
    pub fn stop(&mut self) -> bool {
        match &self.state {
            PartState::Pending
            | PartState::Asking { side: CallSide::Do | CallSide::Fallback, .. }
            | PartState::Approved { side: CallSide::Do | CallSide::Fallback, .. }
            | PartState::BackingOff { side: CallSide::Do | CallSide::Fallback, .. } => {}
            PartState::Running(_)
            | PartState::Asking { .. }
            | PartState::Approved { .. }
            | PartState::BackingOff { .. }
            | PartState::InDoubt { .. }
            | PartState::Completed { .. }
            | PartState::Failed { .. }
            | PartState::Cancelled
            | PartState::Compensated { .. }
            | PartState::CompensationFailed { .. } => return false,
        }
        self.approved = None;
        (self.failures, self.losses) = (0, 0);
        self.state = match self.effect {
            None => PartState::Cancelled,
            Some(_) => PartState::Failed {
                failure: ToolFailure::new(
                    FailureCategory::Cancelled,
                    "stopped before it was tried again; it may have taken effect",
                ),
            },
        };
        true
    }

    /// The first attempt of a side that may have taken effect.
    pub(in crate::execution) fn first_unsure(&self, side: CallSide) -> Option<u32> {
        match side {
            CallSide::Undo => self.key_unsure,
            CallSide::Do | CallSide::Fallback | CallSide::Probe => {
                self.effect.filter(|effect| effect.side == side).map(|effect| effect.attempt)
            }
        }
    }

    /// No attempt with the present key has taken effect: its next use is the first.
    pub(super) fn forget_key(&mut self) {
        (self.key_since, self.key_unsure) = (None, None);
    }

    pub(super) fn undone(&mut self) {
        self.forget_key();
        self.answered = None;
        self.sent = None;
        self.approved = None;
        self.refused = None;
        (self.failures, self.losses) = (0, 0);
        self.effect = None;
        self.late_own = self.late_own && self.aside.is_some();
        self.generation += 1;
        self.undone_by = self.attempts_of(CallSide::Undo);
    }

    /// An attempt to undo ended without an effect of its own, and another one has undone it.
    pub(super) fn end_undoing(&mut self, side: CallSide, then: AttemptFollowUp) {
        if side == CallSide::Undo && then == AttemptFollowUp::GiveUp && self.undone_late().is_some() {
            self.undone();
        }
    }

    /// An approval is for one effect of one call: it ends with the series of attempts it was granted for.
    pub(super) fn close_series(&mut self, then: AttemptFollowUp) {
        match then {
            AttemptFollowUp::RetryAt(_) | AttemptFollowUp::Withdrawn => {}
            // A doubt that is settled goes on with the same attempts.
            AttemptFollowUp::InDoubt => self.approved = None,
            AttemptFollowUp::FallBack | AttemptFollowUp::GiveUp => {
                self.approved = None;
                self.failures = 0;
            }
        }
    }
}
