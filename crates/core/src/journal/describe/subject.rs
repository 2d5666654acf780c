//! The subject of an event: a step or an item of it, the side of the call, the attempt.

use crate::id::{PartId, StepId};
use crate::journal::event::{CallSide, Event, NO_PROBE, Question};
use std::fmt;

/// The step an event is about, and the side and attempt if it names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSubject {
    pub part: PartId,
    pub side: Option<CallSide>,
    pub attempt: Option<u32>,
}

impl EventSubject {
    /// Returns the short form for a column: `charge`, `charge (compensation), attempt 2`.
    pub fn label(&self) -> String {
        let mut label = self.part.to_string();
        if let Some(side) = self.side.filter(|side| *side != CallSide::Do) {
            label.push_str(&format!(" ({})", side.noun()));
        }
        if let Some(attempt) = self.attempt.filter(|attempt| *attempt > 1) {
            label.push_str(&format!(", attempt {attempt}"));
        }
        label
    }
}

/// The form inside a sentence: `attempt 2 of charge`, `the probe of charge`, `charge`.
impl fmt::Display for EventSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = self.side.unwrap_or(CallSide::Do);
        match (side, self.attempt) {
            (CallSide::Do, None) => write!(f, "{}", self.part),
            (CallSide::Do, Some(attempt)) => write!(f, "attempt {attempt} of {}", self.part),
            (side, None) => write!(f, "the {} of {}", side.noun(), self.part),
            (side, Some(attempt)) => write!(f, "{} attempt {attempt} of {}", side.noun(), self.part),
        }
    }
}

impl CallSide {
    /// The noun for the call in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            CallSide::Do => "call",
            CallSide::Fallback => "fallback",
            CallSide::Undo => "compensation",
            CallSide::Probe => "probe",
        }
    }
}

/// A step, its item, the side of the call, and the attempt.
type Location<'a> = (&'a StepId, Option<u32>, Option<CallSide>, Option<u32>);

impl<P> Event<P> {
    /// Returns the step the event is about, if it is about one.
    pub fn subject(&self) -> Option<EventSubject> {
        let (step, item, side, attempt) = self.location()?;
        Some(EventSubject { part: PartId { step: step.clone(), item }, side, attempt })
    }

    /// Whether the event is about this step, alone or among others.
    pub fn is_about(&self, step: &str) -> bool {
        match self {
            Event::StepsSkipped { steps, .. } => steps.iter().any(|skipped| skipped.as_str() == step),
            _ => self.location().is_some_and(|(named, ..)| named.as_str() == step),
        }
    }

    fn location(&self) -> Option<Location<'_>> {
        fn of(part: &PartId, side: Option<CallSide>, attempt: Option<u32>) -> Option<Location<'_>> {
            Some((&part.step, part.item, side, attempt))
        }
        match self {
            Event::AttemptStarted { part, side, attempt, .. }
            | Event::AttemptAccepted { part, side, attempt, .. }
            | Event::ToolAsked { part, side, attempt, .. }
            | Event::ToolAnswered { part, side, attempt, .. }
            | Event::AttemptSucceeded { part, side, attempt, .. }
            | Event::AttemptFailed { part, side, attempt, .. }
            | Event::AttemptLost { part, side, attempt, .. }
            | Event::LateAnswerArrived { part, side, attempt, .. } => of(part, Some(*side), Some(*attempt)),
            Event::ApprovalRequested { part, side, .. }
            | Event::CallForbidden { part, side, .. }
            | Event::CallDelayed { part, side, .. }
            | Event::PreparationFailed { part, side, .. }
            | Event::RetryAbandoned { part, side, .. }
            | Event::KeyExpired { part, side }
            | Event::DoubtSettled { part, side, .. } => of(part, Some(*side), None),
            Event::SettlementCorrected { part, side, attempt, .. } => of(part, Some(*side), Some(*attempt)),
            Event::ProbeInconclusive { part, reason } if reason == NO_PROBE => of(part, None, None),
            Event::ProbeInconclusive { part, .. } | Event::ProbePostponed { part, .. } => {
                of(part, Some(CallSide::Probe), None)
            }
            Event::QuestionAnswered { about: Question::Compensation(part), .. } => of(part, Some(CallSide::Undo), None),
            Event::QuestionAnswered { about: Question::SecondEffect(part), .. } => of(part, None, None),
            Event::ApprovalGranted { part, .. }
            | Event::ApprovalDenied { part, .. }
            | Event::ApprovalExpired { part, .. }
            | Event::ApprovalVoided { part, .. }
            | Event::QuestionAnswered { about: Question::Item(part), .. }
            | Event::CompensationRecorded { part, .. } => of(part, None, None),
            Event::FanOutOpened { step, .. }
            | Event::FailureHandled { step, .. }
            | Event::QuestionAnswered { about: Question::Failure(step), .. } => Some((step, None, None, None)),
            Event::DecisionRecorded { step, .. }
            | Event::ActionRecorded { step, .. }
            | Event::DeviationFound { step, .. } => step.as_ref().map(|step| (step, None, None, None)),
            Event::ExecutionOpened { .. }
            | Event::ExecutionStarted {}
            | Event::StepsSkipped { .. }
            | Event::QuestionAnswered { about: Question::Limit(_) | Question::Silence, .. }
            | Event::LimitReached { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::Held { .. }
            | Event::HoldEnded { .. }
            | Event::CancelRequested { .. }
            | Event::Killed { .. }
            | Event::Reopened { .. }
            | Event::CompensationStarted { .. }
            | Event::ReplanBegun { .. }
            | Event::ReplanAbandoned { .. }
            | Event::Replanned { .. }
            | Event::ReplanProposed { .. }
            | Event::ReplanRejected { .. }
            | Event::HandedOver { .. }
            | Event::AgentSeen {}
            | Event::AgentSilent { .. }
            | Event::ToolDrifted { .. }
            | Event::ToolRestored { .. }
            | Event::ToolAccepted { .. }
            | Event::ContextSaved { .. }
            | Event::ExecutionEnded { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. }
            | Event::ActRefused { .. } => None,
        }
    }
}
