//! Which events may follow in which phase. Any other event is a bug in Rutter, or bytes that Rutter did not write.

use super::apply::ApplyResult;
use super::{Execution, ExecutionPhase};
use crate::journal::event::{CallSide, Event, Question};

impl Execution {
    pub(super) fn may_follow(&self, event: &Event) -> ApplyResult {
        let pending = self.phase == ExecutionPhase::Pending;
        let forward = self.phase == ExecutionPhase::Forward;
        let undoing = self.phase == ExecutionPhase::Undoing;
        let ended = matches!(self.phase, ExecutionPhase::Ended { .. });
        let live =
            matches!(self.phase, ExecutionPhase::Forward | ExecutionPhase::Draining { .. } | ExecutionPhase::Undoing);
        let may = match event {
            Event::ExecutionOpened { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. } => false,
            Event::ExecutionStarted {} => pending,
            Event::FanOutOpened { .. }
            | Event::StepsSkipped { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalGranted { .. }
            | Event::ApprovalDenied { .. }
            | Event::ApprovalExpired { .. }
            | Event::ApprovalVoided { .. }
            | Event::RetryAbandoned { .. }
            | Event::FailureHandled { .. }
            | Event::Replanned { .. } => forward,
            Event::LimitReached { .. } => forward && self.over.is_none(),
            Event::ReplanBegun { .. } => forward && !self.replanning,
            Event::ReplanAbandoned { .. } => self.replanning,
            Event::QuestionAnswered { about: Question::Failure(_) | Question::Limit(_), .. } => forward,
            Event::QuestionAnswered { about: Question::Compensation(_), .. } => undoing,
            Event::AttemptStarted { side, .. } | Event::PreparationFailed { side, .. } => match side {
                CallSide::Do | CallSide::Fallback => forward,
                CallSide::Undo => undoing,
                CallSide::Probe => live,
            },
            Event::AttemptAccepted { .. }
            | Event::ToolAsked { .. }
            | Event::ToolAnswered { .. }
            | Event::AttemptSucceeded { .. }
            | Event::AttemptFailed { .. }
            | Event::AttemptLost { .. }
            | Event::ProbeInconclusive { .. } => live,
            Event::LateAnswerArrived { .. } | Event::DoubtSettled { .. } | Event::CompensationRecorded { .. } => {
                !pending
            }
            Event::Paused { .. } => live && !self.paused,
            Event::Resumed { .. } => self.paused,
            Event::CancelRequested { .. } => pending || forward,
            Event::Killed { .. } => !ended && self.phase != ExecutionPhase::Killed,
            Event::CompensationStarted { .. } => {
                ended || matches!(self.phase, ExecutionPhase::Draining { undo: true, .. })
            }
            Event::HandedOver { to, .. } => !ended && *to != self.driver,
            Event::ToolDrifted { .. } | Event::ToolAccepted { .. } => !ended,
            Event::DecisionRecorded { .. }
            | Event::ActionRecorded { .. }
            | Event::ContextSaved { .. }
            | Event::DeviationFound { .. } => true,
            Event::ExecutionEnded { .. } => {
                let at_rest = self.agenda.running.is_empty() && self.agenda.doubts.is_empty();
                self.phase == ExecutionPhase::Killed || (live && at_rest)
            }
        };
        if may { Ok(()) } else { Err(format!("it may not happen while {:?}", self.phase)) }
    }
}
