//! Which events may follow in which phase. What may not is a mistake of ours, or somebody else's bytes.

use super::apply::Applied;
use super::{Execution, Phase};
use crate::journal::event::{Event, Question, Side};
use crate::mutation::Mutation;

impl Execution {
    pub(super) fn may_follow(&self, event: &Event) -> Applied {
        let pending = self.phase == Phase::Pending;
        let forward = self.phase == Phase::Forward;
        let undoing = self.phase == Phase::Undoing;
        let ended = matches!(self.phase, Phase::Ended { .. });
        let live = matches!(self.phase, Phase::Forward | Phase::Draining { .. } | Phase::Undoing);
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
                Side::Do | Side::Fallback => forward,
                Side::Undo => undoing,
                Side::Probe => live,
            },
            Event::AttemptAccepted { .. }
            | Event::ToolAsked { .. }
            | Event::ToolAnswered { .. }
            | Event::AttemptSucceeded { .. }
            | Event::AttemptFailed { .. }
            | Event::AttemptLost { .. }
            | Event::ProbeInconclusive { .. } => live,
            Event::LateAnswerArrived { .. }
            | Event::DoubtSettled { .. }
            | Event::CompensationRecorded { .. } => !pending,
            Event::Paused { .. } => live && !self.paused,
            Event::Resumed { .. } => self.paused,
            Event::CancelRequested { .. } => pending || forward,
            Event::Killed { .. } => !ended && self.phase != Phase::Killed,
            Event::CompensationStarted { .. } => {
                ended || matches!(self.phase, Phase::Draining { undo: true, .. })
            }
            Event::HandedOver { to, .. } => !ended && *to != self.driver,
            Event::ToolDrifted { .. } | Event::ToolAccepted { .. } => !ended,
            Event::DecisionRecorded { .. }
            | Event::ActionRecorded { .. }
            | Event::ContextSaved { .. }
            | Event::DeviationFound { .. } => true,
            Event::ExecutionEnded { .. } => {
                let at_rest = self.agenda.running.is_empty() && self.agenda.doubts.is_empty();
                let careless =
                    Mutation::CancelShownTooEarly.is_active() || Mutation::EndWithDoubt.is_active();
                self.phase == Phase::Killed || (live && (at_rest || careless))
            }
        };
        if may { Ok(()) } else { Err(format!("it may not happen while {:?}", self.phase)) }
    }
}
