//! How long the texts of an input may be, and how large a saved context.

use super::AdmissionResult;
use crate::execution::Execution;
use crate::execution::input::{ExecutionInput, Refusal};
use crate::limits;

impl Execution {
    pub(super) fn admit_texts(&self, input: &ExecutionInput) -> AdmissionResult {
        let texts: [&str; 2] = match input {
            ExecutionInput::Approve { reason, .. }
            | ExecutionInput::Deny { reason, .. }
            | ExecutionInput::Answer { reason, .. }
            | ExecutionInput::Settle { reason, .. }
            | ExecutionInput::Correct { reason, .. }
            | ExecutionInput::Pause { reason }
            | ExecutionInput::Resume { reason }
            | ExecutionInput::ResumeExpired { reason, .. }
            | ExecutionInput::Hold { reason, .. }
            | ExecutionInput::Cancel { reason, .. }
            | ExecutionInput::Kill { reason }
            | ExecutionInput::Compensate { reason, .. }
            | ExecutionInput::Reopen { reason, .. }
            | ExecutionInput::BeginReplan { reason }
            | ExecutionInput::AbandonReplan { reason }
            | ExecutionInput::Replan { reason, .. }
            | ExecutionInput::ApproveReplan { reason, .. }
            | ExecutionInput::RejectReplan { reason, .. }
            | ExecutionInput::HandOver { reason, .. }
            | ExecutionInput::AcceptTool { reason, .. }
            | ExecutionInput::AnswerTool { reason, .. }
            | ExecutionInput::RecordEnd { reason } => [reason, ""],
            ExecutionInput::ToolAsks { question, .. } => [&question.message, ""],
            ExecutionInput::RecordCompensation { description, .. } => [description, ""],
            ExecutionInput::RecordDecision { decision, reason, .. } => [decision, reason],
            ExecutionInput::RecordAction { kind, description, .. } => [kind, description],
            ExecutionInput::RecordFailed { failure, .. } => [&failure.message, ""],
            ExecutionInput::SaveContext { values } => {
                let mut merged = self.context.clone();
                merged.extend(values.clone());
                let size = serde_json::to_vec(&merged).map_or(usize::MAX, |bytes| bytes.len());
                return if size <= limits::VALUE_BYTES_MAX {
                    Ok(())
                } else {
                    Err(Refusal::new(
                        "execution.too_large",
                        format!("a context has at most {} bytes", limits::VALUE_BYTES_MAX),
                    ))
                };
            }
            ExecutionInput::Start
            | ExecutionInput::Wake
            | ExecutionInput::Recovered
            | ExecutionInput::Returned { .. }
            | ExecutionInput::Accepted { .. }
            | ExecutionInput::ReportDefinition { .. }
            | ExecutionInput::Withdraw { .. }
            | ExecutionInput::AgentSeen { .. }
            | ExecutionInput::RecordStarted { .. }
            | ExecutionInput::RecordClaim { .. }
            | ExecutionInput::RecordFinished { .. } => return Ok(()),
        };
        match texts.iter().find(|text| text.len() > limits::REASON_BYTES_MAX) {
            Some(_) => Err(Refusal::new(
                "execution.text_too_long",
                format!("reasons and descriptions have at most {} bytes", limits::REASON_BYTES_MAX),
            )),
            None => Ok(()),
        }
    }
}
