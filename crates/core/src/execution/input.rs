//! What can be asked of an execution, and how it says no.

use crate::hash::Hash;
use crate::id::{PartId, StepId, ToolName};
use crate::journal::event::{Answer, Question, Record, Side};
use crate::plan::{Driver, Plan};
use crate::time::Timestamp;
use crate::tool::{Failure, Outcome};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Imperative: what somebody, a tool or the clock wants.
#[derive(Clone, Debug)]
pub enum Input {
    Start,
    /// Time has passed, or there is room for calls.
    Wake,
    /// Whoever drove this execution is gone; what ran is lost, unless its tool can be asked under a ticket.
    Recovered,
    Returned {
        part: PartId,
        side: Side,
        attempt: u32,
        outcome: Outcome,
    },
    /// The tool can be asked about a call being made, under this ticket.
    Accepted {
        part: PartId,
        side: Side,
        attempt: u32,
        ticket: String,
    },
    /// The tool wants to know something before it goes on with a call being made.
    ToolAsks {
        part: PartId,
        side: Side,
        attempt: u32,
        message: String,
        /// JSON Schema of a flat object.
        schema: Arc<Value>,
    },

    /// To a tool that asks; `None` declines.
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
        answer: Answer,
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
    /// `undo`: undo what was done; `None` follows the plan's `on_failure`.
    Cancel {
        reason: String,
        undo: Option<bool>,
    },
    Kill {
        reason: String,
    },
    /// After the end: undo everything, or some steps and what depends on them.
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
    Replan {
        plan: Arc<Plan>,
        reason: String,
    },

    HandOver {
        to: Driver,
        reason: String,
    },
    /// The tool's definition as found now is not the pinned one.
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
        failure: Failure,
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
    /// The agent says that it has done what it will do.
    RecordEnd {
        reason: String,
    },
    SaveContext {
        values: Map<String, Value>,
    },
}

/// When, and how many calls could be made at once.
///
/// `room` is an argument so that "started" is never written for a call that then waits in a queue.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Timestamp,
    pub room: u32,
}

/// Where calls can be made now. Asked for each call just before its start is recorded.
pub trait Room {
    /// Whether one more call of this tool may be made; the answer holds until the decision is carried out.
    fn take(&mut self, tool: &ToolName) -> bool;
}

/// So many calls, of any tools.
impl Room for u32 {
    fn take(&mut self, _tool: &ToolName) -> bool {
        let is_free = *self > 0;
        *self -= u32::from(is_free);
        is_free
    }
}

/// What follows: records to append in one piece, and only then calls to make.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    pub records: Vec<Record>,
    pub calls: Vec<ToolCall>,
}

/// A call whose attempt is in the records beside it or, where there is a ticket, has long been in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub part: PartId,
    pub side: Side,
    pub attempt: u32,
    pub tool: ToolName,
    /// The definition the plan relies on; the call is made only if the tool still has it.
    pub definition: Hash,
    /// Secrets are still references.
    pub parameters: Arc<Value>,
    pub key: Hash,
    pub deadline: Timestamp,
    /// What the tool said before a crash. The call goes on under it; nothing is sent anew.
    pub ticket: Option<Arc<str>>,
}

/// Not possible in this state. Nothing was changed.
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

/// Every refusal code, for the documentation to be compared with.
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
