//! Commands to an execution, as they are stored until the execution has decided them.

use crate::control::ControlAction;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::id::PlanId;
use rutter_core::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A command as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CommandEnvelope {
    /// The key of the request, deleted if the command is refused.
    pub(crate) key: Option<String>,
    /// How many entries the execution had when the caller read it; the command is refused if that has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seen: Option<u64>,
    #[serde(rename = "said")]
    pub(crate) body: CommandBody,
}

/// What a command asks for: an exact input, or a verb that is resolved when the command is decided. The execution's
/// questions may change until then, but the stored verb does not, so a repeated request with its key counts once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum CommandBody {
    Input(ExecutionInput),
    Replan(ReplanCommand),
    Control { control: ControlAction, reason: String },
}

/// Follow another plan, already saved as this revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "signal", rename = "replan")]
pub struct ReplanCommand {
    pub plan: PlanId,
    pub revision: u32,
    pub reason: String,
}

/// Takes secrets out of everything a caller wrote.
pub(crate) fn redacted(mut input: ExecutionInput, redactor: &Redactor) -> ExecutionInput {
    let text = |text: &mut String| *text = redactor.text(text).into_owned();
    let value = |value: &mut Arc<Value>| *value = redactor.value(value);
    let optional = |found: &mut Option<Arc<Value>>| found.iter_mut().for_each(value);
    match &mut input {
        ExecutionInput::Approve { reason, .. }
        | ExecutionInput::Deny { reason, .. }
        | ExecutionInput::Pause { reason }
        | ExecutionInput::Resume { reason }
        | ExecutionInput::Cancel { reason, .. }
        | ExecutionInput::Kill { reason }
        | ExecutionInput::Compensate { reason, .. }
        | ExecutionInput::BeginReplan { reason }
        | ExecutionInput::AbandonReplan { reason }
        | ExecutionInput::Replan { reason, .. }
        | ExecutionInput::HandOver { reason, .. }
        | ExecutionInput::AcceptTool { reason, .. }
        | ExecutionInput::RecordEnd { reason } => text(reason),
        ExecutionInput::AnswerTool { answer, reason, .. } => {
            optional(answer);
            text(reason);
        }
        ExecutionInput::Answer { reason, result, evidence, .. } => {
            text(reason);
            optional(result);
            optional(evidence);
        }
        ExecutionInput::Settle { reason, result, evidence, .. } => {
            text(reason);
            optional(result);
            value(evidence);
        }
        ExecutionInput::RecordStarted { parameters, .. } => optional(parameters),
        ExecutionInput::RecordFinished { result, .. } => value(result),
        ExecutionInput::RecordFailed { failure, .. } => *failure = redactor.failure(failure.clone()),
        ExecutionInput::RecordCompensation { description, evidence, .. } => {
            text(description);
            optional(evidence);
        }
        ExecutionInput::RecordDecision { decision, reason, details, .. } => {
            text(decision);
            text(reason);
            optional(details);
        }
        ExecutionInput::RecordAction { kind, description, details, .. } => {
            text(kind);
            text(description);
            optional(details);
        }
        ExecutionInput::SaveContext { values } => {
            let redacted = redactor.value(&Arc::new(Value::Object(std::mem::take(values))));
            *values = redacted.as_object().cloned().unwrap_or_default();
        }
        // Inputs of the engine itself were redacted at their source.
        ExecutionInput::Start
        | ExecutionInput::Wake
        | ExecutionInput::Recovered
        | ExecutionInput::Returned { .. }
        | ExecutionInput::Accepted { .. }
        | ExecutionInput::ToolAsks { .. }
        | ExecutionInput::ReportDrift { .. } => {}
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands wait in the store across upgrades, so their bytes stay as they are.
    #[test]
    fn stored_commands_are_read_as_they_were_written() {
        for text in [
            r#"{"key":null,"said":{"signal":"pause","reason":"look"}}"#,
            r#"{"key":"k","seen":7,"said":{"signal":"replan","plan":"plan_1","revision":2,"reason":"better"}}"#,
            r#"{"key":null,"said":{"control":{"cancel":{"undo":true}},"reason":"enough"}}"#,
            r#"{"key":null,"said":{"signal":"record_decision","step":null,"decision":"go","reason":"why","details":null}}"#,
        ] {
            let envelope: CommandEnvelope = serde_json::from_str(text).expect("it was written by an earlier version");
            assert_eq!(serde_json::to_string(&envelope).expect("plain data"), text);
        }
        for text in [
            r#"{"key":null,"said":{"signal":"start"}}"#,
            r#"{"key":null,"said":{"signal":"wake"}}"#,
            r#"{"key":null,"said":{"signal":"returned"}}"#,
        ] {
            assert!(serde_json::from_str::<CommandEnvelope>(text).is_err(), "only the engine gives {text}");
        }
    }
}
