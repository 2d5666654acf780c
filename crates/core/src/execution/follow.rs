//! Which events may follow in which phase. Any other event is a bug in Rutter, or bytes that Rutter did not write.

use super::apply::ApplyResult;
use super::view::PendingQuestion;
use super::{Execution, ExecutionPhase};
use crate::journal::event::{CallSide, Event, Question};
use crate::plan::Driver;

impl Execution {
    pub(super) fn may_follow(&self, event: &Event) -> ApplyResult {
        let pending = self.phase == ExecutionPhase::Pending;
        let forward = self.phase == ExecutionPhase::Forward;
        let undoing = self.phase == ExecutionPhase::Undoing;
        let ended = matches!(self.phase, ExecutionPhase::Ended { .. });
        let live =
            matches!(self.phase, ExecutionPhase::Forward | ExecutionPhase::Draining { .. } | ExecutionPhase::Undoing);
        let held = self.held.is_some();
        let may = match event {
            // Time stands still.
            Event::AttemptStarted { by: Driver::Server, .. }
            | Event::ApprovalExpired { .. }
            | Event::FailureHandled { .. }
            | Event::LimitReached { .. }
            | Event::AgentSilent { .. }
                if held =>
            {
                false
            }
            Event::ExecutionOpened { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. }
            | Event::ActRefused { .. } => false,
            Event::ExecutionStarted {} => pending,
            Event::FanOutOpened { .. }
            | Event::StepsSkipped { .. }
            | Event::RetryAbandoned { .. }
            | Event::FailureHandled { .. }
            | Event::Replanned { .. } => forward,
            // The execution stays ended while a person decides.
            Event::ReplanProposed { .. } => forward || ended,
            Event::ApprovalGranted { .. }
            | Event::ApprovalDenied { .. }
            | Event::ApprovalExpired { .. }
            | Event::ApprovalVoided { .. } => forward || undoing,
            Event::ReplanRejected { .. } => (forward || ended) && self.proposal.is_some(),
            // Time goes on while the question about another limit is open.
            Event::LimitReached { limit, .. } => {
                forward && self.over.is_none_or(|over| limit.is_time() && !over.is_time())
            }
            Event::ReplanBegun { .. } => forward && !self.replanning,
            Event::ReplanAbandoned { .. } => self.replanning || self.proposal.is_some(),
            Event::QuestionAnswered {
                about: Question::Failure(_) | Question::Item(_) | Question::Limit(_), ..
            } => forward,
            Event::QuestionAnswered { about: Question::Silence, answer, .. } => match self.ask_silence() {
                Some(PendingQuestion::Silence { answers, .. }) => answers.contains(answer),
                _ => false,
            },
            Event::QuestionAnswered { about: Question::Compensation(_), .. } => undoing,
            Event::QuestionAnswered { about: Question::SecondEffect(_), .. } => !pending,
            Event::KeyExpired { side: CallSide::Probe, .. } => false,
            Event::AttemptStarted { side, .. }
            | Event::PreparationFailed { side, .. }
            | Event::KeyExpired { side, .. }
            | Event::ApprovalRequested { side, .. }
            | Event::CallForbidden { side, .. }
            | Event::CallDelayed { side, .. } => match side {
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
            | Event::ProbeInconclusive { .. }
            | Event::ProbePostponed { .. } => live,
            Event::LateAnswerArrived { .. } | Event::DoubtSettled { .. } | Event::CompensationRecorded { .. } => {
                !pending
            }
            Event::SettlementCorrected { happened, .. } => (*happened && !pending) || forward || ended,
            Event::Paused { .. } => live && !self.paused,
            Event::Resumed { .. } => self.paused && !held,
            Event::Held { .. } => live && !held,
            Event::HoldEnded { .. } => held,
            Event::CancelRequested { .. } => pending || forward,
            Event::Killed { .. } => !ended && self.phase != ExecutionPhase::Killed,
            Event::Reopened { .. } => ended,
            Event::CompensationStarted { .. } => {
                ended || matches!(self.phase, ExecutionPhase::Draining { undo: true, .. })
            }
            // An agent may take over from one that is silent.
            Event::HandedOver { to, .. } => !ended && (*to != self.driver || self.silent_since.is_some()),
            Event::AgentSeen {} => !ended && self.driver == Driver::Agent,
            // In journals of earlier versions another agent could end the silence.
            Event::AgentSilent { .. } => live && self.driver == Driver::Agent,
            Event::ToolDrifted { .. } | Event::ToolAccepted { .. } => !ended,
            Event::ToolRestored { tool, .. } => !ended && self.drifted.contains_key(tool),
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
