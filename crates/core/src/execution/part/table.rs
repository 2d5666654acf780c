//! The state transitions of a part.

use super::{Attempt, PartState, ProbeProgress, SentCall, StepPart, ToolInquiry};
use crate::journal::event::{AttemptFollowUp, CallSide, Event, QuestionAnswer};
use crate::plan::Driver;
use crate::time::Timestamp;
use crate::tool::{FailureCategory, ToolFailure};
use std::sync::Arc;

/// The next state after an event. An event that may not follow the present state is an error.
pub(super) fn next_state(part: &StepPart, at: Timestamp, event: &Event) -> Result<PartState, &'static str> {
    use {Event as E, PartState as S};
    let next = match event {
        E::ApprovalRequested { side, call, expires_at, .. } => {
            let asking = S::Asking { side: *side, call: *call, expires_at: *expires_at };
            match &part.state {
                S::Pending if *side == CallSide::Do => asking,
                S::BackingOff { side: waiting @ (CallSide::Do | CallSide::Fallback), .. } if waiting == side => asking,
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
            S::Asking { side, call: asked, expires_at } if asked == call => {
                S::Approved { side: *side, call: *call, expires_at: *expires_at }
            }
            other => return not_asked(other),
        },
        E::ApprovalDenied { call, reason, .. } => match &part.state {
            S::Asking { call: asked, .. } if asked == call => S::Failed {
                failure: ToolFailure::new(FailureCategory::Unauthorized, format!("approval denied: {reason}")),
            },
            other => return not_asked(other),
        },
        E::ApprovalExpired { call, .. } => match &part.state {
            S::Asking { call: asked, .. } if asked == call => {
                S::Failed { failure: ToolFailure::new(FailureCategory::Unauthorized, "it was not approved in time") }
            }
            other => return not_asked(other),
        },
        E::ApprovalVoided { .. } => match &part.state {
            // The side is retried at once; a first call goes back to the start.
            S::Asking { side, .. } | S::Approved { side, .. } => again(part, *side, at),
            other => return not_asked(other),
        },
        E::AttemptStarted { side: CallSide::Probe, .. } => match &part.state {
            S::InDoubt {
                side,
                attempt: doubted,
                probing: ProbeProgress::NotYet | ProbeProgress::BackingOff { .. },
            } => {
                let probing = begun(at, event).map(ProbeProgress::Running).ok_or("was not begun")?;
                S::InDoubt { side: *side, attempt: *doubted, probing }
            }
            other => return not_in_doubt(other),
        },
        E::AttemptStarted { side, attempt, by, .. } => {
            if *attempt != part.attempts_of(*side) + 1 {
                return Err("has another number of attempts");
            }
            if *side == CallSide::Undo && part.effect.is_none() {
                return Err("has nothing to undo");
            }
            let attempt = begun(at, event).ok_or("was not begun")?;
            match &part.state {
                S::Pending if *side == CallSide::Do => S::Running(attempt),
                S::Approved { side: approved, .. } if approved == side => S::Running(attempt),
                S::BackingOff { side: waiting, .. } if waiting == side => S::Running(attempt),
                // Undoing starts from any settled state with an effect.
                S::Completed { .. } | S::Failed { .. } | S::CompensationFailed { accepted: true, .. }
                    if *side == CallSide::Undo =>
                {
                    S::Running(attempt)
                }
                // An agent may call without approval; that is recorded as a deviation.
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
        E::AttemptAccepted { side, attempt, ticket, .. } => update_running(part, *side, *attempt, |running| {
            let is_first = running.ticket.is_none();
            running.ticket = Some(ticket.as_str().into());
            is_first.then_some(()).ok_or("has a ticket already")
        })?,
        E::ToolAsked { side, attempt, message, schema, .. } => update_running(part, *side, *attempt, |running| {
            let is_free = running.inquiry.is_none();
            let (message, schema) = (message.clone(), schema.clone());
            running.inquiry = Some(Arc::new(ToolInquiry { message, schema }));
            is_free.then_some(()).ok_or("waits for an answer already")
        })?,
        E::ToolAnswered { side, attempt, .. } => {
            update_running(part, *side, *attempt, |running| running.inquiry.take().map(|_| ()).ok_or("asks nothing"))?
        }
        E::AttemptSucceeded { side: CallSide::Probe, attempt, result, .. } => {
            let (side, doubted) = running_probe(part, *attempt)?;
            S::InDoubt { side, attempt: doubted, probing: ProbeProgress::Answered(result.clone()) }
        }
        E::AttemptSucceeded { side, attempt, .. } => {
            running(part, *side, *attempt)?;
            match side {
                CallSide::Undo => S::Compensated { by_hand: false },
                CallSide::Do | CallSide::Fallback | CallSide::Probe => S::Completed { by_hand: false },
            }
        }
        E::AttemptFailed { side: CallSide::Probe, attempt, failure, then, .. } => {
            let (side, doubted) = running_probe(part, *attempt)?;
            let probing = match then {
                AttemptFollowUp::RetryAt(until) => ProbeProgress::BackingOff { until: *until },
                AttemptFollowUp::GiveUp => ProbeProgress::Exhausted { reason: format!("the probe failed: {failure}") },
                AttemptFollowUp::FallBack | AttemptFollowUp::InDoubt => {
                    return Err("is probed, which leads to nothing else");
                }
            };
            S::InDoubt { side, attempt: doubted, probing }
        }
        E::AttemptLost { side: CallSide::Probe, attempt, then, .. } => {
            let (side, doubted) = running_probe(part, *attempt)?;
            let probing = match then {
                AttemptFollowUp::RetryAt(until) => ProbeProgress::BackingOff { until: *until },
                AttemptFollowUp::GiveUp => ProbeProgress::Exhausted { reason: "the probe was lost too often".into() },
                AttemptFollowUp::FallBack | AttemptFollowUp::InDoubt => {
                    return Err("is probed, which leads to nothing else");
                }
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
                ToolFailure::new(FailureCategory::Internal, "its attempts were lost to crashes"),
            )?
        }
        E::PreparationFailed { side, failure, .. } => match &part.state {
            S::Pending if *side == CallSide::Do => given_up(*side, failure.clone()),
            S::Approved { side: waiting, .. } | S::BackingOff { side: waiting, .. } if waiting == side => {
                given_up(*side, failure.clone())
            }
            S::Completed { .. } | S::Failed { .. } | S::CompensationFailed { accepted: true, .. }
                if *side == CallSide::Undo =>
            {
                given_up(*side, failure.clone())
            }
            S::InDoubt {
                side: doubted,
                attempt,
                probing: ProbeProgress::NotYet | ProbeProgress::BackingOff { .. },
            } if *side == CallSide::Probe => {
                let reason = format!("the probe could not be prepared: {failure}");
                S::InDoubt { side: *doubted, attempt: *attempt, probing: ProbeProgress::Exhausted { reason } }
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
            // An agent that ends gives up the parts it never started.
            S::Pending | S::Asking { .. } | S::Approved { .. } if *side != CallSide::Undo => {
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
            S::InDoubt { side, attempt, probing: ProbeProgress::Answered(_) | ProbeProgress::NotYet } => S::InDoubt {
                side: *side,
                attempt: *attempt,
                probing: ProbeProgress::Exhausted { reason: reason.clone() },
            },
            other => return not_in_doubt(other),
        },
        E::LateAnswerArrived { .. } => part.state.clone(),
        E::DoubtSettled { side, happened, then, .. } => match &part.state {
            S::InDoubt { side: doubted, attempt, .. } if doubted == side => match (happened, side) {
                (true, CallSide::Undo) => S::Compensated { by_hand: false },
                (true, CallSide::Do | CallSide::Fallback | CallSide::Probe) => S::Completed { by_hand: false },
                (false, _) => {
                    after(*side, *attempt, *then, at, ToolFailure::new(FailureCategory::Internal, "it did not happen"))?
                }
            },
            other => return not_in_doubt(other),
        },
        E::QuestionAnswered { answer, .. } => match (&part.state, answer) {
            (S::Failed { .. } | S::Compensated { .. }, QuestionAnswer::Retry) => part.anew(at),
            (S::Failed { .. } | S::Pending | S::Compensated { .. }, QuestionAnswer::Resolve) => {
                S::Completed { by_hand: true }
            }
            (S::CompensationFailed { accepted: true, .. }, _) => return Err("was accepted by decision"),
            (S::CompensationFailed { .. }, QuestionAnswer::Retry) => S::BackingOff { side: CallSide::Undo, until: at },
            (S::CompensationFailed { .. }, QuestionAnswer::Resolve) => S::Compensated { by_hand: true },
            (S::CompensationFailed { failure, .. }, QuestionAnswer::Skip) => {
                S::CompensationFailed { failure: failure.clone(), accepted: true }
            }
            (unchanged, QuestionAnswer::Retry | QuestionAnswer::Skip | QuestionAnswer::Resolve) => unchanged.clone(),
            (
                unchanged,
                QuestionAnswer::Stop | QuestionAnswer::Continue | QuestionAnswer::Compensate | QuestionAnswer::Replan,
            ) => unchanged.clone(),
        },
        E::CompensationRecorded { .. } => match &part.state {
            _ if part.effect.is_none() => return Err("has no effect that is at rest"),
            S::Completed { .. }
            | S::Failed { .. }
            | S::CompensationFailed { .. }
            | S::BackingOff { side: CallSide::Undo, .. } => S::Compensated { by_hand: true },
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

/// The attempt that an event starts.
fn begun(at: Timestamp, event: &Event) -> Option<Attempt> {
    let Event::AttemptStarted { side, attempt, by, tool, definition, key, parameters, deadline, .. } = event else {
        return None;
    };
    let (tool, parameters) = (tool.clone(), parameters.clone());
    let sent = Arc::new(SentCall { tool, definition: *definition, key: *key, parameters });
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

/// The same state with an update of an attempt that Rutter makes.
fn update_running(
    part: &StepPart,
    side: CallSide,
    number: u32,
    learn: impl FnOnce(&mut Attempt) -> Result<(), &'static str>,
) -> Result<PartState, &'static str> {
    let mut state = part.state.clone();
    match &mut state {
        PartState::Running(attempt) | PartState::InDoubt { probing: ProbeProgress::Running(attempt), .. }
            if (attempt.side, attempt.number, attempt.by) == (side, number, Driver::Server) =>
        {
            learn(attempt)?;
        }
        _ => return Err("is not running this attempt"),
    }
    Ok(state)
}

/// The state after a closed attempt.
fn after(
    side: CallSide,
    attempt: u32,
    then: AttemptFollowUp,
    at: Timestamp,
    failure: ToolFailure,
) -> Result<PartState, &'static str> {
    Ok(match then {
        AttemptFollowUp::RetryAt(until) => PartState::BackingOff { side, until },
        AttemptFollowUp::FallBack if side == CallSide::Do => {
            PartState::BackingOff { side: CallSide::Fallback, until: at }
        }
        AttemptFollowUp::FallBack => return Err("has no fallback on this side"),
        AttemptFollowUp::InDoubt => PartState::InDoubt { side, attempt, probing: ProbeProgress::NotYet },
        AttemptFollowUp::GiveUp => given_up(side, failure),
    })
}

fn given_up(side: CallSide, failure: ToolFailure) -> PartState {
    match side {
        CallSide::Undo => PartState::CompensationFailed { failure, accepted: false },
        CallSide::Do | CallSide::Fallback | CallSide::Probe => PartState::Failed { failure },
    }
}

/// The state from which a call of this side starts.
fn again(part: &StepPart, side: CallSide, at: Timestamp) -> PartState {
    match side {
        CallSide::Do if part.attempts_of(CallSide::Do) == 0 => PartState::Pending,
        side => PartState::BackingOff { side, until: at },
    }
}

fn running(part: &StepPart, side: CallSide, number: u32) -> Result<(), &'static str> {
    match &part.state {
        PartState::Running(attempt) if (attempt.side, attempt.number) == (side, number) => Ok(()),
        _ => Err("is not running this attempt"),
    }
}

/// The side and attempt in doubt that the running probe is about.
fn running_probe(part: &StepPart, number: u32) -> Result<(CallSide, u32), &'static str> {
    match &part.state {
        PartState::InDoubt { side, attempt, probing: ProbeProgress::Running(probe) } if probe.number == number => {
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
