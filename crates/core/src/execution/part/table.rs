//! The one table of how a part's states change.

use super::{Attempt, Inquiry, Part, PartState, Probing, Sent};
use crate::journal::event::{Answer, Event, LateAnswer, Side, Then};
use crate::mutation::Mutation;
use crate::plan::Driver;
use crate::time::Timestamp;
use crate::tool::{Category, Failure};
use std::sync::Arc;

/// The table: which event may follow which state, and where it leads. Everything else is an error, never a guess.
pub(super) fn next_state(part: &Part, at: Timestamp, event: &Event) -> Result<PartState, &'static str> {
    use {Event as E, PartState as S};
    let next = match event {
        E::ApprovalRequested { side, call, expires_at, .. } => {
            let asking = S::Asking { side: *side, call: *call, expires_at: *expires_at };
            match &part.state {
                S::Pending if *side == Side::Do => asking,
                S::BackingOff { side: waiting @ (Side::Do | Side::Fallback), .. } if waiting == side => {
                    asking
                }
                S::Pending
                | S::Asking { .. }
                | S::Approved { .. }
                | S::Running(_)
                | S::BackingOff { .. }
                | S::InDoubt { .. } => return Err("does not call this side now"),
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
        E::AttemptStarted { side: Side::Probe, .. } => match &part.state {
            S::InDoubt { side, attempt: doubted, probing: Probing::NotYet | Probing::BackingOff { .. } } => {
                let probing = begun(at, event).map(Probing::Running).ok_or("was not begun")?;
                S::InDoubt { side: *side, attempt: *doubted, probing }
            }
            other => return not_in_doubt(other),
        },
        E::AttemptStarted { side, attempt, by, .. } => {
            if *attempt != part.attempts_of(*side) + 1 {
                return Err("has another number of attempts behind it");
            }
            if *side == Side::Undo && part.effect.is_none() {
                return Err("has nothing to undo");
            }
            let attempt = begun(at, event).ok_or("was not begun")?;
            match &part.state {
                S::Pending if *side == Side::Do => S::Running(attempt),
                S::Approved { side: approved, .. } if approved == side => S::Running(attempt),
                S::BackingOff { side: waiting, .. } if waiting == side => S::Running(attempt),
                // Undoing begins from wherever the part came to rest with an effect.
                S::Completed { .. } | S::Failed { .. } | S::CompensationFailed { accepted: true, .. }
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
        E::AttemptAccepted { side, attempt, ticket, .. } => told(part, *side, *attempt, |running| {
            let is_first = running.ticket.is_none();
            running.ticket = Some(ticket.as_str().into());
            is_first.then_some(()).ok_or("has a ticket already")
        })?,
        E::ToolAsked { side, attempt, message, schema, .. } => told(part, *side, *attempt, |running| {
            let is_free = running.inquiry.is_none();
            let (message, schema) = (message.clone(), schema.clone());
            running.inquiry = Some(Arc::new(Inquiry { message, schema }));
            is_free.then_some(()).ok_or("waits for an answer already")
        })?,
        E::ToolAnswered { side, attempt, .. } => {
            told(part, *side, *attempt, |running| running.inquiry.take().map(|_| ()).ok_or("asks nothing"))?
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
                Then::GiveUp => Probing::Exhausted { reason: format!("the probe failed: {failure}") },
                Then::FallBack | Then::InDoubt => return Err("is probed, which leads to nothing else"),
            };
            S::InDoubt { side, attempt: doubted, probing }
        }
        E::AttemptLost { side: Side::Probe, attempt, then, .. } => {
            let (side, doubted) = running_probe(part, *attempt)?;
            let probing = match then {
                Then::RetryAt(until) => Probing::BackingOff { until: *until },
                Then::GiveUp => Probing::Exhausted { reason: "the probe was lost too often".into() },
                Then::FallBack | Then::InDoubt => return Err("is probed, which leads to nothing else"),
            };
            S::InDoubt { side, attempt: doubted, probing }
        }
        E::AttemptFailed { side, attempt, failure, then, .. } => {
            running(part, *side, *attempt)?;
            after(*side, *attempt, *then, at, failure.clone())?
        }
        E::AttemptLost { side, attempt, then, .. } => {
            running(part, *side, *attempt)?;
            after(
                *side,
                *attempt,
                *then,
                at,
                Failure::new(Category::Internal, "its attempts were lost to crashes"),
            )?
        }
        E::PreparationFailed { side, failure, .. } => match &part.state {
            S::Pending if *side == Side::Do => given_up(*side, failure.clone()),
            S::Approved { side: waiting, .. } | S::BackingOff { side: waiting, .. } if waiting == side => {
                given_up(*side, failure.clone())
            }
            S::Completed { .. } | S::Failed { .. } | S::CompensationFailed { accepted: true, .. }
                if *side == Side::Undo =>
            {
                given_up(*side, failure.clone())
            }
            S::InDoubt { side: doubted, attempt, probing: Probing::NotYet | Probing::BackingOff { .. } }
                if *side == Side::Probe =>
            {
                let reason = format!("the probe could not be prepared: {failure}");
                S::InDoubt { side: *doubted, attempt: *attempt, probing: Probing::Exhausted { reason } }
            }
            S::Pending
            | S::Approved { .. }
            | S::BackingOff { .. }
            | S::InDoubt { .. }
            | S::Completed { .. }
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
                    after(*side, *attempt, *then, at, Failure::new(Category::Internal, "it did not happen"))?
                }
            },
            other => return not_in_doubt(other),
        },
        E::QuestionAnswered { answer, .. } => match (&part.state, answer) {
            (S::Failed { .. } | S::Compensated { .. }, Answer::Retry) => part.anew(at),
            (S::Failed { .. } | S::Pending | S::Compensated { .. }, Answer::Resolve) => {
                S::Completed { by_hand: true }
            }
            (S::CompensationFailed { accepted: true, .. }, _) => return Err("was left as it is by decision"),
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
            _ if part.effect.is_none() => return Err("has no effect that is at rest"),
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
        | E::ExecutionEnded { .. }
        | E::PlanSaved { .. }
        | E::PayloadsErased { .. }
        | E::ExecutionsRemoved { .. }
        | E::LedgerRestored { .. }
        | E::SettingChanged { .. } => return Err("is not what this event is about"),
    };
    Ok(next)
}

/// The attempt an event begins.
fn begun(at: Timestamp, event: &Event) -> Option<Attempt> {
    let Event::AttemptStarted { side, attempt, by, tool, definition, key, parameters, deadline, .. } = event
    else {
        return None;
    };
    let (tool, parameters) = (tool.clone(), parameters.clone());
    let sent = Arc::new(Sent { tool, definition: *definition, key: *key, parameters });
    Some(Attempt {
        side: *side,
        number: *attempt,
        by: *by,
        started_at: at,
        deadline: *deadline,
        sent,
        ticket: None,
        inquiry: None,
    })
}

/// The same state with more known of an attempt that Rutter makes.
fn told(
    part: &Part,
    side: Side,
    number: u32,
    learn: impl FnOnce(&mut Attempt) -> Result<(), &'static str>,
) -> Result<PartState, &'static str> {
    let mut state = part.state.clone();
    match &mut state {
        PartState::Running(attempt) | PartState::InDoubt { probing: Probing::Running(attempt), .. }
            if (attempt.side, attempt.number, attempt.by) == (side, number, Driver::Server) =>
        {
            learn(attempt)?;
        }
        _ => return Err("is not running this attempt"),
    }
    Ok(state)
}

/// Where a closed attempt leads.
fn after(
    side: Side,
    attempt: u32,
    then: Then,
    at: Timestamp,
    failure: Failure,
) -> Result<PartState, &'static str> {
    Ok(match then {
        Then::RetryAt(until) => PartState::BackingOff { side, until },
        Then::FallBack if side == Side::Do => PartState::BackingOff { side: Side::Fallback, until: at },
        Then::FallBack => return Err("has no fallback on this side"),
        Then::InDoubt => PartState::InDoubt { side, attempt, probing: Probing::NotYet },
        Then::GiveUp => given_up(side, failure),
    })
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
