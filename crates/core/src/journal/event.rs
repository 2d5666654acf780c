//! What can happen to an execution. Past tense, plain data, for ever.
//!
//! An event says everything that [`crate::execution`] needs to reach the next state: replaying never
//! evaluates an expression or a policy again. `P` is how payloads appear: values in memory,
//! commitments in stored bytes.

use super::payload::Payload;
use crate::actor::Actor;
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId, PlanId, StepId, ToolName};
use crate::plan::{Driver, Plan, PolicyAction};
use crate::time::Timestamp;
use crate::tool::Failure;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// An event with when and who: an entry before it is sealed.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<P = Payload> {
    pub at: Timestamp,
    pub actor: Actor,
    pub event: Event<P>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event<P = Payload> {
    /// The first event of every execution.
    ExecutionOpened {
        plan: PlanRef,
        revision: u32,
        lineage: String,
        driver: Driver,
        inputs: P,
    },
    ExecutionStarted {},

    /// A step's list is known: one part per item.
    FanOutOpened {
        step: StepId,
        count: u32,
        items: P,
    },
    /// The steps will not be done; what needs them in order goes on.
    StepsSkipped {
        steps: Vec<StepId>,
        because: SkipReason,
    },

    ApprovalRequested {
        part: PartId,
        side: Side,
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
    /// The call is no longer the one that was approved or asked for.
    ApprovalVoided {
        part: PartId,
        call: Hash,
        reason: String,
    },

    /// Written before the first byte is sent.
    AttemptStarted {
        part: PartId,
        side: Side,
        attempt: u32,
        by: Driver,
        tool: ToolName,
        definition: Hash,
        call: Hash,
        key: Hash,
        parameters: P,
        deadline: Option<Timestamp>,
    },
    /// The tool works on it elsewhere and can be asked under this ticket: a crash does not lose the attempt.
    AttemptAccepted {
        part: PartId,
        side: Side,
        attempt: u32,
        ticket: String,
    },
    /// The tool wants to know something before it goes on. The words are the tool's.
    ToolAsked {
        part: PartId,
        side: Side,
        attempt: u32,
        message: String,
        schema: P,
    },
    /// Somebody answered the tool, or with no answer: nobody will.
    ToolAnswered {
        part: PartId,
        side: Side,
        attempt: u32,
        answer: Option<P>,
        reason: String,
    },
    AttemptSucceeded {
        part: PartId,
        side: Side,
        attempt: u32,
        result: P,
        cost_micros: u64,
    },
    AttemptFailed {
        part: PartId,
        side: Side,
        attempt: u32,
        failure: Failure,
        maybe: bool,
        then: Then,
    },
    /// Nobody is left who could say how it ended: a crash, or an agent that is gone.
    AttemptLost {
        part: PartId,
        side: Side,
        attempt: u32,
        then: Then,
    },
    /// An answer to an attempt that was already closed.
    LateAnswerArrived {
        part: PartId,
        side: Side,
        attempt: u32,
        answer: LateAnswer<P>,
        cost_micros: u64,
    },
    /// No attempt could be made: a condition, a list or parameters could not be worked out.
    PreparationFailed {
        part: PartId,
        side: Side,
        failure: Failure,
    },
    /// Time or tries ran out between two attempts.
    RetryAbandoned {
        part: PartId,
        side: Side,
        failure: Failure,
    },

    /// The probe answered, and its answer does not tell.
    ProbeInconclusive {
        part: PartId,
        reason: String,
    },
    DoubtSettled {
        part: PartId,
        side: Side,
        happened: bool,
        source: DoubtSource,
        reason: String,
        result: Option<P>,
        evidence: Option<P>,
        then: Then,
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
        answer: Answer,
        reason: String,
        result: Option<P>,
        evidence: Option<P>,
        skipped: Vec<StepId>,
    },
    LimitReached {
        limit: Limit,
        action: PolicyAction,
    },

    Paused {
        reason: String,
    },
    Resumed {
        reason: String,
    },
    /// No new attempts; what runs is cancelled or awaited.
    CancelRequested {
        reason: String,
        undo: bool,
    },
    /// Stopped without clean-up; what was under way stays unknown.
    Killed {
        reason: String,
    },

    /// The parts to undo, in the order in which they will be, dependents first.
    CompensationStarted {
        parts: Vec<PartId>,
        whole: bool,
        reason: String,
    },
    /// Undone by hand, by whoever says so.
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
        plan: PlanRef,
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
    /// What was done is not what was planned.
    DeviationFound {
        kind: Deviation,
        step: Option<StepId>,
        description: String,
    },

    ExecutionEnded {
        outcome: EndedAs,
        reason: String,
        remains: Vec<PartId>,
    },

    // What follows happens to a ledger as a whole and stands in the ledger's own journal, never in an execution's.
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
        executions: Vec<Removed>,
        reason: String,
    },
    /// The ledger goes on from a backup, under another name; what came after the backup is unknown.
    LedgerRestored {
        origin: String,
        size: u64,
        reason: String,
    },
    /// Somebody changed how the installation behaves: a key, a webhook, a rule. Or a delivery to a webhook was given up or
    /// sent again. `change` says it in words.
    SettingChanged {
        setting: String,
        id: String,
        change: String,
    },
}

impl<P> Event<P> {
    /// Puts the plan itself beside its hash, where the event names one.
    pub fn supply_plan(&mut self, find: &dyn Fn(Hash) -> Option<Arc<Plan>>) {
        if let Event::ExecutionOpened { plan, .. } | Event::Replanned { plan, .. } = self {
            plan.plan = find(plan.hash);
        }
    }
}

/// Which call of a part an attempt makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Do,
    Fallback,
    Undo,
    Probe,
}

/// What follows a closed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    RetryAt(Timestamp),
    FallBack,
    /// It may have happened and must not be repeated: find out first.
    InDoubt,
    GiveUp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateAnswer<P = Payload> {
    Done(P),
    NotDone(Failure),
    Maybe(Failure),
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoubtSource {
    Probe,
    LateAnswer,
    Person,
}

/// What an execution can wait for somebody to say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// A step failed for good under `manual_decision`.
    Failure(StepId),
    /// A compensation failed for good.
    Compensation(PartId),
    Limit(Limit),
}

impl Question {
    pub const FAILURE_ANSWERS: &[Answer] = &[
        Answer::Retry,
        Answer::Skip,
        Answer::Resolve,
        Answer::Stop,
        Answer::Continue,
        Answer::Compensate,
        Answer::Replan,
    ];
    pub const COMPENSATION_ANSWERS: &[Answer] = &[Answer::Retry, Answer::Resolve, Answer::Skip];
    pub const LIMIT_ANSWERS: &[Answer] =
        &[Answer::Continue, Answer::Stop, Answer::Compensate, Answer::Replan];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
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
pub enum Limit {
    Deadline,
    Calls,
    Cost,
    Time,
    Entries,
}

/// How deed and plan can differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deviation {
    Skipped,
    Duplicate,
    OutOfOrder,
    Undeclared,
    /// Started, never finished.
    Dangling,
    Unapproved,
    /// Another tool than the plan names.
    OtherTool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedAs {
    Completed,
    Partial,
    Failed,
    Cancelled,
    Compensated,
}

/// An execution that was cleaned up, and where its journal ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    pub execution: ExecutionId,
    pub entries: u64,
    pub head: Hash,
}

/// A plan by its hash; in memory with the plan itself.
#[derive(Clone)]
pub struct PlanRef {
    pub hash: Hash,
    pub plan: Option<Arc<Plan>>,
}

impl PlanRef {
    pub fn of(plan: &Arc<Plan>) -> PlanRef {
        PlanRef { hash: plan.hash, plan: Some(plan.clone()) }
    }
}

impl PartialEq for PlanRef {
    fn eq(&self, other: &PlanRef) -> bool {
        self.hash == other.hash
    }
}

impl fmt::Debug for PlanRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan {}", self.hash.short())
    }
}

impl Serialize for PlanRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.hash.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PlanRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PlanRef, D::Error> {
        Ok(PlanRef { hash: Hash::deserialize(deserializer)?, plan: None })
    }
}
