//! The states that the ends of calls and probes lead to.

use super::{PartState, ProbeProgress, StepPart};
use crate::journal::event::{AttemptFollowUp, CallSide, DoubtSource, LateAnswer};
use crate::plan::Driver;
use crate::time::Timestamp;
use crate::tool::{FailureCategory, ToolFailure};

/// The state after a closed attempt.
pub(super) fn after(
    part: &StepPart,
    side: CallSide,
    attempt: u32,
    then: AttemptFollowUp,
    at: Timestamp,
    failure: ToolFailure,
) -> Result<PartState, &'static str> {
    Ok(match then {
        AttemptFollowUp::RetryAt(until) => PartState::BackingOff { side, until, pause: None },
        AttemptFollowUp::FallBack if side == CallSide::Do => {
            PartState::BackingOff { side: CallSide::Fallback, until: at, pause: None }
        }
        AttemptFollowUp::FallBack => return Err("has no fallback on this side"),
        AttemptFollowUp::InDoubt => {
            let (failure, probing) = (Some(failure), ProbeProgress::NotYet);
            PartState::InDoubt { side, attempt, since: at, failure, probing }
        }
        AttemptFollowUp::GiveUp if side == CallSide::Undo && part.undone_late().is_some() => {
            PartState::Compensated { by_hand: false }
        }
        AttemptFollowUp::GiveUp => given_up(side, failure),
        AttemptFollowUp::Withdrawn => return Err("was sent, or may have been"),
    })
}

/// The state after a call that was to be made now, and is not made at all.
pub(super) fn not_prepared(part: &StepPart, side: CallSide, failure: ToolFailure) -> Result<PartState, &'static str> {
    use PartState as S;
    Ok(match &part.state {
        S::Pending if side == CallSide::Do => given_up(side, failure),
        S::Approved { side: waiting, .. } | S::BackingOff { side: waiting, .. } if *waiting == side => {
            given_up(side, failure)
        }
        S::Completed { .. } | S::Failed { .. } | S::CompensationFailed { accepted: true, .. }
            if side == CallSide::Undo =>
        {
            given_up(side, failure)
        }
        S::InDoubt { probing: ProbeProgress::NotYet | ProbeProgress::BackingOff { .. }, .. }
            if side == CallSide::Probe =>
        {
            let reason = format!("the probe could not be prepared: {failure}");
            probed(part, ProbeProgress::Exhausted { reason })?
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
    })
}

/// How an attempt ended that was lost: Rutter's own in a crash, an agent's when it ended or gave the execution back.
pub(super) fn lost(part: &StepPart) -> ToolFailure {
    let message = match part.running() {
        Some(attempt) if attempt.by == Driver::Agent => "the agent began it and did not record how it ended",
        _ => "its attempts were lost to crashes",
    };
    ToolFailure::new(FailureCategory::Internal, message)
}

/// The failure of a part of which an attempt took effect after all.
pub(super) fn done_after_all(before: &ToolFailure, attempt: u32) -> ToolFailure {
    let message = format!("attempt {attempt} took effect after all; before that was known: {before}");
    ToolFailure { message, ..before.clone() }
}

/// Why a call in doubt did not happen: what its tool answered late, or how the call was lost.
pub(super) fn not_happened(part: &StepPart, source: DoubtSource) -> ToolFailure {
    if let (DoubtSource::LateAnswer, Some(LateAnswer::NotDone(refusal))) = (source, part.reported.as_deref()) {
        return refusal.clone();
    }
    let lost = match &part.state {
        PartState::InDoubt { failure: Some(failure), .. } => format!("; its call had ended with {failure}"),
        _ => String::new(),
    };
    ToolFailure::new(FailureCategory::Internal, format!("it did not happen{lost}"))
}

pub(super) fn given_up(side: CallSide, failure: ToolFailure) -> PartState {
    match side {
        CallSide::Undo => PartState::CompensationFailed { failure, accepted: false },
        CallSide::Do | CallSide::Fallback | CallSide::Probe => PartState::Failed { failure },
    }
}

/// The state from which a call of this side starts.
pub(super) fn again(part: &StepPart, side: CallSide, at: Timestamp) -> PartState {
    // An attempt under way that is withdrawn is the first one as long as no other counts.
    let under_way = u32::from(part.running().is_some());
    match side {
        CallSide::Do if part.tries_of(CallSide::Do) == under_way => PartState::Pending,
        side => PartState::BackingOff { side, until: at, pause: None },
    }
}

/// The same doubt, at another point of its probing.
pub(super) fn probed(part: &StepPart, progress: ProbeProgress) -> Result<PartState, &'static str> {
    let mut state = part.state.clone();
    match &mut state {
        PartState::InDoubt { probing, .. } => *probing = progress,
        other => return not_in_doubt(other),
    }
    Ok(state)
}

/// In doubt about the last attempt of a side.
pub(super) fn in_doubt(part: &StepPart, side: CallSide, since: Timestamp) -> PartState {
    let attempt = part.attempts_of(side);
    let (failure, probing) = (part.ended_with.clone(), ProbeProgress::NotYet);
    PartState::InDoubt { side, attempt, since, failure, probing }
}

pub(super) fn not_in_doubt(_: &PartState) -> Result<PartState, &'static str> {
    Err("is not in doubt in this way")
}
