//! What can be asked of an execution from outside, as it travels in a letter.

use crate::control::Control;
use rutter_core::execution::input::Input;
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, PlanId, StepId, ToolName};
use rutter_core::journal::event::{Answer, Question};
use rutter_core::plan::{Driver, Plan};
use rutter_core::redact::Redactor;
use rutter_core::tool::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a letter is written on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sheet {
    /// Of the request, to be forgotten if it is refused.
    pub(crate) key: Option<String>,
    /// How many entries the execution had when somebody looked at it who wants to be refused if it has more now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seen: Option<u64>,
    pub(crate) said: Said,
}

/// What a letter says: something exact, or a person's words, which are understood when they are decided. Until then
/// what is asked may change, and whoever says the same twice with one key is heard once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Said {
    Signal(Signal),
    Control { control: Control, reason: String },
}

/// The inputs of the core that people and agents may give. What tools and time say is not among them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case", deny_unknown_fields)]
pub enum Signal {
    Approve {
        part: PartId,
        call: Hash,
        reason: String,
    },
    Deny {
        part: PartId,
        call: Hash,
        reason: String,
    },
    Answer {
        about: Question,
        answer: Answer,
        reason: String,
        #[serde(default)]
        result: Option<Arc<Value>>,
        #[serde(default)]
        evidence: Option<Arc<Value>>,
    },
    Settle {
        part: PartId,
        happened: bool,
        reason: String,
        #[serde(default)]
        result: Option<Arc<Value>>,
        evidence: Arc<Value>,
    },
    Pause {
        reason: String,
    },
    Resume {
        reason: String,
    },
    Cancel {
        reason: String,
        #[serde(default)]
        undo: Option<bool>,
    },
    Kill {
        reason: String,
    },
    Compensate {
        #[serde(default)]
        steps: Option<Vec<StepId>>,
        reason: String,
    },
    BeginReplan {
        reason: String,
    },
    AbandonReplan {
        reason: String,
    },
    /// The plan was saved before, as this revision.
    Replan {
        plan: PlanId,
        revision: u32,
        reason: String,
    },
    /// What a tool asked in the middle of a call; nothing means that nobody will say.
    AnswerTool {
        part: PartId,
        attempt: u32,
        #[serde(default)]
        answer: Option<Arc<Value>>,
        reason: String,
    },
    HandOver {
        to: Driver,
        reason: String,
    },
    AcceptTool {
        tool: ToolName,
        definition: Hash,
        reason: String,
    },
    RecordStarted {
        part: PartId,
        #[serde(default)]
        tool: Option<ToolName>,
        #[serde(default)]
        parameters: Option<Arc<Value>>,
    },
    RecordFinished {
        part: PartId,
        result: Arc<Value>,
    },
    RecordFailed {
        part: PartId,
        failure: Failure,
        maybe: bool,
    },
    RecordCompensation {
        part: PartId,
        description: String,
        #[serde(default)]
        evidence: Option<Arc<Value>>,
    },
    RecordDecision {
        #[serde(default)]
        step: Option<StepId>,
        decision: String,
        reason: String,
        #[serde(default)]
        details: Option<Arc<Value>>,
    },
    RecordAction {
        #[serde(default)]
        step: Option<StepId>,
        kind: String,
        description: String,
        #[serde(default)]
        details: Option<Arc<Value>>,
    },
    RecordEnd {
        reason: String,
    },
    SaveContext {
        values: Map<String, Value>,
    },
}

impl Signal {
    /// Takes secrets out of everything somebody wrote.
    pub fn redacted(self, redactor: &Redactor) -> Signal {
        let text = |text: String| redactor.text(&text).into_owned();
        let value = |value: Arc<Value>| redactor.value(&value);
        let maybe = |found: Option<Arc<Value>>| found.map(&value);
        match self {
            Signal::Approve { part, call, reason } => Signal::Approve { part, call, reason: text(reason) },
            Signal::Deny { part, call, reason } => Signal::Deny { part, call, reason: text(reason) },
            Signal::Answer { about, answer, reason, result, evidence } => Signal::Answer {
                about,
                answer,
                reason: text(reason),
                result: maybe(result),
                evidence: maybe(evidence),
            },
            Signal::Settle { part, happened, reason, result, evidence } => Signal::Settle {
                part,
                happened,
                reason: text(reason),
                result: maybe(result),
                evidence: value(evidence),
            },
            Signal::Pause { reason } => Signal::Pause { reason: text(reason) },
            Signal::Resume { reason } => Signal::Resume { reason: text(reason) },
            Signal::Cancel { reason, undo } => Signal::Cancel { reason: text(reason), undo },
            Signal::Kill { reason } => Signal::Kill { reason: text(reason) },
            Signal::Compensate { steps, reason } => Signal::Compensate { steps, reason: text(reason) },
            Signal::BeginReplan { reason } => Signal::BeginReplan { reason: text(reason) },
            Signal::AbandonReplan { reason } => Signal::AbandonReplan { reason: text(reason) },
            Signal::Replan { plan, revision, reason } => {
                Signal::Replan { plan, revision, reason: text(reason) }
            }
            Signal::AnswerTool { part, attempt, answer, reason } => {
                Signal::AnswerTool { part, attempt, answer: maybe(answer), reason: text(reason) }
            }
            Signal::HandOver { to, reason } => Signal::HandOver { to, reason: text(reason) },
            Signal::AcceptTool { tool, definition, reason } => {
                Signal::AcceptTool { tool, definition, reason: text(reason) }
            }
            Signal::RecordStarted { part, tool, parameters } => {
                Signal::RecordStarted { part, tool, parameters: maybe(parameters) }
            }
            Signal::RecordFinished { part, result } => Signal::RecordFinished { part, result: value(result) },
            Signal::RecordFailed { part, failure, maybe } => {
                Signal::RecordFailed { part, failure: redactor.failure(failure), maybe }
            }
            Signal::RecordCompensation { part, description, evidence } => {
                Signal::RecordCompensation { part, description: text(description), evidence: maybe(evidence) }
            }
            Signal::RecordDecision { step, decision, reason, details } => Signal::RecordDecision {
                step,
                decision: text(decision),
                reason: text(reason),
                details: maybe(details),
            },
            Signal::RecordAction { step, kind, description, details } => Signal::RecordAction {
                step,
                kind: text(kind),
                description: text(description),
                details: maybe(details),
            },
            Signal::RecordEnd { reason } => Signal::RecordEnd { reason: text(reason) },
            Signal::SaveContext { values } => {
                let values = redactor.value(&Arc::new(Value::Object(values)));
                Signal::SaveContext { values: values.as_object().cloned().unwrap_or_default() }
            }
        }
    }

    /// As the core takes it; `plan` is the one a replan names.
    pub(crate) fn into_input(self, plan: Option<Arc<Plan>>) -> Option<Input> {
        Some(match self {
            Signal::Approve { part, call, reason } => Input::Approve { part, call, reason },
            Signal::Deny { part, call, reason } => Input::Deny { part, call, reason },
            Signal::Answer { about, answer, reason, result, evidence } => {
                Input::Answer { about, answer, reason, result, evidence }
            }
            Signal::Settle { part, happened, reason, result, evidence } => {
                Input::Settle { part, happened, reason, result, evidence }
            }
            Signal::Pause { reason } => Input::Pause { reason },
            Signal::Resume { reason } => Input::Resume { reason },
            Signal::Cancel { reason, undo } => Input::Cancel { reason, undo },
            Signal::Kill { reason } => Input::Kill { reason },
            Signal::Compensate { steps, reason } => Input::Compensate { steps, reason },
            Signal::BeginReplan { reason } => Input::BeginReplan { reason },
            Signal::AbandonReplan { reason } => Input::AbandonReplan { reason },
            Signal::Replan { reason, .. } => Input::Replan { plan: plan?, reason },
            Signal::AnswerTool { part, attempt, answer, reason } => {
                Input::AnswerTool { part, attempt, answer, reason }
            }
            Signal::HandOver { to, reason } => Input::HandOver { to, reason },
            Signal::AcceptTool { tool, definition, reason } => Input::AcceptTool { tool, definition, reason },
            Signal::RecordStarted { part, tool, parameters } => {
                Input::RecordStarted { part, tool, parameters }
            }
            Signal::RecordFinished { part, result } => Input::RecordFinished { part, result },
            Signal::RecordFailed { part, failure, maybe } => Input::RecordFailed { part, failure, maybe },
            Signal::RecordCompensation { part, description, evidence } => {
                Input::RecordCompensation { part, description, evidence }
            }
            Signal::RecordDecision { step, decision, reason, details } => {
                Input::RecordDecision { step, decision, reason, details }
            }
            Signal::RecordAction { step, kind, description, details } => {
                Input::RecordAction { step, kind, description, details }
            }
            Signal::RecordEnd { reason } => Input::RecordEnd { reason },
            Signal::SaveContext { values } => Input::SaveContext { values },
        })
    }
}
