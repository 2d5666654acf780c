//! The inputs of an execution, its decisions and refusals.

use crate::hash::Hash;
use crate::id::{PartId, StepId, ToolName};
use crate::journal::event::{CallSide, EventRecord, Question, QuestionAnswer};
use crate::plan::{Driver, Plan};
use crate::time::Timestamp;
use crate::tool::{CallOutcome, ToolFailure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// An input from a caller, a tool or the clock. Inputs from callers are stored until they are decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case", deny_unknown_fields)]
pub enum ExecutionInput {
    #[serde(skip)]
    Start,
    /// Time has passed, or there is capacity for calls.
    #[serde(skip)]
    Wake,
    /// The worker of this execution is gone; its attempts are lost, except those with a ticket.
    #[serde(skip)]
    Recovered,
    #[serde(skip)]
    Returned {
        part: PartId,
        side: CallSide,
        attempt: u32,
        outcome: CallOutcome,
    },
    /// The tool can be asked about a call in flight with this ticket.
    #[serde(skip)]
    Accepted {
        part: PartId,
        side: CallSide,
        attempt: u32,
        ticket: String,
    },
    /// The tool asks a question before it continues a call in flight.
    #[serde(skip)]
    ToolAsks {
        part: PartId,
        side: CallSide,
        attempt: u32,
        message: String,
        /// JSON Schema of a flat object.
        schema: Arc<Value>,
    },

    /// Answers a tool's question; `None` declines.
    AnswerTool {
        part: PartId,
        attempt: u32,
        answer: Option<Arc<Value>>,
        reason: String,
    },
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
        answer: QuestionAnswer,
        reason: String,
        result: Option<Arc<Value>>,
        evidence: Option<Arc<Value>>,
    },
    Settle {
        part: PartId,
        happened: bool,
        reason: String,
        result: Option<Arc<Value>>,
        evidence: Arc<Value>,
    },

    Pause {
        reason: String,
    },
    Resume {
        reason: String,
    },
    /// `undo`: whether to compensate; `None` follows the plan's `on_failure`.
    Cancel {
        reason: String,
        undo: Option<bool>,
    },
    Kill {
        reason: String,
    },
    /// After the end: undoes everything, or some steps and their dependents.
    Compensate {
        steps: Option<Vec<StepId>>,
        reason: String,
    },

    BeginReplan {
        reason: String,
    },
    AbandonReplan {
        reason: String,
    },
    #[serde(skip)]
    Replan {
        plan: Arc<Plan>,
        reason: String,
    },

    HandOver {
        to: Driver,
        reason: String,
    },
    /// The tool's current definition differs from the pinned one.
    #[serde(skip)]
    ReportDrift {
        tool: ToolName,
        found: Hash,
    },
    AcceptTool {
        tool: ToolName,
        definition: Hash,
        reason: String,
    },

    RecordStarted {
        part: PartId,
        tool: Option<ToolName>,
        parameters: Option<Arc<Value>>,
    },
    RecordFinished {
        part: PartId,
        result: Arc<Value>,
    },
    RecordFailed {
        part: PartId,
        failure: ToolFailure,
        maybe: bool,
    },
    RecordCompensation {
        part: PartId,
        description: String,
        evidence: Option<Arc<Value>>,
    },
    RecordDecision {
        step: Option<StepId>,
        decision: String,
        reason: String,
        details: Option<Arc<Value>>,
    },
    RecordAction {
        step: Option<StepId>,
        kind: String,
        description: String,
        details: Option<Arc<Value>>,
    },
    /// The agent has finished and will do no more.
    RecordEnd {
        reason: String,
    },
    SaveContext {
        values: Map<String, Value>,
    },
}

/// The time of a decision, and how many calls can start now.
///
/// `room` is an argument so that no start is recorded for a call that then waits in a queue.
#[derive(Clone, Copy, Debug)]
pub struct DecisionContext {
    pub now: Timestamp,
    pub room: u32,
}

/// The capacity for calls. Asked for each call just before its start is recorded.
pub trait CallCapacity {
    /// Whether one more call of this tool may start; a permit is held until the decision is carried out.
    fn try_acquire(&mut self, tool: &ToolName) -> bool;
}

/// A number of calls, of any tools.
impl CallCapacity for u32 {
    fn try_acquire(&mut self, _tool: &ToolName) -> bool {
        let is_free = *self > 0;
        *self -= u32::from(is_free);
        is_free
    }
}

/// A decision: records to append atomically, and only then calls to make.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    pub records: Vec<EventRecord>,
    pub calls: Vec<ToolCall>,
}

/// A call whose attempt is in the decision's records or, with a ticket, already in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub part: PartId,
    pub side: CallSide,
    pub attempt: u32,
    pub tool: ToolName,
    /// The definition the plan was checked with; the call is made only if the tool still has it.
    pub definition: Hash,
    /// Secrets are still references, not values.
    pub parameters: Arc<Value>,
    pub key: Hash,
    pub deadline: Timestamp,
    /// The ticket from before a crash. The call resumes with it; the parameters are not sent again.
    pub ticket: Option<Arc<str>>,
}

impl ToolCall {
    /// The outcome of a call that is not made. With a ticket it was sent before a crash, and may have taken effect.
    pub fn not_made(&self, failure: ToolFailure) -> CallOutcome {
        match self.ticket {
            Some(_) => CallOutcome::Maybe(failure),
            None => CallOutcome::NotDone(failure),
        }
    }
}

/// An input that is not possible in this state. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Stable and documented in docs/errors.md.
    pub code: &'static str,
    pub message: String,
    pub hint: Option<String>,
}

impl Refusal {
    pub fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }
}

/// Every refusal code; a test compares them with the documentation.
pub const CODES: &[&str] = &[
    "execution.not_started",
    "execution.started",
    "execution.ended",
    "execution.stopping",
    "execution.paused",
    "execution.not_paused",
    "execution.unknown_part",
    "execution.unknown_attempt",
    "execution.told_already",
    "execution.question_invalid",
    "execution.answer_invalid",
    "execution.not_asked",
    "execution.other_call",
    "execution.not_a_person",
    "execution.no_question",
    "execution.no_such_answer",
    "execution.evidence_missing",
    "execution.not_in_doubt",
    "execution.in_doubt",
    "execution.nothing_to_undo",
    "execution.not_ended",
    "execution.replanning",
    "execution.not_replanning",
    "execution.replan_limit",
    "execution.driver",
    "execution.unknown_tool",
    "execution.text_too_long",
    "execution.too_large",
    "execution.inputs",
    "replan.under_way",
    "replan.in_doubt",
    "replan.completed_changed",
    "replan.may_have_happened",
];
