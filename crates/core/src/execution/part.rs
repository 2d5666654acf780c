//! One part: a step, or one item of a step that fans out. Its states and its history.

mod table;

use crate::hash::Hash;
use crate::id::ToolName;
use crate::journal::event::{AttemptFollowUp, CallSide, Event, QuestionAnswer};
use crate::journal::payload::EventPayload;
use crate::plan::Driver;
use crate::time::{Millis, Timestamp};
use crate::tool::{FailureCategory, ToolFailure};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub enum PartState {
    /// Not started.
    Pending,
    /// Waits for a person's approval of exactly this call.
    Asking {
        side: CallSide,
        call: Hash,
        expires_at: Timestamp,
    },
    /// Approved, waits to be started.
    Approved {
        side: CallSide,
        call: Hash,
        expires_at: Timestamp,
    },
    Running(Attempt),
    /// Will be called at this time: a retry, its fallback or its compensation.
    BackingOff {
        side: CallSide,
        until: Timestamp,
    },
    /// May or may not have taken effect, and must not be repeated before that is known.
    InDoubt {
        side: CallSide,
        attempt: u32,
        probing: ProbeProgress,
    },
    Completed {
        by_hand: bool,
    },
    Failed {
        failure: ToolFailure,
    },
    /// Certainly had no effect and will not run.
    Cancelled,
    Compensated {
        by_hand: bool,
    },
    /// `accepted`: the remaining effect was accepted by decision.
    CompensationFailed {
        failure: ToolFailure,
        accepted: bool,
    },
}

/// An open attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub side: CallSide,
    pub number: u32,
    pub by: Driver,
    pub started_at: Timestamp,
    pub deadline: Option<Timestamp>,
    pub sent: Arc<SentCall>,
    /// The ticket with which the tool can be asked about it, even after a crash.
    pub ticket: Option<Arc<str>>,
    /// The tool's open question.
    pub inquiry: Option<Arc<ToolInquiry>>,
}

/// What an attempt sent, so that it can be repeated or resumed exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct SentCall {
    pub tool: ToolName,
    pub definition: Hash,
    pub key: Hash,
    pub parameters: EventPayload,
}

/// A question of a tool; the message is the tool's.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInquiry {
    pub message: String,
    pub schema: EventPayload,
}

/// The progress of probing a doubt.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeProgress {
    NotYet,
    Running(Attempt),
    BackingOff {
        until: Timestamp,
    },
    /// The probe has answered; the answer has to be evaluated.
    Answered(EventPayload),
    /// There is no probe, or it settled nothing: a person must decide.
    Exhausted {
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepPart {
    pub state: PartState,
    /// The effect that may have to be undone.
    pub effect: Option<PartEffect>,
    /// Attempts started, by side.
    pub attempts: [u32; 4],
    /// Attempts that failed since the last restart of the part, and attempts lost to crashes.
    pub failures: u32,
    pub losses: u32,
    pub began_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// The parameters of the last forward attempt; compensations and probes may read them.
    pub parameters: Option<EventPayload>,
    pub result: Option<EventPayload>,
    /// The key of the last attempt that could have an effect; its probe uses it.
    pub key: Option<Hash>,
    /// The parameters of that attempt. A retry sends exactly these, whatever has changed since.
    pub sent: Option<(CallSide, EventPayload)>,
    /// Who made that attempt.
    pub sent_by: Option<Driver>,
    /// A granted, unused approval.
    pub approved: Option<Hash>,
    /// The position in the order in which parts settled; undoing goes backwards.
    pub rest: u64,
    /// Raised by each compensation, so that a new run gets a new key.
    pub generation: u32,
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
    pub fn new() -> StepPart {
        StepPart {
            state: PartState::Pending,
            effect: None,
            attempts: [0; 4],
            failures: 0,
            losses: 0,
            began_at: None,
            ended_at: None,
            parameters: None,
            result: None,
            key: None,
            sent: None,
            sent_by: None,
            approved: None,
            rest: 0,
            generation: 0,
        }
    }

    /// Started and not settled: it occupies one of the execution's slots.
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

    /// The deadline of all its attempts together, counted from the first one.
    pub fn ends_by(&self, total: Option<Millis>) -> Option<Timestamp> {
        total.zip(self.began_at).map(|(span, began)| began.plus(span))
    }

    /// Applies an event that concerns this part to its state and its history.
    ///
    /// `harmless` means that the call of the event's side is read-only.
    pub fn apply(&mut self, at: Timestamp, event: &Event, harmless: bool) -> Result<(), &'static str> {
        let next = table::next_state(self, at, event)?;
        self.remember(at, event, harmless);
        self.state = next;
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
        match event {
            Event::ApprovalGranted { call, .. } => self.approved = Some(*call),
            Event::ApprovalVoided { .. } | Event::ApprovalDenied { .. } | Event::ApprovalExpired { .. } => {
                self.approved = None;
            }
            Event::AttemptStarted { side, attempt, by, key, parameters, .. } => {
                self.attempts[*side as usize] = *attempt;
                self.began_at.get_or_insert(at);
                if *side != CallSide::Probe {
                    self.key = Some(*key);
                    self.sent = Some((*side, parameters.clone()));
                    self.sent_by = Some(*by);
                }
                if matches!(side, CallSide::Do | CallSide::Fallback) {
                    self.parameters = Some(parameters.clone());
                }
            }
            Event::AttemptSucceeded { side: side @ (CallSide::Do | CallSide::Fallback), result, .. } => {
                self.happened(*side, Some(result.clone()), harmless);
            }
            Event::AttemptSucceeded { side: CallSide::Undo, .. } => self.undone(),
            Event::AttemptSucceeded { side: CallSide::Probe, .. }
            | Event::AttemptFailed { side: CallSide::Probe, .. } => {}
            Event::AttemptFailed { side, maybe, then, .. } => {
                self.failures += 1;
                self.may_have_happened(*side, *maybe && !harmless);
                self.close_series(*then);
            }
            Event::AttemptLost { side, then, .. } => {
                self.losses += 1;
                self.may_have_happened(*side, !harmless);
                self.close_series(*then);
            }
            Event::DoubtSettled { side: CallSide::Undo, happened: true, .. } => self.undone(),
            Event::DoubtSettled { side: CallSide::Undo, happened: false, .. } => {}
            Event::DoubtSettled { side, happened, result, then, .. } => {
                if *happened {
                    self.happened(*side, result.clone(), harmless);
                } else {
                    self.effect = None;
                    self.close_series(*then);
                }
            }
            Event::RetryAbandoned { .. }
            | Event::PreparationFailed { side: CallSide::Do | CallSide::Fallback | CallSide::Undo, .. } => {
                self.close_series(AttemptFollowUp::GiveUp);
            }
            Event::QuestionAnswered { answer: QuestionAnswer::Retry, .. } => {
                self.failures = 0;
                self.losses = 0;
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
                    self.happened(side, result.clone(), harmless);
                }
            }
            Event::CompensationRecorded { .. } => self.undone(),
            _ => {}
        }
    }

    fn happened(&mut self, side: CallSide, result: Option<EventPayload>, harmless: bool) {
        if !harmless {
            let attempt = self.attempts_of(side);
            self.effect = Some(PartEffect { side, certain: true, attempt });
        }
        self.result = result;
        (self.failures, self.losses) = (0, 0);
        self.approved = None;
    }

    fn may_have_happened(&mut self, side: CallSide, maybe: bool) {
        if maybe && matches!(side, CallSide::Do | CallSide::Fallback) {
            let attempt = self.attempts_of(side);
            self.effect.get_or_insert(PartEffect { side, certain: false, attempt });
        }
    }

    /// The state in which a new run starts: the first call, unless the fallback may have taken effect.
    fn anew(&self, at: Timestamp) -> PartState {
        match self.effect {
            Some(PartEffect { side: side @ CallSide::Fallback, .. }) => PartState::BackingOff { side, until: at },
            Some(_) | None => PartState::Pending,
        }
    }

    /// Restarts the part, but keeps its attempts, effect and generation.
    pub fn revive(&mut self, at: Timestamp) {
        self.state = self.anew(at);
        self.failures = 0;
        self.losses = 0;
        self.approved = None;
        self.result = None;
        self.began_at = None;
        self.ended_at = None;
    }

    /// Settles the part without another attempt, unless one is open. Returns whether it did.
    pub fn stop(&mut self) -> bool {
        match &self.state {
            PartState::Pending
            | PartState::Asking { .. }
            | PartState::Approved { .. }
            | PartState::BackingOff { side: CallSide::Do | CallSide::Fallback, .. } => {}
            PartState::Running(_)
            | PartState::BackingOff { .. }
            | PartState::InDoubt { .. }
            | PartState::Completed { .. }
            | PartState::Failed { .. }
            | PartState::Cancelled
            | PartState::Compensated { .. }
            | PartState::CompensationFailed { .. } => return false,
        }
        self.approved = None;
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

    fn undone(&mut self) {
        self.sent = None;
        (self.failures, self.losses) = (0, 0);
        self.effect = None;
        self.generation += 1;
    }

    /// An approval is for one effect of one call: it ends with the series of attempts it was granted for.
    fn close_series(&mut self, then: AttemptFollowUp) {
        match then {
            AttemptFollowUp::RetryAt(_) => {}
            AttemptFollowUp::FallBack | AttemptFollowUp::InDoubt | AttemptFollowUp::GiveUp => {
                self.approved = None;
                self.failures = 0;
            }
        }
    }
}

impl Default for StepPart {
    fn default() -> StepPart {
        StepPart::new()
    }
}
