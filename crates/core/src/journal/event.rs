//! The events of an execution, as plain data in the past tense. Stored for ever.
//!
//! An event contains everything that [`crate::execution`] needs to reach the next state: replaying never
//! evaluates an expression or a policy again. `P` is the form of payloads: values in memory,
//! commitments in stored bytes.

use super::payload::EventPayload;
use crate::actor::Actor;
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId, PlanId, StepId, ToolName};
use crate::plan::{Driver, Plan, PolicyAction};
use crate::time::Timestamp;
use crate::tool::ToolFailure;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// An event with its time and actor: an entry before it is sealed.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord<P = EventPayload> {
    pub at: Timestamp,
    pub actor: Actor,
    pub event: Event<P>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event<P = EventPayload> {
    /// The first event of every execution.
    ExecutionOpened {
        plan: PlanReference,
        revision: u32,
        lineage: String,
        driver: Driver,
        inputs: P,
    },
    ExecutionStarted {},

    /// A step's list is known; it gets one part per item.
    FanOutOpened {
        step: StepId,
        count: u32,
        items: P,
    },
    /// The steps will not run; steps that only wait for them proceed.
    StepsSkipped {
        steps: Vec<StepId>,
        because: SkipReason,
    },

    ApprovalRequested {
        part: PartId,
        side: CallSide,
        call: Hash,
        tool: ToolName,
        parameters: P,
        expires_at: Timestamp,
    },
    ApprovalGranted {
        part: PartId,
        call: Hash,
        reason: String,
    },
    ApprovalDenied {
        part: PartId,
        call: Hash,
        reason: String,
    },
    ApprovalExpired {
        part: PartId,
        call: Hash,
    },
    /// The call has changed since its approval was requested or granted.
    ApprovalVoided {
        part: PartId,
        call: Hash,
        reason: String,
    },

    /// Written before the first byte is sent.
    AttemptStarted {
        part: PartId,
        side: CallSide,
        attempt: u32,
        by: Driver,
        tool: ToolName,
        definition: Hash,
        call: Hash,
        key: Hash,
        parameters: P,
        deadline: Option<Timestamp>,
    },
    /// The tool works in the background and can be asked with this ticket: a crash does not lose the attempt.
    AttemptAccepted {
        part: PartId,
        side: CallSide,
        attempt: u32,
        ticket: String,
    },
    /// The tool asks a question before it continues. The message is the tool's.
    ToolAsked {
        part: PartId,
        side: CallSide,
        attempt: u32,
        message: String,
        schema: P,
    },
    /// The tool got an answer, or `None` if there will be none.
    ToolAnswered {
        part: PartId,
        side: CallSide,
        attempt: u32,
        answer: Option<P>,
        reason: String,
    },
    AttemptSucceeded {
        part: PartId,
        side: CallSide,
        attempt: u32,
        result: P,
        cost_micros: u64,
    },
    AttemptFailed {
        part: PartId,
        side: CallSide,
        attempt: u32,
        failure: ToolFailure,
        maybe: bool,
        then: AttemptFollowUp,
    },
    /// The outcome cannot be learned any more: the process crashed, or the agent is gone.
    AttemptLost {
        part: PartId,
        side: CallSide,
        attempt: u32,
        then: AttemptFollowUp,
    },
    /// An answer to an attempt that was already closed.
    LateAnswerArrived {
        part: PartId,
        side: CallSide,
        attempt: u32,
        answer: LateAnswer<P>,
        cost_micros: u64,
    },
    /// No attempt could be made: a condition, a list or parameters could not be evaluated.
    PreparationFailed {
        part: PartId,
        side: CallSide,
        failure: ToolFailure,
    },
    /// The deadline or the attempts ran out between two attempts.
    RetryAbandoned {
        part: PartId,
        side: CallSide,
        failure: ToolFailure,
    },

    /// The probe answered, but its answer settles nothing.
    ProbeInconclusive {
        part: PartId,
        reason: String,
    },
    DoubtSettled {
        part: PartId,
        side: CallSide,
        happened: bool,
        source: DoubtSource,
        reason: String,
        result: Option<P>,
        evidence: Option<P>,
        then: AttemptFollowUp,
    },

    /// A step failed for good and its policy was applied.
    FailureHandled {
        step: StepId,
        action: PolicyAction,
        reason: String,
        cancelled: Vec<StepId>,
        skipped: Vec<StepId>,
    },
    /// A question was answered by an agent or a person.
    QuestionAnswered {
        about: Question,
        answer: QuestionAnswer,
        reason: String,
        result: Option<P>,
        evidence: Option<P>,
        skipped: Vec<StepId>,
    },
    LimitReached {
        limit: ExecutionLimit,
        action: PolicyAction,
    },

    Paused {
        reason: String,
    },
    Resumed {
        reason: String,
    },
    /// No new attempts start; calls in flight are cancelled or awaited.
    CancelRequested {
        reason: String,
        undo: bool,
    },
    /// Stopped without clean-up; the outcome of calls in flight stays unknown.
    Killed {
        reason: String,
    },

    /// The parts to undo, in this order: dependents first.
    CompensationStarted {
        parts: Vec<PartId>,
        whole: bool,
        reason: String,
    },
    /// The actor reports that the part was undone by hand.
    CompensationRecorded {
        part: PartId,
        description: String,
        evidence: Option<P>,
    },

    ReplanBegun {
        reason: String,
    },
    ReplanAbandoned {
        reason: String,
    },
    Replanned {
        plan: PlanReference,
        revision: u32,
        reason: String,
    },

    HandedOver {
        to: Driver,
        reason: String,
    },
    ToolDrifted {
        tool: ToolName,
        pinned: Hash,
        found: Hash,
    },
    ToolAccepted {
        tool: ToolName,
        definition: Hash,
        reason: String,
    },

    DecisionRecorded {
        step: Option<StepId>,
        decision: String,
        reason: String,
        details: Option<P>,
    },
    ActionRecorded {
        step: Option<StepId>,
        kind: String,
        description: String,
        details: Option<P>,
    },
    ContextSaved {
        values: P,
    },
    /// The execution deviated from its plan.
    DeviationFound {
        kind: Deviation,
        step: Option<StepId>,
        description: String,
    },

    ExecutionEnded {
        outcome: ExecutionEnding,
        reason: String,
        remains: Vec<PartId>,
    },

    // The following events concern a ledger as a whole. They are in the ledger's own journal, never in an execution's.
    PlanSaved {
        id: PlanId,
        revision: u32,
        plan: Hash,
        name: String,
    },
    /// Bytes and salts are gone; the commitments stay.
    PayloadsErased {
        execution: ExecutionId,
        payloads: u64,
        reason: String,
    },
    /// Entries and payloads are gone; the hashes stay.
    ExecutionsRemoved {
        executions: Vec<RemovedExecution>,
        reason: String,
    },
    /// The ledger continues from a backup, under another name; entries after the backup are unknown.
    LedgerRestored {
        origin: String,
        size: u64,
        reason: String,
    },
    /// A setting of the installation changed: a key, a webhook, a rule. Or a delivery to a webhook was given up or
    /// resent. `change` describes it.
    SettingChanged {
        setting: String,
        id: String,
        change: String,
    },
}

impl<P> Event<P> {
    /// Adds the plan itself to its hash, if the event names a plan.
    pub fn supply_plan(&mut self, find: &dyn Fn(Hash) -> Option<Arc<Plan>>) {
        if let Event::ExecutionOpened { plan, .. } | Event::Replanned { plan, .. } = self {
            plan.plan = find(plan.hash);
        }
    }
}

/// The call of a part that an attempt makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallSide {
    Do,
    Fallback,
    Undo,
    Probe,
}

/// The follow-up of a closed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptFollowUp {
    RetryAt(Timestamp),
    FallBack,
    /// It may have taken effect and must not be repeated before that is known.
    InDoubt,
    GiveUp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateAnswer<P = EventPayload> {
    Done(P),
    NotDone(ToolFailure),
    Maybe(ToolFailure),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Its `when` is false.
    Condition,
    /// It reads the result of a step that has none.
    NeedsResultOf(StepId),
    /// The agent ended without doing it.
    LeftUndone,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Condition => f.write_str("the condition is false"),
            SkipReason::NeedsResultOf(step) => write!(f, "{step} has no result"),
            SkipReason::LeftUndone => f.write_str("the agent ended without it"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoubtSource {
    Probe,
    LateAnswer,
    Person,
}

/// A question an execution waits on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// A step failed for good under `manual_decision`.
    Failure(StepId),
    /// A compensation failed for good.
    Compensation(PartId),
    Limit(ExecutionLimit),
}

impl Question {
    pub const FAILURE_ANSWERS: &[QuestionAnswer] = &[
        QuestionAnswer::Retry,
        QuestionAnswer::Skip,
        QuestionAnswer::Resolve,
        QuestionAnswer::Stop,
        QuestionAnswer::Continue,
        QuestionAnswer::Compensate,
        QuestionAnswer::Replan,
    ];
    pub const COMPENSATION_ANSWERS: &[QuestionAnswer] =
        &[QuestionAnswer::Retry, QuestionAnswer::Resolve, QuestionAnswer::Skip];
    pub const LIMIT_ANSWERS: &[QuestionAnswer] =
        &[QuestionAnswer::Continue, QuestionAnswer::Stop, QuestionAnswer::Compensate, QuestionAnswer::Replan];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionAnswer {
    Retry,
    Skip,
    /// Done by hand, with evidence.
    Resolve,
    Stop,
    Continue,
    Compensate,
    Replan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionLimit {
    Deadline,
    Calls,
    Cost,
    Time,
    Entries,
}

/// How an execution can deviate from its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deviation {
    Skipped,
    Duplicate,
    OutOfOrder,
    Undeclared,
    /// Started but never finished.
    Dangling,
    Unapproved,
    /// Another tool than the plan names.
    OtherTool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionEnding {
    Completed,
    Partial,
    Failed,
    Cancelled,
    Compensated,
}

/// An execution that was cleaned up, and the end of its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedExecution {
    pub execution: ExecutionId,
    pub entries: u64,
    pub head: Hash,
}

/// A plan by its hash; in memory also the plan itself.
#[derive(Clone)]
pub struct PlanReference {
    pub hash: Hash,
    pub plan: Option<Arc<Plan>>,
}

impl PlanReference {
    pub fn of(plan: &Arc<Plan>) -> PlanReference {
        PlanReference { hash: plan.hash, plan: Some(plan.clone()) }
    }
}

impl PartialEq for PlanReference {
    fn eq(&self, other: &PlanReference) -> bool {
        self.hash == other.hash
    }
}

impl fmt::Debug for PlanReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan {}", self.hash.short())
    }
}

impl Serialize for PlanReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.hash.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PlanReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PlanReference, D::Error> {
        Ok(PlanReference { hash: Hash::deserialize(deserializer)?, plan: None })
    }
}
