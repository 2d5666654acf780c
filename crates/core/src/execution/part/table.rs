//! The state transitions of a part.

use super::outcome::{
    after, again, done_after_all, given_up, in_doubt, lost, not_happened, not_in_doubt, not_prepared, probed,
};
use super::{Attempt, PartState, ProbeProgress, SentCall, ServerWait, StepPart, ToolInquiry};
use crate::journal::event::{AttemptFollowUp, CallSide, Event, LateEffect, QuestionAnswer};
use crate::plan::Driver;
use crate::time::Timestamp;
use crate::tool::{FailureCategory, ToolFailure};
use std::sync::Arc;

const DENIED: &str = "denied";
const FORBIDDEN: &str = "forbidden by rule ";

/// Whether a failure says that the call was not even asked about: it was denied too often, or a rule forbids it. Only a
/// person can have it tried again with another end.
pub fn is_refused_for_good(failure: &ToolFailure) -> bool {
    let message = failure.message.as_str();
    failure.category == FailureCategory::Unauthorized
        && (message.starts_with(FORBIDDEN) || message.strip_prefix(DENIED).is_some_and(|rest| rest.starts_with(": ")))
}

/// The next state after an event. An event that may not follow the present state is an error.
pub(super) fn next_state(part: &StepPart, at: Timestamp, event: &Event) -> Result<PartState, &'static str> {
    use {Event as E, PartState as S};
    let next = match event {
        E::ApprovalRequested { side, call, expires_at, .. } => {
            let asking = S::Asking { side: *side, call: *call, expires_at: *expires_at };
            match &part.state {
                S::Pending if *side == CallSide::Do => asking,
                S::BackingOff { side: waiting, .. } if waiting == side && *side != CallSide::Probe => asking,
                S::Completed { .. } | S::Failed { .. } | S::CompensationFailed { accepted: true, .. }
                    if *side == CallSide::Undo && part.effect.is_some() =>
                {
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
            S::Asking { side, call: asked, expires_at } if asked == call => {
                S::Approved { side: *side, call: *call, expires_at: *expires_at }
            }
            other => return not_asked(other),
        },
        E::ApprovalDenied { call, reason, .. } => match &part.state {
            S::Asking { side, call: asked, .. } if asked == call => {
                let denied = format!("approval denied: {reason}");
                given_up(*side, ToolFailure::new(FailureCategory::Unauthorized, denied))
            }
            other => return not_asked(other),
        },
        E::ApprovalExpired { call, .. } => match &part.state {
            S::Asking { side, call: asked, .. } if asked == call => {
                given_up(*side, ToolFailure::new(FailureCategory::Unauthorized, "it was not approved in time"))
            }
            other => return not_asked(other),
        },
        E::ApprovalVoided { .. } => match &part.state {
            // The side is retried at once; a first call goes back to the start.
            S::Asking { side, .. } | S::Approved { side, .. } => again(part, *side, at),
            other => return not_asked(other),
        },
        E::CallForbidden { side, rule, reason, .. } => {
            let by = rule.as_ref().map_or_else(|| DENIED.to_owned(), |rule| format!("{FORBIDDEN}{rule}"));
            not_prepared(part, *side, ToolFailure::new(FailureCategory::Unauthorized, format!("{by}: {reason}")))?
        }
        E::CallDelayed { side, until, failure, .. } => {
            // It waits for its server since the first pause that it met.
            let since = part.state.awaited_pause().map_or(at, |(pause, _)| pause.since);
            let pause = failure.clone().map(|failure| ServerWait { since, failure: Arc::new(failure) });
            match &part.state {
                S::InDoubt { probing: ProbeProgress::NotYet | ProbeProgress::BackingOff { .. }, .. }
                    if *side == CallSide::Probe =>
                {
                    probed(part, ProbeProgress::BackingOff { until: *until, pause })?
                }
                // Whatever could be started can wait.
                _ => match not_prepared(part, *side, ToolFailure::new(FailureCategory::RateLimited, ""))? {
                    S::InDoubt { .. } => return Err("was not being prepared"),
                    _ => S::BackingOff { side: *side, until: *until, pause },
                },
            }
        }
        E::AttemptStarted { side: CallSide::Probe, .. } => match &part.state {
            S::InDoubt { probing: ProbeProgress::NotYet | ProbeProgress::BackingOff { .. }, .. } => {
                let probing = begun(at, event).map(ProbeProgress::Running).ok_or("was not begun")?;
                probed(part, probing)?
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
        E::ToolAsked { side, attempt, message, schema, continuation, .. } => {
            update_running(part, *side, *attempt, |running| {
                let is_free = running.inquiry.is_none();
                let (message, schema, continuation) = (message.clone(), schema.clone(), continuation.clone());
                running.inquiry = Some(Arc::new(ToolInquiry { message, schema, continuation }));
                is_free.then_some(()).ok_or("waits for an answer already")
            })?
        }
        E::ToolAnswered { side, attempt, .. } => {
            update_running(part, *side, *attempt, |running| running.inquiry.take().map(|_| ()).ok_or("asks nothing"))?
        }
        E::AttemptSucceeded { side: CallSide::Probe, attempt, result, .. } => {
            let asked_at = running_probe(part, *attempt)?;
            probed(part, ProbeProgress::Answered { answer: result.clone(), asked_at })?
        }
        E::AttemptSucceeded { side, attempt, .. } => {
            running(part, *side, *attempt)?;
            match side {
                CallSide::Undo => S::Compensated { by_hand: false },
                CallSide::Do | CallSide::Fallback | CallSide::Probe => S::Completed { by_hand: false },
            }
        }
        E::AttemptFailed { side: CallSide::Probe, attempt, failure, then, .. } => {
            running_probe(part, *attempt)?;
            let probing = match then {
                AttemptFollowUp::RetryAt(until) => ProbeProgress::BackingOff { until: *until, pause: None },
                AttemptFollowUp::Withdrawn => ProbeProgress::BackingOff { until: at, pause: None },
                AttemptFollowUp::GiveUp => ProbeProgress::Exhausted { reason: format!("the probe failed: {failure}") },
                AttemptFollowUp::FallBack | AttemptFollowUp::InDoubt => {
                    return Err("is probed, which leads to nothing else");
                }
            };
            probed(part, probing)?
        }
        E::AttemptLost { side: CallSide::Probe, attempt, then, .. } => {
            running_probe(part, *attempt)?;
            let probing = match then {
                AttemptFollowUp::RetryAt(until) => ProbeProgress::BackingOff { until: *until, pause: None },
                AttemptFollowUp::GiveUp => ProbeProgress::Exhausted { reason: "the probe was lost too often".into() },
                AttemptFollowUp::FallBack | AttemptFollowUp::InDoubt | AttemptFollowUp::Withdrawn => {
                    return Err("is probed, which leads to nothing else");
                }
            };
            probed(part, probing)?
        }
        E::AttemptFailed { side, attempt, maybe: false, then: AttemptFollowUp::Withdrawn, .. } => {
            running(part, *side, *attempt)?;
            again(part, *side, at)
        }
        E::AttemptFailed { side, attempt, failure, then, .. } => {
            running(part, *side, *attempt)?;
            after(part, *side, *attempt, *then, at, failure.clone())?
        }
        E::AttemptLost { side, attempt, then, .. } => {
            running(part, *side, *attempt)?;
            after(part, *side, *attempt, *then, at, lost(part))?
        }
        E::PreparationFailed { side, failure, .. } => not_prepared(part, *side, failure.clone())?,
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
            S::InDoubt { probing: ProbeProgress::Answered { .. } | ProbeProgress::NotYet, .. } => {
                probed(part, ProbeProgress::Exhausted { reason: reason.clone() })?
            }
            other => return not_in_doubt(other),
        },
        E::ProbePostponed { until, .. } => match &part.state {
            S::InDoubt { probing: ProbeProgress::Answered { .. }, .. } => {
                probed(part, ProbeProgress::BackingOff { until: *until, pause: None })?
            }
            other => return not_in_doubt(other),
        },
        E::KeyExpired { side, .. } => match &part.state {
            _ if part.key_unsure.is_none() || part.attempts_of(*side) == 0 => {
                return Err("has no key that could be forgotten");
            }
            S::Pending if *side == CallSide::Do => in_doubt(part, *side, at),
            S::Approved { side: waiting, .. } | S::BackingOff { side: waiting, .. } if waiting == side => {
                in_doubt(part, *side, at)
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
            | S::CompensationFailed { .. } => return Err("does not send this side again now"),
        },
        E::LateAnswerArrived { side: CallSide::Undo, effect: Some(LateEffect::Only), .. } => match &part.state {
            S::Asking { side: CallSide::Undo, .. }
            | S::Approved { side: CallSide::Undo, .. }
            | S::BackingOff { side: CallSide::Undo, .. }
            | S::CompensationFailed { .. } => S::Compensated { by_hand: false },
            _ => return Err("is not being undone now"),
        },
        E::LateAnswerArrived { attempt, effect: Some(LateEffect::Only), .. }
        | E::SettlementCorrected { attempt, effect: Some(LateEffect::Only), .. } => match &part.state {
            S::Failed { failure } if is_unsure(part) => S::Failed { failure: done_after_all(failure, *attempt) },
            S::CompensationFailed { .. } if is_unsure(part) => part.state.clone(),
            // What is undone now is known.
            _ if part.waits_for_undo() && is_unsure(part) => part.state.clone(),
            _ if part.effect.is_some() && !is_unsure(part) => return Err("has an effect already"),
            S::Failed { failure } => S::Failed { failure: done_after_all(failure, *attempt) },
            S::Cancelled => S::Failed {
                failure: ToolFailure::new(FailureCategory::Cancelled, "stopped, and it took effect after all"),
            },
            _ if part.waits_for_call() => S::Completed { by_hand: false },
            S::Pending
            | S::Asking { .. }
            | S::Approved { .. }
            | S::Running(_)
            | S::BackingOff { .. }
            | S::InDoubt { .. }
            | S::Completed { .. }
            | S::Compensated { .. }
            | S::CompensationFailed { .. } => return Err("may have another effect"),
        },
        E::LateAnswerArrived { .. } | E::SettlementCorrected { effect: Some(LateEffect::Second), .. } => {
            part.state.clone()
        }
        E::SettlementCorrected { .. } if part.by_hand.is_none_or(|settled| !settled.happened) => {
            return Err("was not settled by hand");
        }
        E::SettlementCorrected { happened: true, .. } => match &part.state {
            S::Completed { .. } | S::CompensationFailed { .. } => part.state.clone(),
            _ => return Err("has no result by hand now"),
        },
        E::SettlementCorrected { .. } => match &part.state {
            S::Completed { .. } => {
                S::Failed { failure: ToolFailure::new(FailureCategory::Internal, "it did not happen after all") }
            }
            _ => return Err("is not completed"),
        },
        E::DoubtSettled { side, happened, source, then, .. } => match &part.state {
            S::InDoubt { side: doubted, attempt, .. } if doubted == side => match (happened, side) {
                (true, CallSide::Undo) => S::Compensated { by_hand: false },
                (true, CallSide::Do | CallSide::Fallback | CallSide::Probe) => S::Completed { by_hand: false },
                (false, _) => after(part, *side, *attempt, *then, at, not_happened(part, *source))?,
            },
            other => return not_in_doubt(other),
        },
        E::QuestionAnswered { answer, .. } => match (&part.state, answer) {
            // An attempt took effect after all: there is nothing to repeat.
            (S::Failed { .. }, QuestionAnswer::Retry) if part.is_done_after_all() => S::Completed { by_hand: false },
            (S::Failed { .. } | S::Compensated { .. }, QuestionAnswer::Retry) => part.anew(at),
            (S::Failed { .. } | S::Pending | S::Compensated { .. }, QuestionAnswer::Resolve) => {
                S::Completed { by_hand: true }
            }
            (S::CompensationFailed { accepted: true, .. }, _) => return Err("was accepted by decision"),
            (S::CompensationFailed { .. }, QuestionAnswer::Retry) => {
                S::BackingOff { side: CallSide::Undo, until: at, pause: None }
            }
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
            | S::Asking { side: CallSide::Undo, .. }
            | S::Approved { side: CallSide::Undo, .. }
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
        | E::Held { .. }
        | E::HoldEnded { .. }
        | E::CancelRequested { .. }
        | E::Killed { .. }
        | E::Reopened { .. }
        | E::CompensationStarted { .. }
        | E::ReplanBegun { .. }
        | E::ReplanAbandoned { .. }
        | E::Replanned { .. }
        | E::ReplanProposed { .. }
        | E::ReplanRejected { .. }
        | E::HandedOver { .. }
        | E::AgentSeen {}
        | E::AgentSilent { .. }
        | E::ToolDrifted { .. }
        | E::ToolRestored { .. }
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
        | E::SettingChanged { .. }
        | E::ActRefused { .. } => return Err("is not what this event is about"),
    };
    Ok(next)
}

/// Whether all that is known is that the part may have an effect.
fn is_unsure(part: &StepPart) -> bool {
    part.effect.is_some_and(|effect| !effect.certain)
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

fn running(part: &StepPart, side: CallSide, number: u32) -> Result<(), &'static str> {
    match &part.state {
        PartState::Running(attempt) if (attempt.side, attempt.number) == (side, number) => Ok(()),
        _ => Err("is not running this attempt"),
    }
}

/// When the running probe was asked.
fn running_probe(part: &StepPart, number: u32) -> Result<Timestamp, &'static str> {
    match &part.state {
        PartState::InDoubt { probing: ProbeProgress::Running(probe), .. } if probe.number == number => {
            Ok(probe.started_at)
        }
        _ => Err("is not running this probe"),
    }
}

fn not_asked(_: &PartState) -> Result<PartState, &'static str> {
    Err("does not wait for approval of this call")
}
