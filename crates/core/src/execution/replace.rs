//! A part gets its new state, and everything that is derived from it follows.

use super::Execution;
use super::agenda::PartPosition;
use super::part::{PartState, StepPart};
use super::step::StepStage;

impl Execution {
    /// Replaces a part with its new state and updates everything derived from it.
    pub(super) fn replace(&mut self, at: PartPosition, mut new: StepPart) {
        let timeout_total = self.plan.steps[at.step()].timeout_total;
        let state = &mut self.steps[at.step()];
        let old = &state.parts[at.item()];
        let (was_pending, was_resting) = (old.state == PartState::Pending, is_resting(&old.state));
        let (is_pending, rests) = (new.state == PartState::Pending, is_resting(&new.state));
        let (was_active, is_active) = (old.is_active(), new.is_active());
        let (was_idle, is_idle) = (old.is_idle_doubt(), new.is_idle_doubt());
        let began_undo = !old.is_undoing() && new.is_undoing();
        let failed = matches!(new.state, PartState::Failed { .. });
        let undone = match &new.state {
            PartState::Compensated { .. } | PartState::CompensationFailed { accepted: true, .. } => true,
            PartState::CompensationFailed { accepted: false, .. } => {
                // It was tried and failed; it stays open until its question is answered.
                if let Some(undo) = &mut self.undo {
                    undo.begun(at);
                }
                false
            }
            _ => false,
        };
        if rests && !was_resting {
            self.rests += 1;
            new.rest = self.rests;
        }
        self.agenda.delist(at, old, timeout_total);
        self.agenda.enlist(at, &new, timeout_total);
        state.parts[at.item()] = new;
        match (was_active, is_active) {
            (false, true) => state.active += 1,
            (true, false) => state.active = state.active.saturating_sub(1),
            (true, true) | (false, false) => {}
        }
        match (was_idle, is_idle) {
            (false, true) => state.idle_doubts += 1,
            (true, false) => state.idle_doubts = state.idle_doubts.saturating_sub(1),
            (true, true) | (false, false) => {}
        }
        if state.stage == StepStage::Waiting && !is_pending {
            state.stage = StepStage::Begun;
        }
        if was_pending && !is_pending && state.halted {
            // The item was held back and not counted as unsettled; from here on it is.
            state.unsettled += 1;
        }
        if was_pending && !is_pending {
            self.withdraw(at.step(), at.item());
        }
        if is_pending && !was_pending {
            if self.steps[at.step()].halted {
                self.hold_back(at);
                self.conclude(at.step());
            } else {
                self.enqueue(at);
            }
        }
        if let Some(undo) = &mut self.undo {
            if began_undo {
                undo.begun(at);
            }
            if undone {
                undo.closed(&self.plan.0.graph, at);
            }
        }
        if is_idle && !was_idle && self.steps[at.step()].stage == StepStage::Begun {
            self.feed(at.step());
        }
        let stage = self.steps[at.step()].stage;
        if rests && !was_resting && matches!(stage, StepStage::Begun | StepStage::Held) {
            let state = &mut self.steps[at.step()];
            state.unsettled = state.unsettled.saturating_sub(1);
        }
        if rests && !was_resting && stage == StepStage::Begun {
            if failed {
                self.halt_unless_others_go_on(at.step());
            }
            self.feed(at.step());
            self.conclude(at.step());
        }
    }
}

/// Whether a part is settled going forward; undoing starts from these states.
fn is_resting(state: &PartState) -> bool {
    match state {
        PartState::Completed { .. } | PartState::Failed { .. } | PartState::Cancelled => true,
        PartState::Pending
        | PartState::Asking { .. }
        | PartState::Approved { .. }
        | PartState::Running(_)
        | PartState::BackingOff { .. }
        | PartState::InDoubt { .. }
        | PartState::Compensated { .. }
        | PartState::CompensationFailed { .. } => false,
    }
}
