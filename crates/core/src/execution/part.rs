//! One part: a step, or one item of a step that fans out. Its states and its history.

mod asked;
mod correction;
mod outcome;
mod second;
mod series;
mod state;
mod table;

pub use asked::{Approver, AskedCall, PartRefusal, RefusalKind};
pub use correction::HandSettlement;
pub use second::{AnsweredAttempt, LateDone, OwnEffect, PastCall, SecondEffect};
pub use state::{Attempt, PartState, ProbeProgress, SentCall, ServerWait, ToolInquiry};
pub use table::is_refused_for_good;

use crate::hash::Hash;
use crate::journal::event::{
    ApprovalBasis, AttemptFollowUp, CallSide, DoubtSource, Event, LateAnswer, LateEffect, Question, QuestionAnswer,
};
use crate::journal::payload::EventPayload;
use crate::plan::Driver;
use crate::time::{Millis, Timestamp};
use crate::tool::{FailureCategory, ToolFailure};
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct StepPart {
    pub state: PartState,
    /// The effect that may have to be undone.
    pub effect: Option<PartEffect>,
    /// Attempts started, by side.
    pub attempts: [u32; 4],
    /// Those of them that did not count: nothing was sent, because the tool had changed.
    pub withdrawn: [u32; 4],
    /// Attempts that failed since the last restart of the part, and attempts lost to crashes.
    pub failures: u32,
    pub losses: u32,
    /// Probes that failed, or were lost, since the doubt began.
    pub probe_failures: u32,
    pub probe_losses: u32,
    pub began_at: Option<Timestamp>,
    /// When its last forward attempt was sent.
    pub sent_at: Option<Timestamp>,
    /// The time since then that does not count, because the execution was held.
    pub frozen: Millis,
    pub ended_at: Option<Timestamp>,
    /// The parameters of the last forward attempt; compensations and probes may read them.
    pub parameters: Option<EventPayload>,
    pub result: Option<EventPayload>,
    /// The key of the last attempt that could have an effect; its probe uses it.
    pub key: Option<Hash>,
    /// When that key was sent first, and the first attempt with it that may have taken effect.
    pub key_since: Option<Timestamp>,
    pub key_unsure: Option<u32>,
    /// The parameters of that attempt. A retry sends exactly these, whatever has changed since.
    pub sent: Option<(CallSide, EventPayload)>,
    /// Who made that attempt.
    pub sent_by: Option<Driver>,
    /// Its last attempt that was closed without an answer waited for the answer to a question of its tool.
    pub was_asking: bool,
    /// How its last attempt ended, unless it was done or another one has begun.
    pub ended_with: Option<ToolFailure>,
    /// Why its own call was given up for its fallback.
    pub fell_back: Option<ToolFailure>,
    /// A granted, unused approval, and who gave the last one.
    pub approved: Option<Hash>,
    pub approver: Option<Arc<Approver>>,
    /// What was asked for last.
    pub asked: Option<Arc<AskedCall>>,
    /// Its last attempt was made by an agent, without the approval it needs or against the policy.
    pub is_defied: bool,
    /// Why its last call was not made, if a person or the policy did not allow it.
    pub refused: Option<PartRefusal>,
    /// Of a failed item: somebody decided to go on without it, and why.
    pub accepted: bool,
    pub accepted_because: Box<str>,
    /// The position in the order in which parts settled; undoing goes backwards.
    pub rest: u64,
    /// Raised by each compensation, so that a new run gets a new key.
    pub generation: u32,
    /// What each attempt sent, probes aside, and which attempts are known to have taken effect.
    pub calls: Vec<PastCall>,
    pub done: Vec<(CallSide, u32)>,
    /// The last attempt to undo that belongs to an undoing that is over.
    pub undone_by: u32,
    /// An attempt that was answered "done" while another one was not settled.
    pub answered: Option<Box<AnsweredAttempt>>,
    /// Effects beside its own: of attempts that were settled otherwise.
    pub second: Vec<SecondEffect>,
    /// The "done" of its tool for attempts that were closed or settled before it came.
    pub late_done: Vec<LateDone>,
    /// It failed, and then its only effect came to light: somebody has to be told.
    pub late_own: bool,
    /// What was said late of the attempt in doubt, by its tool or by the agent that made it.
    pub reported: Option<Box<LateAnswer>>,
    /// Its own effect, while others are undone before it or instead of it.
    pub aside: Option<Box<OwnEffect>>,
    /// By decision, only its second effects are undone.
    pub only_second: bool,
    /// What was said about it by hand, and can be corrected.
    pub by_hand: Option<HandSettlement>,
}

/// An effect that happened or may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartEffect {
    /// Whose compensation applies: the step's or its fallback's.
    pub side: CallSide,
    pub certain: bool,
    /// The first attempt that may have had it.
    pub attempt: u32,
}

impl StepPart {
    /// Whether a call of it was sent, going forward.
    pub(super) fn is_sent(&self) -> bool {
        self.attempts_of(CallSide::Do) + self.attempts_of(CallSide::Fallback) > 0
    }
}

impl StepPart {
    pub fn new() -> StepPart {
        StepPart {
            state: PartState::Pending,
            effect: None,
            attempts: [0; 4],
            withdrawn: [0; 4],
            failures: 0,
            losses: 0,
            probe_failures: 0,
            probe_losses: 0,
            began_at: None,
            sent_at: None,
            frozen: Millis(0),
            ended_at: None,
            parameters: None,
            result: None,
            key: None,
            key_since: None,
            key_unsure: None,
            sent: None,
            was_asking: false,
            sent_by: None,
            ended_with: None,
            fell_back: None,
            approved: None,
            approver: None,
            asked: None,
            is_defied: false,
            refused: None,
            accepted: false,
            accepted_because: "".into(),
            rest: 0,
            generation: 0,
            calls: Vec::new(),
            done: Vec::new(),
            undone_by: 0,
            answered: None,
            second: Vec::new(),
            late_done: Vec::new(),
            late_own: false,
            reported: None,
            aside: None,
            only_second: false,
            by_hand: None,
        }
    }

    /// In doubt, and not being probed: it waits for a person or for time.
    pub fn is_idle_doubt(&self) -> bool {
        matches!(&self.state, PartState::InDoubt { probing, .. } if !matches!(probing, ProbeProgress::Running(_)))
    }

    pub fn is_in_doubt(&self) -> bool {
        matches!(self.state, PartState::InDoubt { .. })
    }

    /// Started and not settled: it occupies one of the execution's slots, unless it is in doubt.
    pub fn is_active(&self) -> bool {
        use PartState as S;
        match &self.state {
            S::Asking { .. } | S::Approved { .. } | S::Running(_) | S::BackingOff { .. } | S::InDoubt { .. } => true,
            S::Pending
            | S::Completed { .. }
            | S::Failed { .. }
            | S::Cancelled
            | S::Compensated { .. }
            | S::CompensationFailed { .. } => false,
        }
    }

    /// The status of an item in expressions and views.
    pub fn status(&self) -> &'static str {
        match &self.state {
            PartState::Pending => "pending",
            PartState::Running(attempt) if attempt.side == CallSide::Undo => "compensating",
            PartState::BackingOff { side: CallSide::Undo, .. } => "compensating",
            PartState::Running(attempt) if attempt.inquiry.is_none() => "running",
            PartState::Asking { .. } | PartState::Approved { .. } | PartState::Running(_) => "waiting",
            PartState::BackingOff { .. } => "retrying",
            PartState::InDoubt { .. } => "in_doubt",
            PartState::Completed { .. } => "completed",
            PartState::Failed { .. } => "failed",
            PartState::Cancelled => "cancelled",
            PartState::Compensated { .. } => "compensated",
            PartState::CompensationFailed { .. } => "compensation_failed",
        }
    }

    /// The side of its current call.
    pub fn side(&self) -> Option<CallSide> {
        use PartState as S;
        match &self.state {
            S::Asking { side, .. }
            | S::Approved { side, .. }
            | S::BackingOff { side, .. }
            | S::InDoubt { side, .. } => Some(*side),
            S::Running(attempt) => Some(attempt.side),
            S::Pending
            | S::Completed { .. }
            | S::Failed { .. }
            | S::Cancelled
            | S::Compensated { .. }
            | S::CompensationFailed { .. } => None,
        }
    }

    pub fn is_undoing(&self) -> bool {
        self.side() == Some(CallSide::Undo)
    }

    /// The open attempt or probe.
    pub fn running(&self) -> Option<&Attempt> {
        match &self.state {
            PartState::Running(attempt) | PartState::InDoubt { probing: ProbeProgress::Running(attempt), .. } => {
                Some(attempt)
            }
            _ => None,
        }
    }

    pub fn attempts_of(&self, side: CallSide) -> u32 {
        self.attempts[side as usize]
    }

    /// The attempts that count.
    pub fn tries_of(&self, side: CallSide) -> u32 {
        self.attempts[side as usize] - self.withdrawn[side as usize]
    }

    /// The deadline of all its attempts together, counted from the first one.
    pub fn ends_by(&self, total: Option<Millis>) -> Option<Timestamp> {
        total.zip(self.began_at).map(|(span, began)| began.plus(span).plus(self.frozen))
    }

    /// Applies an event that concerns this part to its state and its history.
    ///
    /// `harmless` means that the call of the event's side is read-only.
    pub fn apply(&mut self, at: Timestamp, event: &Event, harmless: bool) -> Result<(), &'static str> {
        let next = table::next_state(self, at, event)?;
        self.remember(at, event, harmless);
        if !self.is_in_doubt() {
            (self.probe_failures, self.probe_losses) = (0, 0);
            self.reported = None;
        }
        self.state = next;
        self.adopt_if_failed();
        if self.state == PartState::Pending {
            (self.began_at, self.ended_at) = (None, None);
        } else if self.is_active() {
            self.ended_at = None;
        } else {
            self.ended_at.get_or_insert(at);
        }
        Ok(())
    }

    fn remember(&mut self, at: Timestamp, event: &Event, harmless: bool) {
        if matches!(event, Event::AttemptFailed { .. } | Event::AttemptLost { .. })
            && let PartState::Running(attempt) = &self.state
        {
            self.was_asking = attempt.inquiry.is_some();
        }
        match event {
            Event::ApprovalRequested { tool, basis, .. } => {
                let asked = |basis: &ApprovalBasis| AskedCall { tool: tool.clone(), basis: basis.clone() };
                self.asked = basis.as_deref().map(|basis| Arc::new(asked(basis)));
            }
            Event::ApprovalGranted { call, .. } => {
                self.approved = Some(*call);
                self.refused = None;
            }
            Event::ApprovalVoided { .. } => self.approved = None,
            Event::ApprovalDenied { .. } => self.refuse(RefusalKind::Denied, self.asked_for()),
            Event::ApprovalExpired { .. } => self.refuse(RefusalKind::Expired, self.asked_for()),
            Event::CallForbidden { side: CallSide::Probe, .. } => {}
            Event::CallForbidden { rule, digest, .. } => {
                let kind = if rule.is_some() { RefusalKind::Forbidden } else { RefusalKind::Denied };
                self.refuse(kind, Some(*digest));
                self.close_series(AttemptFollowUp::GiveUp);
            }
            Event::CallDelayed { until, failure, .. } => {
                // The time of a step runs while it waits for its server: its first attempt has come, and was put off.
                if failure.is_some() && self.began_at.is_none() {
                    (self.began_at, self.frozen) = (Some(at), Millis(0));
                }
                // An approval that expires while the call waits is asked for again.
                if matches!(self.state, PartState::Approved { expires_at, .. } if expires_at <= *until) {
                    self.approved = None;
                }
            }
            Event::AttemptStarted { side, attempt, by, key, parameters, .. } => {
                if *side != CallSide::Probe {
                    self.refused = None;
                    self.ended_with = None;
                }
                self.attempts[*side as usize] = *attempt;
                if self.began_at.is_none() {
                    (self.began_at, self.frozen) = (Some(at), Millis(0));
                }
                if *side != CallSide::Probe {
                    if self.key != Some(*key) {
                        self.forget_key();
                    }
                    self.key_since.get_or_insert(at);
                    self.key = Some(*key);
                    self.sent = Some((*side, parameters.clone()));
                    self.sent_by = Some(*by);
                    let (side, attempt, by, key, parameters) = (*side, *attempt, *by, *key, parameters.clone());
                    self.calls.push(PastCall { side, attempt, by, key, sent_at: at, parameters });
                }
                if matches!(side, CallSide::Do | CallSide::Fallback) {
                    self.sent_at = Some(at);
                    self.parameters = Some(parameters.clone());
                }
            }
            Event::LateAnswerArrived { side: CallSide::Undo, attempt, effect: Some(effect), .. } => {
                self.done.push((CallSide::Undo, *attempt));
                if *effect == LateEffect::Only {
                    self.undone();
                }
            }
            Event::LateAnswerArrived { side, attempt, answer, effect: Some(effect), .. } => {
                let unknown = || EventPayload::Present(Arc::new(Value::Null));
                let result = match answer {
                    LateAnswer::Done(result) => result.clone(),
                    LateAnswer::NotDone(_) | LateAnswer::Maybe(_) => unknown(),
                };
                self.was_done(*side, *attempt, &result, *effect == LateEffect::Only);
                self.late_own |= *effect == LateEffect::Only
                    && matches!(self.state, PartState::Failed { .. } | PartState::Cancelled);
                self.took_effect_late(*side, *attempt, result, *effect);
            }
            Event::LateAnswerArrived { side, attempt, answer: LateAnswer::Done(result), .. } => {
                if self.by_hand.is_some_and(|settled| settled.happened && settled.is_about(*side, *attempt)) {
                    self.was_done(*side, *attempt, result, true);
                }
                self.was_answered(*side, *attempt, result.clone());
                self.was_reported(event);
            }
            Event::LateAnswerArrived { .. } => self.was_reported(event),
            Event::SettlementCorrected { side, attempt, happened, result, effect, .. } => {
                self.correct(*side, *attempt, *happened, result.as_ref(), *effect);
            }
            Event::AttemptSucceeded { side: side @ (CallSide::Do | CallSide::Fallback), attempt, result, .. } => {
                self.done.push((*side, *attempt));
                self.forget_result_by_hand();
                self.happened(*side, Some(result.clone()), harmless);
            }
            Event::AttemptSucceeded { side: CallSide::Undo, attempt, .. } => {
                self.done.push((CallSide::Undo, *attempt));
                self.undone();
            }
            Event::AttemptFailed { side, then: AttemptFollowUp::Withdrawn, .. } => self.withdrawn[*side as usize] += 1,
            Event::AttemptSucceeded { side: CallSide::Probe, .. } => {}
            Event::AttemptFailed { side: CallSide::Probe, .. } => self.probe_failures += 1,
            Event::AttemptLost { side: CallSide::Probe, .. } => self.probe_losses += 1,
            Event::AttemptFailed { side, attempt, failure, maybe, then, .. } => {
                if *then == AttemptFollowUp::FallBack {
                    self.fell_back = Some(failure.clone());
                }
                self.ended_with = Some(failure.clone());
                self.failures += 1;
                self.key_unsure = self.key_unsure.or(maybe.then_some(*attempt));
                self.may_have_happened(*side, *maybe && !harmless);
                self.close_series(*then);
                self.end_undoing(*side, *then);
            }
            Event::AttemptLost { side, attempt, then, .. } => {
                self.ended_with = Some(outcome::lost(self));
                self.losses += 1;
                self.key_unsure = self.key_unsure.or(Some(*attempt));
                self.may_have_happened(*side, !harmless);
                self.close_series(*then);
                self.end_undoing(*side, *then);
            }
            Event::DoubtSettled { side: CallSide::Undo, happened: true, .. } => {
                if let PartState::InDoubt { attempt, .. } = self.state {
                    self.done.push((CallSide::Undo, attempt));
                }
                self.undone();
            }
            Event::KeyExpired { .. } => self.close_series(AttemptFollowUp::InDoubt),
            Event::DoubtSettled { side: CallSide::Undo, happened: false, then, .. } => {
                self.forget_key();
                self.end_undoing(CallSide::Undo, *then);
            }
            Event::DoubtSettled { side, happened, source, result, then, .. } => {
                if let PartState::InDoubt { attempt, .. } = self.state {
                    match source {
                        DoubtSource::Person => self.settled_by_hand(*side, attempt, *happened),
                        DoubtSource::Probe | DoubtSource::LateAnswer => self.forget_result_by_hand(),
                    }
                }
                if *happened {
                    if let PartState::InDoubt { attempt, .. } = self.state {
                        self.done.push((*side, attempt));
                    }
                    self.happened(*side, result.clone(), harmless);
                } else {
                    self.effect = None;
                    self.forget_key();
                    self.close_series(*then);
                }
            }
            Event::PreparationFailed { side: CallSide::Do | CallSide::Fallback | CallSide::Undo, failure, .. } => {
                self.close_series(AttemptFollowUp::GiveUp);
                if failure.category == FailureCategory::Unauthorized {
                    self.refuse(RefusalKind::Unjudged, None);
                }
            }
            Event::RetryAbandoned { .. } => self.close_series(AttemptFollowUp::GiveUp),
            Event::QuestionAnswered { about: Question::Item(_), answer: QuestionAnswer::Skip, reason, .. } => {
                (self.accepted, self.accepted_because) = (true, reason.as_str().into());
            }
            Event::QuestionAnswered { answer: QuestionAnswer::Retry, .. } => {
                self.failures = 0;
                self.losses = 0;
                self.accepted = false;
                self.late_own = false;
                if matches!(self.state, PartState::Failed { .. } | PartState::Compensated { .. }) {
                    self.began_at = None;
                }
            }
            Event::QuestionAnswered { answer: QuestionAnswer::Resolve, result, .. } => {
                if matches!(self.state, PartState::CompensationFailed { .. }) {
                    self.undone();
                } else {
                    // An effect that may have happened must be undone, even if the step was then completed by hand.
                    let side = self.effect.map_or(CallSide::Do, |effect| effect.side);
                    let known = self.effect.filter(|effect| effect.certain);
                    self.settled_by_hand(side, known.map_or(self.attempts_of(side), |known| known.attempt), true);
                    self.happened(side, result.clone(), harmless);
                    // What a tool has answered is on record, whatever is said by hand.
                    self.effect = known.or(self.effect);
                    self.late_own = false;
                }
            }
            Event::CompensationRecorded { .. } => self.undone(),
            _ => {}
        }
    }

    fn refuse(&mut self, kind: RefusalKind, digest: Option<Hash>) {
        self.approved = None;
        self.refused = Some(PartRefusal { kind, digest });
    }

    /// Tool and parameters of the call that was asked for last.
    pub fn asked_for(&self) -> Option<Hash> {
        self.asked.as_ref().map(|asked| asked.basis.digest)
    }

    fn happened(&mut self, side: CallSide, result: Option<EventPayload>, harmless: bool) {
        if !harmless {
            let attempt = self.attempts_of(side);
            self.effect = Some(PartEffect { side, certain: true, attempt });
        }
        self.result = result;
        self.answered = None;
        (self.failures, self.losses) = (0, 0);
        self.approved = None;
    }

    fn may_have_happened(&mut self, side: CallSide, maybe: bool) {
        if maybe && matches!(side, CallSide::Do | CallSide::Fallback) {
            let attempt = self.attempts_of(side);
            self.effect.get_or_insert(PartEffect { side, certain: false, attempt });
        }
    }
}

impl Default for StepPart {
    fn default() -> StepPart {
        StepPart::new()
    }
}
