//! One part: a step, or one item of a step that fans out. Its states, and the one table of how they change.

use crate::hash::Hash;
use crate::journal::event::{Answer, Event, LateAnswer, Side, Then};
use crate::journal::payload::Payload;
use crate::mutation::Mutation;
use crate::plan::Driver;
use crate::time::Timestamp;
use crate::tool::{Category, Failure};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub side: Side,
    pub number: u32,
    pub by: Driver,
    pub started_at: Timestamp,
    pub deadline: Option<Timestamp>,
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

    pub fn attempts_of(&self, side: Side) -> u32 {
        self.attempts[side as usize]
    }

    /// The state after an event that concerns this part, and what the part remembers of it.
    ///
    /// `harmless` says that the call of the event's side is read-only.
    pub fn apply(&mut self, at: Timestamp, event: &Event, harmless: bool) -> Result<(), &'static str> {
        let next = next_state(self, at, event)?;
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
                }
                if matches!(side, Side::Do | Side::Fallback) {
                    self.parameters = Some(parameters.clone());
                }
            }
            Event::AttemptSucceeded { side: side @ (Side::Do | Side::Fallback), result, .. } => {
                self.happened(*side, Some(result.clone()), harmless);
            }
            Event::AttemptSucceeded { side: Side::Undo, .. } => self.undone(),
            Event::AttemptSucceeded { side: Side::Probe, .. } | Event::AttemptFailed { side: Side::Probe, .. } => {}
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
            Event::DoubtSettled { side: Side::Undo, happened, .. } => {
                if *happened && !Mutation::UndoTwice.is_active() {
                    self.undone();
                }
            }
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
        if !Mutation::ApprovalUsedTwice.is_active() {
            self.approved = None;
        }
    }

    fn may_have_happened(&mut self, side: Side, maybe: bool) {
        if maybe && matches!(side, Side::Do | Side::Fallback) && !Mutation::ForgetTouched.is_active() {
            self.effect.get_or_insert(Effect { side, certain: false });
        }
    }

    /// Back to the start, remembering what it may have done: attempts, effect, generation.
    pub fn revive(&mut self) {
        self.state = PartState::Pending;
        self.failures = 0;
        self.losses = 0;
        self.approved = None;
        self.result = None;
        self.began_at = None;
        self.ended_at = None;
    }

    fn undone(&mut self) {
        (self.failures, self.losses) = (0, 0);
        self.effect = None;
        self.generation += 1;
    }

    /// An approval is for one effect of one call: it does not outlive the series of attempts it was given for.
    fn close_series(&mut self, then: Then) {
        match then {
            Then::RetryAt(_) => {}
            Then::FallBack | Then::InDoubt | Then::GiveUp => {
                self.approved = None;
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

/// The table: which event may follow which state, and where it leads. Everything else is an error, never a guess.
fn next_state(part: &Part, at: Timestamp, event: &Event) -> Result<PartState, &'static str> {
    use {Event as E, PartState as S};
    let next = match event {
        E::ApprovalRequested { side, call, expires_at, .. } => {
            let asking = S::Asking { side: *side, call: *call, expires_at: *expires_at };
            match &part.state {
                S::Pending => asking,
                S::BackingOff { side: waiting, .. } if waiting == side => asking,
                S::Asking { .. }
                | S::Approved { .. }
                | S::Running(_)
                | S::BackingOff { .. }
                | S::InDoubt { .. } => {
                    return Err("is already under way");
                }
                S::Completed { .. }
                | S::Failed { .. }
                | S::Cancelled
                | S::Compensated { .. }
                | S::CompensationFailed { .. } => return Err("is at rest"),
            }
        }
        E::ApprovalGranted { call, .. } => match &part.state {
            S::Asking { side, call: asked, expires_at }
                if asked == call || Mutation::ApprovalNotBoundToCall.is_active() =>
            {
                S::Approved { side: *side, call: *call, expires_at: *expires_at }
            }
            other => return not_asked(other),
        },
        E::ApprovalDenied { call, reason, .. } => match &part.state {
            S::Asking { call: asked, .. } if asked == call => S::Failed {
                failure: Failure::new(Category::Unauthorized, format!("approval denied: {reason}")),
            },
            other => return not_asked(other),
        },
        E::ApprovalExpired { call, .. } => match &part.state {
            S::Asking { call: asked, .. } if asked == call => {
                S::Failed { failure: Failure::new(Category::Unauthorized, "nobody approved it in time") }
            }
            other => return not_asked(other),
        },
        E::ApprovalVoided { .. } => match &part.state {
            // The side is kept by waiting for it at once; a first call goes back to the start.
            S::Asking { side, .. } | S::Approved { side, .. } => again(part, *side, at),
            other => return not_asked(other),
        },
        E::AttemptStarted { side: Side::Probe, attempt, by, deadline, .. } => match &part.state {
            S::InDoubt { side, attempt: doubted, probing: Probing::NotYet | Probing::BackingOff { .. } } => {
                let number = *attempt;
                let probe =
                    Attempt { side: Side::Probe, number, by: *by, started_at: at, deadline: *deadline };
                S::InDoubt { side: *side, attempt: *doubted, probing: Probing::Running(probe) }
            }
            other => return not_in_doubt(other),
        },
        E::AttemptStarted { side, attempt, by, deadline, .. } => {
            if *attempt != part.attempts_of(*side) + 1 {
                return Err("has another number of attempts behind it");
            }
            let attempt =
                Attempt { side: *side, number: *attempt, by: *by, started_at: at, deadline: *deadline };
            match &part.state {
                S::Pending if *side == Side::Do => S::Running(attempt),
                S::Approved { side: approved, .. } if approved == side => S::Running(attempt),
                S::BackingOff { side: waiting, .. } if waiting == side => S::Running(attempt),
                // Undoing begins from wherever the part came to rest with an effect.
                S::Completed { .. } | S::Failed { .. } | S::CompensationFailed { .. }
                    if *side == Side::Undo =>
                {
                    S::Running(attempt)
                }
                // An agent may do without asking; that is recorded as a deviation beside this.
                S::Asking { .. } if *by == Driver::Agent => S::Running(attempt),
                S::Pending
                | S::Asking { .. }
                | S::Approved { .. }
                | S::Running(_)
                | S::BackingOff { .. }
                | S::InDoubt { .. }
                | S::Completed { .. }
                | S::Failed { .. }
                | S::Cancelled
                | S::Compensated { .. }
                | S::CompensationFailed { .. } => return Err("cannot be started from here"),
            }
        }
        E::AttemptSucceeded { side: Side::Probe, attempt, result, .. } => {
            let (side, doubted) = running_probe(part, *attempt)?;
            S::InDoubt { side, attempt: doubted, probing: Probing::Answered(result.clone()) }
        }
        E::AttemptSucceeded { side, attempt, .. } => {
            running(part, *side, *attempt)?;
            match side {
                Side::Undo => S::Compensated { by_hand: false },
                Side::Do | Side::Fallback | Side::Probe => S::Completed { by_hand: false },
            }
        }
        E::AttemptFailed { side: Side::Probe, attempt, failure, then, .. } => {
            let (side, doubted) = running_probe(part, *attempt)?;
            let probing = match then {
                Then::RetryAt(until) => Probing::BackingOff { until: *until },
                Then::FallBack | Then::InDoubt | Then::GiveUp => {
                    Probing::Exhausted { reason: format!("the probe failed: {failure}") }
                }
            };
            S::InDoubt { side, attempt: doubted, probing }
        }
        E::AttemptLost { side: Side::Probe, attempt, then, .. } => {
            let (side, doubted) = running_probe(part, *attempt)?;
            let probing = match then {
                Then::RetryAt(until) => Probing::BackingOff { until: *until },
                Then::FallBack | Then::InDoubt | Then::GiveUp => {
                    Probing::Exhausted { reason: "the probe was lost too often".into() }
                }
            };
            S::InDoubt { side, attempt: doubted, probing }
        }
        E::AttemptFailed { side, attempt, failure, then, .. } => {
            running(part, *side, *attempt)?;
            after(*side, *attempt, *then, at, failure.clone())
        }
        E::AttemptLost { side, attempt, then, .. } => {
            running(part, *side, *attempt)?;
            after(
                *side,
                *attempt,
                *then,
                at,
                Failure::new(Category::Internal, "its attempts were lost to crashes"),
            )
        }
        E::PreparationFailed { side, failure, .. } => match &part.state {
            S::Pending | S::Approved { .. } | S::BackingOff { .. } => given_up(*side, failure.clone()),
            S::Completed { .. } | S::Failed { .. } | S::CompensationFailed { .. } if *side == Side::Undo => {
                given_up(*side, failure.clone())
            }
            S::InDoubt { side, attempt, .. } => S::InDoubt {
                side: *side,
                attempt: *attempt,
                probing: Probing::Exhausted { reason: format!("the probe could not be prepared: {failure}") },
            },
            S::Completed { .. }
            | S::Failed { .. }
            | S::Asking { .. }
            | S::Running(_)
            | S::Cancelled
            | S::Compensated { .. }
            | S::CompensationFailed { .. } => return Err("was not being prepared"),
        },
        E::RetryAbandoned { side, failure, .. } => match &part.state {
            S::BackingOff { side: waiting, .. } if waiting == side => given_up(*side, failure.clone()),
            // An agent that ends leaves behind what it never began.
            S::Pending | S::Asking { .. } | S::Approved { .. } if *side != Side::Undo => {
                given_up(*side, failure.clone())
            }
            S::Pending
            | S::Asking { .. }
            | S::Approved { .. }
            | S::Running(_)
            | S::BackingOff { .. }
            | S::InDoubt { .. }
            | S::Completed { .. }
            | S::Failed { .. }
            | S::Cancelled
            | S::Compensated { .. }
            | S::CompensationFailed { .. } => return Err("was not waiting for a retry"),
        },
        E::ProbeInconclusive { reason, .. } => match &part.state {
            S::InDoubt { side, attempt, probing: Probing::Answered(_) | Probing::NotYet } => S::InDoubt {
                side: *side,
                attempt: *attempt,
                probing: Probing::Exhausted { reason: reason.clone() },
            },
            other => return not_in_doubt(other),
        },
        E::LateAnswerArrived { answer, .. } => match (&part.state, answer) {
            (S::Completed { .. }, LateAnswer::NotDone(failure))
                if Mutation::LateAnswerOverwrites.is_active() =>
            {
                S::Failed { failure: failure.clone() }
            }
            (unchanged, _) => unchanged.clone(),
        },
        E::DoubtSettled { side, happened, then, .. } => match &part.state {
            S::InDoubt { side: doubted, attempt, .. } if doubted == side => match (happened, side) {
                (true, Side::Undo) if Mutation::UndoTwice.is_active() => {
                    S::BackingOff { side: *side, until: at }
                }
                (true, Side::Undo) => S::Compensated { by_hand: false },
                (true, Side::Do | Side::Fallback | Side::Probe) => S::Completed { by_hand: false },
                (false, _) => {
                    after(*side, *attempt, *then, at, Failure::new(Category::Internal, "it did not happen"))
                }
            },
            other => return not_in_doubt(other),
        },
        E::QuestionAnswered { answer, .. } => match (&part.state, answer) {
            (S::Failed { .. } | S::Compensated { .. }, Answer::Retry) => S::Pending,
            (S::Failed { .. } | S::Pending | S::Compensated { .. }, Answer::Resolve) => S::Completed { by_hand: true },
            (S::CompensationFailed { .. }, Answer::Retry) => S::BackingOff { side: Side::Undo, until: at },
            (S::CompensationFailed { .. }, Answer::Resolve) => S::Compensated { by_hand: true },
            (S::CompensationFailed { failure, .. }, Answer::Skip) => {
                S::CompensationFailed { failure: failure.clone(), accepted: true }
            }
            (unchanged, Answer::Retry | Answer::Skip | Answer::Resolve) => unchanged.clone(),
            (unchanged, Answer::Stop | Answer::Continue | Answer::Compensate | Answer::Replan) => {
                unchanged.clone()
            }
        },
        E::CompensationRecorded { .. } => match &part.state {
            S::Completed { .. }
            | S::Failed { .. }
            | S::CompensationFailed { .. }
            | S::BackingOff { side: Side::Undo, .. } => S::Compensated { by_hand: true },
            S::Pending
            | S::Asking { .. }
            | S::Approved { .. }
            | S::Running(_)
            | S::BackingOff { .. }
            | S::InDoubt { .. }
            | S::Cancelled
            | S::Compensated { .. } => return Err("has no effect that is at rest"),
        },
        E::ExecutionOpened { .. }
        | E::ExecutionStarted {}
        | E::FanOutOpened { .. }
        | E::StepsSkipped { .. }
        | E::FailureHandled { .. }
        | E::LimitReached { .. }
        | E::Paused { .. }
        | E::Resumed { .. }
        | E::CancelRequested { .. }
        | E::Killed { .. }
        | E::CompensationStarted { .. }
        | E::ReplanBegun { .. }
        | E::ReplanAbandoned { .. }
        | E::Replanned { .. }
        | E::HandedOver { .. }
        | E::ToolDrifted { .. }
        | E::ToolAccepted { .. }
        | E::DecisionRecorded { .. }
        | E::ActionRecorded { .. }
        | E::ContextSaved { .. }
        | E::DeviationFound { .. }
        | E::ExecutionEnded { .. } => return Err("is not what this event is about"),
    };
    Ok(next)
}

/// Where a closed attempt leads.
fn after(side: Side, attempt: u32, then: Then, at: Timestamp, failure: Failure) -> PartState {
    match then {
        Then::RetryAt(until) => PartState::BackingOff { side, until },
        Then::FallBack => PartState::BackingOff { side: Side::Fallback, until: at },
        Then::InDoubt => PartState::InDoubt { side, attempt, probing: Probing::NotYet },
        Then::GiveUp => given_up(side, failure),
    }
}

fn given_up(side: Side, failure: Failure) -> PartState {
    match side {
        Side::Undo => PartState::CompensationFailed { failure, accepted: false },
        Side::Do | Side::Fallback | Side::Probe => PartState::Failed { failure },
    }
}

/// Back to where a call of this side starts from.
fn again(part: &Part, side: Side, at: Timestamp) -> PartState {
    match side {
        Side::Do if part.attempts_of(Side::Do) == 0 => PartState::Pending,
        side => PartState::BackingOff { side, until: at },
    }
}

fn running(part: &Part, side: Side, number: u32) -> Result<(), &'static str> {
    match &part.state {
        PartState::Running(attempt) if (attempt.side, attempt.number) == (side, number) => Ok(()),
        _ => Err("is not running this attempt"),
    }
}

/// The side and attempt in doubt that a running probe asks about.
fn running_probe(part: &Part, number: u32) -> Result<(Side, u32), &'static str> {
    match &part.state {
        PartState::InDoubt { side, attempt, probing: Probing::Running(probe) } if probe.number == number => {
            Ok((*side, *attempt))
        }
        _ => Err("is not running this probe"),
    }
}

fn not_asked(_: &PartState) -> Result<PartState, &'static str> {
    Err("does not wait for approval of this call")
}

fn not_in_doubt(_: &PartState) -> Result<PartState, &'static str> {
    Err("is not in doubt in this way")
}
