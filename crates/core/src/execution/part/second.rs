//! Effects beside a part's own: of attempts that were settled otherwise and answered "done" late.

use super::outcome::done_after_all;
use super::{PartEffect, PartState, StepPart};
use crate::hash::Hash;
use crate::journal::event::{CallSide, Event, LateEffect};
use crate::journal::payload::EventPayload;
use crate::plan::Driver;
use crate::time::Timestamp;

/// A call of a part, with what a late answer to it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct PastCall {
    pub side: CallSide,
    pub attempt: u32,
    pub by: Driver,
    pub key: Hash,
    pub sent_at: Timestamp,
    pub parameters: EventPayload,
}

/// One more effect of a part, with everything its compensation reads.
#[derive(Clone, Debug, PartialEq)]
pub struct SecondEffect {
    pub side: CallSide,
    pub attempt: u32,
    pub parameters: Option<EventPayload>,
    pub result: EventPayload,
    /// It stands by decision.
    pub accepted: bool,
}

/// An attempt that was answered "done" while another one with the same effect was not settled.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredAttempt {
    pub side: CallSide,
    pub attempt: u32,
    pub result: EventPayload,
}

/// A "done" of the tool for an attempt that was closed or settled before.
#[derive(Clone, Debug, PartialEq)]
pub struct LateDone {
    pub side: CallSide,
    pub attempt: u32,
    /// `null` if it could not be read.
    pub result: EventPayload,
    /// It tells of the part's own effect, not of one beside it.
    pub is_own: bool,
    /// A person keeps the result that was given by hand.
    pub is_overruled: bool,
}

/// A part's own effect while another one is undone.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnEffect {
    pub state: PartState,
    pub effect: Option<PartEffect>,
    pub parameters: Option<EventPayload>,
    pub result: Option<EventPayload>,
}

impl StepPart {
    /// Whether a late answer waits for a decision: it told of a second effect, of the only one of a part that had failed, or
    /// of another result than the one that was given by hand.
    pub fn has_surprise(&self) -> bool {
        self.has_open_second() || self.is_own_late() || self.contradiction().is_some()
    }

    /// Whether a second effect waits for a decision.
    pub fn has_open_second(&self) -> bool {
        self.second.iter().any(|second| !second.accepted)
    }

    /// Whether it failed, its only effect came to light after that, and nobody has decided on it.
    pub fn is_own_late(&self) -> bool {
        let certain = self.effect.is_some_and(|effect| effect.certain);
        self.late_own && certain && matches!(self.state, PartState::Failed { .. })
    }

    /// The answer of the tool that says another result than a person did.
    pub fn contradiction(&self) -> Option<&LateDone> {
        let is_at_rest = matches!(self.state, PartState::Completed { .. } | PartState::CompensationFailed { .. });
        let late = self.answer_by_tool().filter(|late| is_at_rest && self.aside.is_none() && !late.is_overruled)?;
        let said = self.result.as_ref().and_then(EventPayload::value);
        let differs =
            matches!((said, late.result.value()), (Some(said), Some(late)) if said != late && !late.is_null());
        differs.then_some(late)
    }

    /// What the tool has answered late to the attempt that was settled by hand.
    pub fn answer_by_tool(&self) -> Option<&LateDone> {
        let settled = self.by_hand.filter(|settled| settled.happened)?;
        self.late_answer(settled.side, settled.attempt)
    }

    fn late_answer(&self, side: CallSide, attempt: u32) -> Option<&LateDone> {
        self.late_done.iter().find(|late| late.is_own && (late.side, late.attempt) == (side, attempt))
    }

    /// Whether its result is not known, although it took effect.
    pub(crate) fn lacks_result(&self) -> bool {
        self.result.as_ref().and_then(EventPayload::value).is_some_and(|result| result.is_null())
    }

    /// Whether it has an effect that may have to be undone.
    pub fn is_touched(&self) -> bool {
        self.effect.is_some() || !self.second.is_empty() || self.aside.is_some()
    }

    /// Whether it failed, and one of its attempts took effect after all, with a result that is known: that is its result.
    pub(crate) fn is_answered_after_all(&self) -> bool {
        self.is_done_after_all() && !self.lacks_result()
    }

    /// Whether it failed, and one of its attempts took effect after all: then there is nothing to repeat.
    pub(crate) fn is_done_after_all(&self) -> bool {
        let certain = self.effect.is_some_and(|effect| effect.certain);
        matches!(self.state, PartState::Failed { .. }) && self.result.is_some() && certain
    }

    /// Whether this attempt is known to have taken effect.
    pub fn is_done(&self, side: CallSide, attempt: u32) -> bool {
        self.done.contains(&(side, attempt))
    }

    pub(crate) fn call(&self, side: CallSide, attempt: u32) -> Option<&PastCall> {
        self.calls.iter().find(|call| (call.side, call.attempt) == (side, attempt))
    }

    /// The attempt that is known to have undone the effect, while another one to undo it is not settled.
    pub(crate) fn undone_late(&self) -> Option<u32> {
        let done = self.done.iter().find(|(side, attempt)| *side == CallSide::Undo && *attempt > self.undone_by);
        done.map(|(_, attempt)| *attempt)
    }

    /// The attempts of one side whose effects are on record: any other may repeat one of them.
    pub(crate) fn effects_of(&self, side: CallSide) -> impl Iterator<Item = u32> {
        let own = self.effect.filter(|effect| effect.certain);
        let aside = self.aside.as_ref().and_then(|own| own.effect);
        let own = own.into_iter().chain(aside).map(|effect| (effect.side, effect.attempt));
        let second = self.second.iter().map(|second| (second.side, second.attempt));
        own.chain(second).filter(move |(of, _)| *of == side).map(|(_, attempt)| attempt)
    }

    /// The attempt of a side that runs, or is in doubt.
    pub(crate) fn unsettled_attempt(&self, side: CallSide) -> Option<u32> {
        match &self.state {
            PartState::Running(attempt) if attempt.side == side => Some(attempt.number),
            PartState::InDoubt { side: doubted, attempt, .. } if *doubted == side => Some(*attempt),
            _ => None,
        }
    }

    /// Whether it will be called, going forward.
    pub(crate) fn waits_for_call(&self) -> bool {
        self.state == PartState::Pending || (self.waits() && !self.is_undoing())
    }

    /// Whether it will be undone.
    pub(crate) fn waits_for_undo(&self) -> bool {
        self.waits() && self.is_undoing()
    }

    fn waits(&self) -> bool {
        use PartState as S;
        matches!(self.state, S::Asking { .. } | S::Approved { .. } | S::BackingOff { .. })
    }

    /// Remembers a "done" that means nothing yet, because another attempt of its side is not settled.
    pub(super) fn was_answered(&mut self, side: CallSide, attempt: u32, result: EventPayload) {
        let is_beside = self.unsettled_attempt(side).is_some_and(|open| open != attempt);
        if is_beside && side != CallSide::Undo && !self.is_done(side, attempt) {
            self.answered = Some(Box::new(AnsweredAttempt { side, attempt, result }));
        }
    }

    /// Remembers what was said late of the attempt in doubt.
    pub(super) fn was_reported(&mut self, event: &Event) {
        let Event::LateAnswerArrived { side, attempt, answer, .. } = event else { return };
        if self.is_in_doubt() && self.unsettled_attempt(*side) == Some(*attempt) {
            self.reported = Some(Box::new(answer.clone()));
        }
    }

    /// Remembers the "done" of a call that Rutter made.
    pub(super) fn was_done(&mut self, side: CallSide, attempt: u32, result: &EventPayload, is_own: bool) {
        let is_of_tool = self.call(side, attempt).is_some_and(|call| call.by == Driver::Server);
        let is_known = self.late_done.iter().any(|late| (late.side, late.attempt) == (side, attempt));
        if is_of_tool && !is_known && side != CallSide::Undo {
            self.late_done.push(LateDone { side, attempt, result: result.clone(), is_own, is_overruled: false });
        }
    }

    pub(super) fn took_effect_late(&mut self, side: CallSide, attempt: u32, result: EventPayload, effect: LateEffect) {
        self.done.push((side, attempt));
        let parameters = self.call(side, attempt).map(|call| call.parameters.clone());
        let late = SecondEffect { side, attempt, parameters, result, accepted: false };
        match effect {
            LateEffect::Only => {
                self.adopt(late);
                if self.waits_for_call() {
                    // No attempt of it follows: those of its undoing count from the start.
                    (self.failures, self.losses) = (0, 0);
                    self.approved = None;
                }
            }
            LateEffect::Second => self.second.push(late),
        }
    }

    /// A part that failed in the end, and of which an earlier attempt took effect after all, has that effect.
    pub(super) fn adopt_if_failed(&mut self) {
        let PartState::Failed { failure } = &self.state else { return };
        if self.effect.is_none() && !self.second.is_empty() {
            let failure = done_after_all(failure, self.second[0].attempt);
            let late = self.second.remove(0);
            self.state = PartState::Failed { failure };
            self.late_own = !late.accepted;
            let answered = (late.side, late.attempt);
            self.late_done
                .iter_mut()
                .filter(|done| (done.side, done.attempt) == answered)
                .for_each(|done| done.is_own = true);
            self.adopt(late);
        }
    }

    fn adopt(&mut self, late: SecondEffect) {
        self.effect = Some(PartEffect { side: late.side, certain: true, attempt: late.attempt });
        self.parameters = late.parameters.or(self.parameters.take());
        self.result = Some(late.result);
    }

    /// Turns to a second effect that fits: it is the next to be undone. Returns whether there is one.
    pub(crate) fn turn_to_second(&mut self, fits: impl Fn(&SecondEffect) -> bool) -> bool {
        let Some(at) = self.second.iter().position(fits) else { return false };
        let late = self.second.remove(at);
        if self.effect.is_some() {
            let state = std::mem::replace(&mut self.state, PartState::Completed { by_hand: false });
            let (effect, parameters, result) = (self.effect.take(), self.parameters.clone(), self.result.take());
            self.aside = Some(Box::new(OwnEffect { state, effect, parameters, result }));
        }
        self.adopt(late);
        true
    }

    /// Turns back to its own effect. Returns whether there is one.
    pub(crate) fn turn_to_own(&mut self) -> bool {
        let Some(own) = self.aside.take() else { return false };
        let OwnEffect { state, effect, parameters, result } = *own;
        (self.state, self.effect, self.parameters, self.result) = (state, effect, parameters, result);
        self.only_second = false;
        true
    }

    pub(crate) fn wait_to_undo(&mut self, until: Timestamp) {
        self.state = PartState::BackingOff { side: CallSide::Undo, until, pause: None };
        self.ended_at = None;
    }
}
