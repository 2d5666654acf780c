//! The events of an execution, as plain data in the past tense. Stored for ever.
//!
//! An event contains everything that [`crate::execution`] needs to reach the next state: replaying never
//! evaluates an expression or a policy again. `P` is the form of payloads: values in memory,
//! commitments in stored bytes.

mod attempt;
mod due;
mod ending;
mod question;
mod reference;

use super::payload::EventPayload;
use crate::actor::Actor;
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId, PlanId, StepId, ToolName};
use crate::plan::{Driver, Plan, PolicyAction};
use crate::time::{Millis, Timestamp};
use crate::tool::ToolFailure;
pub use attempt::{AttemptFollowUp, CallSide, DoubtSource, LateAnswer, NO_PROBE, SkipReason};
pub use due::{DueKind, OverdueTimer};
pub use ending::{Deviation, ExecutionEnding, ExecutionLimit, LateEffect};
pub use question::{Question, QuestionAnswer};
pub use reference::{ApprovalBasis, PlanReference};
use serde::{Deserialize, Serialize};
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
        /// Absent from entries that were written before there was a policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        basis: Option<Box<ApprovalBasis>>,
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

    /// The call is not made: the operator's policy forbids it, or it was denied and may not be asked for again.
    CallForbidden {
        part: PartId,
        side: CallSide,
        call: Hash,
        tool: ToolName,
        /// The rule that forbids it; none where a person's denial holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        reason: String,
        digest: Hash,
    },
    /// The call waits until this time: a limit of the operator's policy is reached, or its server is paused.
    CallDelayed {
        part: PartId,
        side: CallSide,
        /// The rule whose limit is reached; empty where the server is paused.
        rule: String,
        until: Timestamp,
        /// Why the server takes no calls; none where a limit is reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<ToolFailure>,
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
        /// With it the call continues from the answer, also after a crash.
        #[serde(skip_serializing_if = "Option::is_none")]
        continuation: Option<P>,
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
        /// What it means for the part, if the attempt was settled otherwise and took effect after all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effect: Option<LateEffect>,
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
    /// The probe found nothing, and the doubt is too young for that to count: it is asked again.
    ProbePostponed {
        part: PartId,
        until: Timestamp,
    },
    /// The tool may have forgotten the key of a call that may have taken effect: it must not be sent with it again.
    KeyExpired {
        part: PartId,
        side: CallSide,
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

    /// What was settled by hand about an attempt, or its result, was wrong.
    SettlementCorrected {
        part: PartId,
        side: CallSide,
        attempt: u32,
        happened: bool,
        reason: String,
        result: Option<P>,
        evidence: Option<P>,
        /// What it means for the part, if the attempt took effect after all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effect: Option<LateEffect>,
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
    /// Time stands still: nobody knows what the timers that came due still mean. A person ends the hold.
    Held {
        reason: String,
        /// From then on time does not count.
        since: Timestamp,
        /// What came due by now, in order.
        due: Vec<OverdueTimer>,
        /// How much more came due than is listed.
        #[serde(default, skip_serializing_if = "is_zero")]
        more: u32,
    },
    /// A person has looked. With `frozen`, every timer is postponed by this span; without, what came due happens now.
    HoldEnded {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frozen: Option<Millis>,
        /// The timers that are not postponed: what came due of them happens now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        expired: Vec<OverdueTimer>,
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

    /// An execution that had ended goes on. Finished effects, keys and undo duties stay; deadlines count from here.
    Reopened {
        /// Steps that are pending again.
        steps: Vec<StepId>,
        /// Failed steps that wait for the decision that follows.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        held: Vec<StepId>,
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
    /// A new plan of an agent would weaken what a person or the old plan demands; it waits for a person's approval.
    ReplanProposed {
        plan: PlanReference,
        revision: u32,
        /// What it weakens, one line each.
        weakens: Vec<String>,
        reason: String,
    },
    ReplanRejected {
        plan: Hash,
        reason: String,
    },

    HandedOver {
        to: Driver,
        reason: String,
    },
    /// A sign of life of the agent that drives, besides what it records.
    AgentSeen {},
    /// The agent that drives has given no sign of life since then.
    AgentSilent {
        since: Timestamp,
        /// Absent if no agent has driven yet, and in entries of earlier versions: then any agent ends the silence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<Actor>,
    },
    ToolDrifted {
        tool: ToolName,
        pinned: Hash,
        found: Hash,
    },
    /// The tool is again the one that the plan was checked with, or that was accepted.
    ToolRestored {
        tool: ToolName,
        definition: Hash,
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
    /// A principal tried what it has no right to. Nothing was changed.
    ActRefused {
        /// The verb or the operation.
        act: String,
        execution: Option<ExecutionId>,
        code: String,
        reason: String,
        /// How many refusals this entry stands for.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        count: u64,
    },
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

impl<P> Event<P> {
    /// Adds the plan itself to its hash, if the event names a plan.
    pub fn supply_plan(&mut self, find: &dyn Fn(Hash) -> Option<Arc<Plan>>) {
        if let Event::ExecutionOpened { plan, .. }
        | Event::Replanned { plan, .. }
        | Event::ReplanProposed { plan, .. } = self
        {
            plan.plan = find(plan.hash);
        }
    }

    /// The plan that the event names, and that its journal needs to be replayed.
    pub fn plan(&self) -> Option<&PlanReference> {
        match self {
            Event::ExecutionOpened { plan, .. }
            | Event::Replanned { plan, .. }
            | Event::ReplanProposed { plan, .. } => Some(plan),
            _ => None,
        }
    }
}

/// An execution that was cleaned up, and the end of its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedExecution {
    pub execution: ExecutionId,
    pub entries: u64,
    pub head: Hash,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
