//! The inputs of an execution, its decisions and refusals.

use crate::hash::Hash;
use crate::id::{PartId, StepId, ToolName};
use crate::journal::event::{CallSide, EventRecord, Question, QuestionAnswer};
use crate::plan::{Driver, Plan};
use crate::policy::OperatorPolicy;
use crate::policy::window::LimitedCall;
use crate::time::Timestamp;
use crate::tool::{CallOutcome, Elicitation, ToolFailure};
use serde::{Deserialize, Deserializer, Serialize};
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
    /// The worker of this execution is gone; its attempts are lost, except those that can be resumed.
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
        question: Elicitation,
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
        /// `null` says that nobody knows it.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
        result: Option<Arc<Value>>,
        evidence: Option<Arc<Value>>,
    },
    Settle {
        part: PartId,
        happened: bool,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
        result: Option<Arc<Value>>,
        evidence: Arc<Value>,
    },
    /// Corrects what was settled by hand.
    Correct {
        part: PartId,
        happened: bool,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
        result: Option<Arc<Value>>,
        evidence: Option<Arc<Value>>,
    },

    Pause {
        reason: String,
    },
    /// Resumes. After a hold, its span does not count.
    Resume {
        reason: String,
    },
    /// Resumes; after a hold, what came due happens now.
    ResumeExpired {
        reason: String,
        /// Only of these: a step or item that the hold lists, or `deadline`, `time` or `agent`. All of it if empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<String>,
    },
    /// Stops the clock until a person has looked.
    #[serde(skip)]
    Hold {
        reason: String,
        since: Timestamp,
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

    /// After the end: goes on from these steps, or from everything that failed or did not run because of that.
    Reopen {
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
        /// The number it is saved under.
        revision: u32,
        reason: String,
    },
    /// Approves or rejects a proposed plan that weakens the present one.
    ApproveReplan {
        plan: Hash,
        reason: String,
    },
    RejectReplan {
        plan: Hash,
        reason: String,
    },

    HandOver {
        to: Driver,
        reason: String,
    },
    /// A sign of life of the agent that drives.
    AgentSeen {
        /// It was too early to be worth an entry when it came. It is recorded as of then, before its agent is called
        /// silent.
        #[serde(default)]
        remembered: bool,
    },
    /// The tool's current definition: another than the pinned one, or again that one.
    #[serde(skip)]
    ReportDefinition {
        tool: ToolName,
        found: Hash,
    },
    /// The call was not sent: its tool has another definition than the attempt was made for.
    #[serde(skip)]
    Withdraw {
        part: PartId,
        side: CallSide,
        attempt: u32,
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
    /// The call that an agent says it made for a part which takes no attempt of it over.
    RecordClaim {
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

/// Reads a value that is there, `null` too: a result that nobody knows is not one that was left out.
pub fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Value>>, D::Error> {
    Arc::<Value>::deserialize(deserializer).map(Some)
}

/// The time of a decision, and how many calls can start now.
///
/// `room` is an argument so that no start is recorded for a call that then waits in a queue.
#[derive(Clone, Copy, Debug)]
pub struct DecisionContext {
    pub now: Timestamp,
    pub room: u32,
}

/// The answer to a request for a permit.
#[derive(Clone, Debug, PartialEq)]
pub enum CallRoom {
    Free,
    /// Until another call ends.
    Full,
    /// The server takes no calls after failures: until when, and why.
    Paused {
        until: Timestamp,
        failure: ToolFailure,
    },
}

/// The capacity for calls. Asked for each call just before its start is recorded.
pub trait CallCapacity {
    /// Whether one more call of this tool may start; a permit is held until the decision is carried out.
    fn try_acquire(&mut self, tool: &ToolName) -> CallRoom;

    /// The same for a call that has waited long enough for its server: it is made, and refused if the server still takes
    /// none.
    fn try_acquire_paused(&mut self, tool: &ToolName) -> bool {
        self.try_acquire(tool) == CallRoom::Free
    }

    /// Counts one more call under a limit of the operator's policy, or says when there is room for it.
    fn reserve(&mut self, _call: &LimitedCall<'_>, _now: Timestamp) -> Option<Timestamp> {
        None
    }
}

/// The terms of a decision: the time, the capacity for calls and the operator's policy.
#[expect(missing_debug_implementations, reason = "the capacity is a trait object")]
pub struct DecisionTerms<'a> {
    pub now: Timestamp,
    pub room: &'a mut dyn CallCapacity,
    pub policy: &'a OperatorPolicy,
}

/// A number of calls, of any tools.
impl CallCapacity for u32 {
    fn try_acquire(&mut self, _tool: &ToolName) -> CallRoom {
        match self.checked_sub(1) {
            Some(left) => {
                *self = left;
                CallRoom::Free
            }
            None => CallRoom::Full,
        }
    }
}

/// A decision: records to append atomically, and only then calls to make.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    pub records: Vec<EventRecord>,
    pub calls: Vec<ToolCall>,
}

/// A call whose attempt is in the decision's records or, if it is resumed, already in the journal.
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
    /// The open question from before a crash. The call resumes with its answer.
    pub continuation: Option<Arc<Value>>,
}

impl ToolCall {
    /// Whether it was sent before a crash.
    pub fn is_resumed(&self) -> bool {
        self.ticket.is_some() || self.continuation.is_some()
    }

    /// The outcome of a call that is not made. One that was sent before a crash may have taken effect.
    pub fn not_made(&self, failure: ToolFailure) -> CallOutcome {
        match self.is_resumed() {
            true => CallOutcome::Maybe(failure),
            false => CallOutcome::NotDone(failure),
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
    "execution.held",
    "execution.not_paused",
    "execution.not_due",
    "execution.unknown_part",
    "execution.unknown_attempt",
    "execution.told_already",
    "execution.question_invalid",
    "execution.answer_invalid",
    "execution.not_asked",
    "execution.other_call",
    "execution.not_a_person",
    "execution.not_the_approver",
    "execution.not_proven",
    "execution.no_question",
    "execution.no_such_answer",
    "execution.evidence_missing",
    "execution.result_invalid",
    "execution.result_missing",
    "execution.answered",
    "execution.not_by_hand",
    "execution.nothing_to_correct",
    "execution.built_upon",
    "execution.not_in_doubt",
    "execution.in_doubt",
    "execution.nothing_to_undo",
    "execution.not_ended",
    "execution.nothing_left",
    "execution.after_failure",
    "execution.item_under_way",
    "execution.completed",
    "execution.compensated",
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
    "replan.rejected",
    "replan.not_proposed",
];
