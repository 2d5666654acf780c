//! One part: a step, or one item of a step that fans out. Its states, and what it remembers.

mod table;

use crate::hash::Hash;
use crate::id::ToolName;
use crate::journal::event::{Answer, Event, Side, Then};
use crate::journal::payload::Payload;
use crate::mutation::Mutation;
use crate::plan::Driver;
use crate::time::Timestamp;
use crate::tool::{Category, Failure};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub enum PartState {
    /// Not begun.
    Pending,
    /// Waits for a person's yes to exactly this call.
    Asking {
        side: Side,
        call: Hash,
        expires_at: Timestamp,
    },
    /// Has the yes, waits for its turn.
    Approved {
        side: Side,
        call: Hash,
        expires_at: Timestamp,
    },
    Running(Attempt),
    /// Will be tried, again or by its fallback or undo, at this time.
    BackingOff {
        side: Side,
        until: Timestamp,
    },
    /// May or may not have taken effect, and must not be repeated before that is known.
    InDoubt {
        side: Side,
        attempt: u32,
        probing: Probing,
    },
    Completed {
        by_hand: bool,
    },
    Failed {
        failure: Failure,
    },
    /// Certainly has no effect and will not be done.
    Cancelled,
    Compensated {
        by_hand: bool,
    },
    /// `accepted`: somebody decided to leave it so.
    CompensationFailed {
        failure: Failure,
        accepted: bool,
    },
}

/// An attempt under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub side: Side,
    pub number: u32,
    pub by: Driver,
    pub started_at: Timestamp,
    pub deadline: Option<Timestamp>,
    pub sent: Arc<Sent>,
    /// Under this the tool can be asked about it, also after a crash.
    pub ticket: Option<Arc<str>>,
    /// What the tool wants to know before it goes on.
    pub inquiry: Option<Arc<Inquiry>>,
}

/// What an attempt was made of, for whoever has to go on with exactly that.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub tool: ToolName,
    pub definition: Hash,
    pub key: Hash,
    pub parameters: Payload,
}

/// A question of a tool, in the tool's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    pub message: String,
    pub schema: Payload,
}

/// How far finding out has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Probing {
    NotYet,
    Running(Attempt),
    BackingOff {
        until: Timestamp,
    },
    /// The answer is there and has to be judged.
    Answered(Payload),
    /// No probe, or none that could tell: a person must say.
    Exhausted {
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub state: PartState,
    /// What there may be to undo.
    pub effect: Option<Effect>,
    /// Attempts started, by side.
    pub attempts: [u32; 4],
    /// Attempts that failed since the last fresh start, and attempts lost to crashes.
    pub failures: u32,
    pub losses: u32,
    pub began_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// What the last forward attempt was called with; compensations and probes may read it.
    pub parameters: Option<Payload>,
    pub result: Option<Payload>,
    /// The key of the last attempt that could have an effect; its probe asks for it.
    pub key: Option<Hash>,
    /// What that attempt was called with. Trying again means exactly this, whatever has changed since.
    pub sent: Option<(Side, Payload)>,
    /// A granted, unused approval.
    pub approved: Option<Hash>,
    /// The place in the order in which parts came to rest; undoing goes backwards.
    pub rest: u64,
    /// Raised by each compensation, so that doing it anew gets a new key.
    pub generation: u32,
}

/// An effect that happened, or may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Whose compensation applies: the step's or its fallback's.
    pub side: Side,
    pub certain: bool,
}

impl Part {
    pub fn new() -> Part {
        Part {
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
            approved: None,
            rest: 0,
            generation: 0,
        }
    }

    /// Begun and not at rest: it holds one of the execution's places.
    pub fn is_active(&self) -> bool {
        use PartState as S;
        match &self.state {
            S::Asking { .. }
            | S::Approved { .. }
            | S::Running(_)
            | S::BackingOff { .. }
            | S::InDoubt { .. } => true,
            S::Pending
            | S::Completed { .. }
            | S::Failed { .. }
            | S::Cancelled
            | S::Compensated { .. }
            | S::CompensationFailed { .. } => false,
        }
    }

    /// The side of the call it is busy with.
    pub fn side(&self) -> Option<Side> {
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
        self.side() == Some(Side::Undo)
    }

    /// The attempt or probe under way.
    pub fn running(&self) -> Option<&Attempt> {
        match &self.state {
            PartState::Running(attempt) | PartState::InDoubt { probing: Probing::Running(attempt), .. } => {
                Some(attempt)
            }
            _ => None,
        }
    }

    pub fn attempts_of(&self, side: Side) -> u32 {
        self.attempts[side as usize]
    }

    /// The state after an event that concerns this part, and what the part remembers of it.
    ///
    /// `harmless` says that the call of the event's side is read-only.
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
            Event::AttemptStarted { side, attempt, key, parameters, .. } => {
                self.attempts[*side as usize] = *attempt;
                self.began_at.get_or_insert(at);
                if *side != Side::Probe {
                    self.key = Some(*key);
                    self.sent = Some((*side, parameters.clone()));
                }
                if matches!(side, Side::Do | Side::Fallback) {
                    self.parameters = Some(parameters.clone());
                }
            }
            Event::AttemptSucceeded { side: side @ (Side::Do | Side::Fallback), result, .. } => {
                self.happened(*side, Some(result.clone()), harmless);
            }
            Event::AttemptSucceeded { side: Side::Undo, .. } => self.undone(),
            Event::AttemptSucceeded { side: Side::Probe, .. }
            | Event::AttemptFailed { side: Side::Probe, .. } => {}
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
            Event::DoubtSettled { side: Side::Undo, happened: true, .. }
                if Mutation::UndoTwice.is_active() => {}
            Event::DoubtSettled { side: Side::Undo, happened: true, .. } => self.undone(),
            Event::DoubtSettled { side: Side::Undo, happened: false, .. } => {}
            Event::DoubtSettled { side, happened, result, then, .. } => {
                if *happened {
                    self.happened(*side, result.clone(), harmless);
                } else {
                    self.effect = None;
                    self.close_series(*then);
                }
            }
            Event::QuestionAnswered { answer: Answer::Retry, .. } => {
                self.failures = 0;
                self.losses = 0;
            }
            Event::QuestionAnswered { answer: Answer::Resolve, result, .. } => {
                if matches!(self.state, PartState::CompensationFailed { .. }) {
                    self.undone();
                } else {
                    self.happened(Side::Do, result.clone(), harmless);
                }
            }
            Event::CompensationRecorded { .. } => self.undone(),
            _ => {}
        }
    }

    fn happened(&mut self, side: Side, result: Option<Payload>, harmless: bool) {
        if !harmless {
            self.effect = Some(Effect { side, certain: true });
        }
        self.result = result;
        (self.failures, self.losses) = (0, 0);
        self.approved = None;
    }

    fn may_have_happened(&mut self, side: Side, maybe: bool) {
        if maybe && matches!(side, Side::Do | Side::Fallback) && !Mutation::ForgetTouched.is_active() {
            self.effect.get_or_insert(Effect { side, certain: false });
        }
    }

    /// Where doing it anew starts: at the first call, unless the fallback may have taken effect.
    fn anew(&self, at: Timestamp) -> PartState {
        match self.effect {
            Some(Effect { side: side @ Side::Fallback, .. }) => PartState::BackingOff { side, until: at },
            Some(_) | None => PartState::Pending,
        }
    }

    /// Back to the start, remembering what it may have done: attempts, effect, generation.
    pub fn revive(&mut self, at: Timestamp) {
        self.state = self.anew(at);
        self.failures = 0;
        self.losses = 0;
        self.approved = None;
        self.result = None;
        self.began_at = None;
        self.ended_at = None;
    }

    /// Comes to rest without being tried again, if nothing is under way. Says whether it did.
    pub fn stop(&mut self) -> bool {
        match &self.state {
            PartState::Pending
            | PartState::Asking { .. }
            | PartState::Approved { .. }
            | PartState::BackingOff { side: Side::Do | Side::Fallback, .. } => {}
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
                failure: Failure::new(
                    Category::Cancelled,
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

    /// An approval is for one effect of one call: it does not outlive the series of attempts it was given for.
    fn close_series(&mut self, then: Then) {
        match then {
            Then::RetryAt(_) => {}
            Then::FallBack | Then::InDoubt | Then::GiveUp => {
                if !Mutation::ApprovalUsedTwice.is_active() {
                    self.approved = None;
                }
                self.failures = 0;
            }
        }
    }
}

impl Default for Part {
    fn default() -> Part {
        Part::new()
    }
}
