//! What was said about a part by hand, and how that is corrected.

use super::StepPart;
use crate::journal::event::{CallSide, LateEffect};
use crate::journal::payload::EventPayload;
use serde_json::Value;
use std::sync::Arc;

/// An answer given by hand: how a call in doubt ended, or that a failed step was done by other means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandSettlement {
    pub side: CallSide,
    pub attempt: u32,
    pub happened: bool,
}

impl HandSettlement {
    pub fn is_about(self, side: CallSide, attempt: u32) -> bool {
        (self.side, self.attempt) == (side, attempt)
    }
}

impl StepPart {
    pub(super) fn settled_by_hand(&mut self, side: CallSide, attempt: u32, happened: bool) {
        self.by_hand = Some(HandSettlement { side, attempt, happened });
    }

    /// The part has another result now, or none: what was said of the earlier one no longer counts.
    pub(super) fn forget_result_by_hand(&mut self) {
        self.by_hand = self.by_hand.filter(|settled| !settled.happened);
    }

    pub(super) fn correct(
        &mut self,
        side: CallSide,
        attempt: u32,
        happened: bool,
        result: Option<&EventPayload>,
        effect: Option<LateEffect>,
    ) {
        self.settled_by_hand(side, attempt, happened);
        match (happened, effect) {
            (true, Some(effect)) => {
                let unknown = || EventPayload::Present(Arc::new(Value::Null));
                self.took_effect_late(side, attempt, result.cloned().unwrap_or_else(unknown), effect);
                if effect == LateEffect::Second {
                    // Its own result is that of another attempt.
                    self.by_hand = None;
                }
            }
            (true, None) => {
                self.result = result.cloned();
                // A compensation that was tried with the old result is another call.
                self.sent.take_if(|(sent, _)| *sent == CallSide::Undo);
            }
            (false, _) => {
                // What its tool has answered stays on record.
                let is_answered = self.late_done.iter().any(|late| (late.side, late.attempt) == (side, attempt));
                self.done.retain(|done| is_answered || *done != (side, attempt));
                self.effect = None;
                self.result = None;
                self.forget_key();
            }
        }
    }
}
