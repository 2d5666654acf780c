//! Commands to an execution, as they are stored until the execution has decided them.

use crate::control::ControlAction;
use crate::report::AgentReport;
use rutter_core::actor::ActorProof;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::id::{PartId, PlanId};
use rutter_core::journal::event::{CallSide, LateAnswer};
use rutter_core::redact::Redactor;
use rutter_core::tool::CallOutcome;
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
    /// How the sender proved who it is: the store keeps only the kind and the name of actors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proof: Option<ActorProof>,
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
    Late(LateReturn),
    Control { control: ControlAction, reason: String },
    Report { report: AgentReport },
}

/// Follow another plan, already saved as this revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "signal", rename = "replan")]
pub struct ReplanCommand {
    pub plan: PlanId,
    pub revision: u32,
    pub reason: String,
}

/// A tool answered a call after it had ended, and the execution was not in memory. Only the engine itself stores it;
/// secrets were taken out of it where it came in.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "signal", rename = "answered_late")]
pub(crate) struct LateReturn {
    part: PartId,
    side: CallSide,
    attempt: u32,
    answer: LateAnswer<Arc<Value>>,
    #[serde(default)]
    cost_micros: u64,
}

impl LateReturn {
    pub(crate) fn new(part: PartId, side: CallSide, attempt: u32, outcome: CallOutcome) -> LateReturn {
        let (answer, cost_micros) = match outcome {
            CallOutcome::Done { result, cost_micros } => (LateAnswer::Done(result), cost_micros),
            CallOutcome::NotDone(failure) => (LateAnswer::NotDone(failure), 0),
            CallOutcome::Maybe(failure) => (LateAnswer::Maybe(failure), 0),
        };
        LateReturn { part, side, attempt, answer, cost_micros }
    }

    /// The call it answers, and what it says.
    pub(crate) fn into_outcome(self) -> (PartId, CallSide, u32, CallOutcome) {
        let LateReturn { part, side, attempt, answer, cost_micros } = self;
        let outcome = match answer {
            LateAnswer::Done(result) => CallOutcome::Done { result, cost_micros },
            LateAnswer::NotDone(failure) => CallOutcome::NotDone(failure),
            LateAnswer::Maybe(failure) => CallOutcome::Maybe(failure),
        };
        (part, side, attempt, outcome)
    }
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
        ExecutionInput::Correct { reason, result, evidence, .. } => {
            text(reason);
            optional(result);
            optional(evidence);
        }
        ExecutionInput::RecordStarted { parameters, .. } | ExecutionInput::RecordClaim { parameters, .. } => {
            optional(parameters);
        }
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
        | ExecutionInput::AgentSeen { .. }
        | ExecutionInput::ReportDefinition { .. }
        | ExecutionInput::Withdraw { .. } => {}
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_result_stays_unknown_in_the_store_and_a_missing_one_missing() {
        for result in [None, Some(Arc::new(Value::Null)), Some(Arc::new(Value::from(1)))] {
            let action = ControlAction::Resolve { part: None, happened: true, result: result.clone(), evidence: None };
            let text = serde_json::to_string(&action).expect("plain data");
            assert_eq!(serde_json::from_str::<ControlAction>(&text).expect("it was just written"), action);
            let about = rutter_core::journal::event::Question::Silence;
            let answer = rutter_core::journal::event::QuestionAnswer::Continue;
            let (reason, evidence) = (String::new(), None);
            let input = ExecutionInput::Answer { about, answer, reason, result: result.clone(), evidence };
            let text = serde_json::to_string(&input).expect("plain data");
            match serde_json::from_str(&text).expect("it was just written") {
                ExecutionInput::Answer { result: read, .. } => assert_eq!(read, result),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Commands wait in the store across upgrades, so their bytes stay as they are.
    #[test]
    fn stored_commands_are_read_as_they_were_written() {
        for text in [
            r#"{"key":null,"said":{"signal":"pause","reason":"look"}}"#,
            r#"{"key":"k","seen":7,"said":{"signal":"replan","plan":"plan_1","revision":2,"reason":"better"}}"#,
            r#"{"key":null,"said":{"control":{"cancel":{"undo":true}},"reason":"enough"}}"#,
            r#"{"key":null,"proof":"unproven","said":{"control":{"approve":{"part":null,"call":null}},"reason":"fine"}}"#,
            r#"{"key":null,"said":{"control":{"resolve":{"part":"a","happened":true,"result":null,"evidence":"seen"}},"reason":"seen"}}"#,
            r#"{"key":null,"said":{"control":{"correct":{"part":"a","happened":true,"evidence":null}},"reason":"seen"}}"#,
            r#"{"key":null,"said":{"signal":"answered_late","part":"a","side":"do","attempt":1,"answer":{"done":{"id":1}},"cost_micros":0}}"#,
            r#"{"key":null,"said":{"report":{"step":{"part":"a","status":"completed","tool":"t.x","named":"t.x","parameters":null,"end":{"done":{"result":null,"is_silent":true}}}}}}"#,
            r#"{"key":null,"said":{"report":{"step":{"part":"a","status":"failed","tool":null,"named":null,"parameters":{"a":1},"end":{"failed":{"failure":{"category":"timeout","message":"late"},"maybe":true}}}}}}"#,
            r#"{"key":"k","said":{"report":{"decision":{"step":"a","action":"continue","reason":"fine","details":null}}}}"#,
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
