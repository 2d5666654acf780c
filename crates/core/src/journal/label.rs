//! The names of events, and their text for search.

use super::event::{CallSide, DoubtSource, Event, ExecutionEnding, LateAnswer};

/// Every name, in the order of the variants.
pub const KINDS: &[&str] = &[
    "execution_opened",
    "execution_started",
    "fan_out_opened",
    "steps_skipped",
    "approval_requested",
    "approval_granted",
    "approval_denied",
    "approval_expired",
    "approval_voided",
    "call_forbidden",
    "call_delayed",
    "attempt_started",
    "attempt_accepted",
    "tool_asked",
    "tool_answered",
    "attempt_succeeded",
    "attempt_failed",
    "attempt_lost",
    "late_answer_arrived",
    "preparation_failed",
    "retry_abandoned",
    "probe_inconclusive",
    "doubt_settled",
    "settlement_corrected",
    "failure_handled",
    "question_answered",
    "limit_reached",
    "paused",
    "resumed",
    "held",
    "hold_ended",
    "cancel_requested",
    "killed",
    "reopened",
    "compensation_started",
    "compensation_recorded",
    "replan_begun",
    "replan_abandoned",
    "replanned",
    "replan_proposed",
    "replan_rejected",
    "handed_over",
    "agent_seen",
    "agent_silent",
    "tool_drifted",
    "tool_restored",
    "tool_accepted",
    "decision_recorded",
    "action_recorded",
    "context_saved",
    "deviation_found",
    "execution_ended",
    "plan_saved",
    "payloads_erased",
    "executions_removed",
    "ledger_restored",
    "setting_changed",
    "act_refused",
    "probe_postponed",
    "key_expired",
];

impl<P> Event<P> {
    /// The name of the variant in stored bytes.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::ExecutionOpened { .. } => "execution_opened",
            Event::ExecutionStarted {} => "execution_started",
            Event::FanOutOpened { .. } => "fan_out_opened",
            Event::StepsSkipped { .. } => "steps_skipped",
            Event::ApprovalRequested { .. } => "approval_requested",
            Event::ApprovalGranted { .. } => "approval_granted",
            Event::ApprovalDenied { .. } => "approval_denied",
            Event::ApprovalExpired { .. } => "approval_expired",
            Event::ApprovalVoided { .. } => "approval_voided",
            Event::CallForbidden { .. } => "call_forbidden",
            Event::CallDelayed { .. } => "call_delayed",
            Event::AttemptStarted { .. } => "attempt_started",
            Event::AttemptAccepted { .. } => "attempt_accepted",
            Event::ToolAsked { .. } => "tool_asked",
            Event::ToolAnswered { .. } => "tool_answered",
            Event::AttemptSucceeded { .. } => "attempt_succeeded",
            Event::AttemptFailed { .. } => "attempt_failed",
            Event::AttemptLost { .. } => "attempt_lost",
            Event::LateAnswerArrived { .. } => "late_answer_arrived",
            Event::PreparationFailed { .. } => "preparation_failed",
            Event::RetryAbandoned { .. } => "retry_abandoned",
            Event::ProbeInconclusive { .. } => "probe_inconclusive",
            Event::ProbePostponed { .. } => "probe_postponed",
            Event::KeyExpired { .. } => "key_expired",
            Event::DoubtSettled { .. } => "doubt_settled",
            Event::SettlementCorrected { .. } => "settlement_corrected",
            Event::FailureHandled { .. } => "failure_handled",
            Event::QuestionAnswered { .. } => "question_answered",
            Event::LimitReached { .. } => "limit_reached",
            Event::Paused { .. } => "paused",
            Event::Resumed { .. } => "resumed",
            Event::Held { .. } => "held",
            Event::HoldEnded { .. } => "hold_ended",
            Event::CancelRequested { .. } => "cancel_requested",
            Event::Killed { .. } => "killed",
            Event::Reopened { .. } => "reopened",
            Event::CompensationStarted { .. } => "compensation_started",
            Event::CompensationRecorded { .. } => "compensation_recorded",
            Event::ReplanBegun { .. } => "replan_begun",
            Event::ReplanAbandoned { .. } => "replan_abandoned",
            Event::Replanned { .. } => "replanned",
            Event::ReplanProposed { .. } => "replan_proposed",
            Event::ReplanRejected { .. } => "replan_rejected",
            Event::HandedOver { .. } => "handed_over",
            Event::AgentSeen {} => "agent_seen",
            Event::AgentSilent { .. } => "agent_silent",
            Event::ToolDrifted { .. } => "tool_drifted",
            Event::ToolRestored { .. } => "tool_restored",
            Event::ToolAccepted { .. } => "tool_accepted",
            Event::DecisionRecorded { .. } => "decision_recorded",
            Event::ActionRecorded { .. } => "action_recorded",
            Event::ContextSaved { .. } => "context_saved",
            Event::DeviationFound { .. } => "deviation_found",
            Event::ExecutionEnded { .. } => "execution_ended",
            Event::PlanSaved { .. } => "plan_saved",
            Event::PayloadsErased { .. } => "payloads_erased",
            Event::ExecutionsRemoved { .. } => "executions_removed",
            Event::LedgerRestored { .. } => "ledger_restored",
            Event::SettingChanged { .. } => "setting_changed",
            Event::ActRefused { .. } => "act_refused",
        }
    }

    /// The searchable text of the event: reasons, messages, failures. Most events have none.
    pub fn words(&self) -> Option<String> {
        let mut words: Vec<&str> = Vec::new();
        match self {
            Event::ApprovalGranted { reason, .. }
            | Event::ApprovalDenied { reason, .. }
            | Event::ApprovalVoided { reason, .. }
            | Event::ProbeInconclusive { reason, .. }
            | Event::FailureHandled { reason, .. }
            | Event::QuestionAnswered { reason, .. }
            | Event::ToolAnswered { reason, .. }
            | Event::Paused { reason }
            | Event::Resumed { reason }
            | Event::Held { reason, .. }
            | Event::HoldEnded { reason, .. }
            | Event::CancelRequested { reason, .. }
            | Event::Killed { reason }
            | Event::Reopened { reason, .. }
            | Event::SettlementCorrected { reason, .. }
            | Event::CompensationStarted { reason, .. }
            | Event::ReplanBegun { reason }
            | Event::ReplanAbandoned { reason }
            | Event::Replanned { reason, .. }
            | Event::ReplanRejected { reason, .. }
            | Event::HandedOver { reason, .. }
            | Event::ToolAccepted { reason, .. }
            | Event::ExecutionEnded { reason, .. }
            | Event::PayloadsErased { reason, .. }
            | Event::ExecutionsRemoved { reason, .. }
            | Event::LedgerRestored { reason, .. } => words.push(reason),
            Event::DoubtSettled { reason, source: DoubtSource::Person | DoubtSource::Probe, .. } => {
                words.push(reason);
            }
            Event::AttemptFailed { failure, .. }
            | Event::PreparationFailed { failure, .. }
            | Event::RetryAbandoned { failure, .. }
            | Event::LateAnswerArrived { answer: LateAnswer::NotDone(failure) | LateAnswer::Maybe(failure), .. } => {
                words.extend([failure.category.as_str(), &failure.message])
            }
            Event::CallForbidden { rule, reason, .. } => {
                words.extend(rule.as_deref());
                words.push(reason);
            }
            Event::CallDelayed { rule, failure, .. } => {
                words.push(rule);
                words.extend(failure.iter().flat_map(|failure| [failure.category.as_str(), &failure.message]));
            }
            Event::ReplanProposed { weakens, reason, .. } => {
                words.extend(weakens.iter().map(String::as_str));
                words.push(reason);
            }
            Event::CompensationRecorded { description, .. } | Event::DeviationFound { description, .. } => {
                words.push(description);
            }
            Event::DecisionRecorded { decision, reason, .. } => words.extend([decision.as_str(), reason]),
            Event::ActionRecorded { kind, description, .. } => words.extend([kind.as_str(), description]),
            Event::ToolAsked { message, .. } => words.push(message),
            Event::PlanSaved { name, .. } => words.push(name),
            Event::SettingChanged { setting, id, change } => words.extend([setting.as_str(), id, change]),
            Event::ActRefused { act, code, reason, .. } => words.extend([act.as_str(), code, reason]),
            Event::ExecutionOpened { .. }
            | Event::ExecutionStarted {}
            | Event::FanOutOpened { .. }
            | Event::StepsSkipped { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalExpired { .. }
            | Event::AttemptStarted { .. }
            | Event::AttemptAccepted { .. }
            | Event::AttemptSucceeded { .. }
            | Event::AttemptLost { .. }
            | Event::AgentSeen {}
            | Event::AgentSilent { .. }
            | Event::LateAnswerArrived { answer: LateAnswer::Done(_), .. }
            | Event::ProbePostponed { .. }
            | Event::KeyExpired { .. }
            | Event::DoubtSettled { source: DoubtSource::LateAnswer, .. }
            | Event::LimitReached { .. }
            | Event::ToolDrifted { .. }
            | Event::ToolRestored { .. }
            | Event::ContextSaved { .. } => {}
        }
        words.retain(|word| !word.is_empty());
        (!words.is_empty()).then(|| words.join("\n"))
    }
}

impl CallSide {
    /// The name in the journal and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            CallSide::Do => "do",
            CallSide::Fallback => "fallback",
            CallSide::Undo => "undo",
            CallSide::Probe => "probe",
        }
    }
}

impl ExecutionEnding {
    pub fn as_str(self) -> &'static str {
        match self {
            ExecutionEnding::Completed => "completed",
            ExecutionEnding::Partial => "partial",
            ExecutionEnding::Failed => "failed",
            ExecutionEnding::Cancelled => "cancelled",
            ExecutionEnding::Compensated => "compensated",
        }
    }
}
