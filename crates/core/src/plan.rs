//! A plan that has been checked: every name resolves, every expression compiles, the steps form a DAG.
//!
//! From text to plan: [`document`] reads JSON or YAML strictly, [`draft`] gives the fields their types,
//! [`check`] finds every mistake at once and builds the [`Plan`]. [`preview`] says what would happen,
//! [`diff`] what changed between two revisions.

pub mod check;
pub mod codes;
pub mod diagnostic;
pub mod diff;
pub mod document;
pub mod draft;
pub mod expression;
pub mod findings;
pub mod graph;
pub mod patch;
pub mod pointer;
pub mod preview;
pub mod schema;
pub mod stored;
pub mod template;
pub mod wording;

use crate::hash::Hash;
use crate::id::{StepId, ToolName};
use crate::limits;
use crate::time::Millis;
use crate::tool::{Category, Safety, Tool};
use document::Format;
use expression::Expression;
use graph::Graph;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use template::Template;

/// A checked plan. Shared by reference, never changed; a change is a new revision.
#[derive(Debug)]
pub struct Plan {
    /// Over the exact bytes the author sent and the tools it pins: what was agreed to, and nothing else.
    pub hash: Hash,
    pub source: Arc<[u8]>,
    pub format: Format,
    pub name: String,
    pub goal: String,
    pub about: About,
    /// JSON Schema the execution's inputs must satisfy.
    pub inputs: Option<Arc<Value>>,
    pub max_parallel: u32,
    pub deadline: Millis,
    pub budget: Budget,
    /// What a limit reached or a cancel falls back on; also the default of the steps.
    pub on_failure: PolicyAction,
    pub steps: Vec<Arc<Step>>,
    pub graph: Graph,
    /// The definitions the plan was checked against; a call is made only while they still hold.
    pub tools: BTreeMap<ToolName, Arc<Tool>>,
    pub(crate) index: HashMap<StepId, usize>,
}

/// What the author wrote about the plan; nothing is decided by it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    pub description: String,
    pub request: String,
    pub reasoning: String,
    pub tags: Vec<String>,
    pub metadata: serde_json::Map<String, Value>,
}

/// What an execution may spend at the most; `None` is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    pub calls: Option<u64>,
    pub cost_micros: Option<u64>,
    pub time: Option<Millis>,
}

impl Plan {
    /// Tools the plan calls that nobody registered; only an agent can carry out such a plan.
    pub fn tools_missing(&self) -> impl Iterator<Item = &ToolName> {
        let calls = self.steps.iter().flat_map(|step| step.calls());
        calls.map(|call| &call.tool).filter(|tool| !self.tools.contains_key(*tool))
    }

    pub fn find(&self, id: &str) -> Option<usize> {
        self.index.get(id).copied()
    }
}

/// A node of the plan.
#[derive(Debug)]
pub struct Step {
    pub id: StepId,
    pub name: String,
    pub description: String,
    pub call: Call,
    /// False means: skip this step.
    pub when: Option<Expression>,
    pub for_each: Option<FanOut>,
    /// Another call, tried when the first has failed for good and certainly had no effect.
    pub fallback: Option<Fallback>,
    pub cancellable: Cancellable,
    pub compensation: Option<Compensation>,
    pub probe: Option<Probe>,
    pub approval: Option<ApprovalRule>,
    pub policy: FailurePolicy,
    /// From the first attempt to the last, back-off included.
    pub timeout_total: Option<Millis>,
    pub priority: i32,
    /// JSON Schema the result must satisfy, beside the tool's own.
    pub output: Option<Arc<Value>>,
}

impl Step {
    /// Every call the step may lead to: its own, the fallback's, their compensations and probes.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        let fallback = self.fallback.iter();
        let undo = self
            .compensation
            .iter()
            .chain(self.fallback.iter().filter_map(|fallback| fallback.compensation.as_ref()));
        std::iter::once(&self.call)
            .chain(fallback.map(|fallback| &fallback.call))
            .chain(self.probe.iter().map(|probe| &probe.call))
            .chain(undo.flat_map(|undo| {
                std::iter::once(&undo.call).chain(undo.probe.iter().map(|probe| &probe.call))
            }))
    }
}

/// One tool call with everything that governs its attempts.
#[derive(Debug)]
pub struct Call {
    pub tool: ToolName,
    pub parameters: Template,
    /// The stricter of what the tool is and what the plan says.
    pub safety: Safety,
    /// The tool honours the idempotency key that the parameters pass it.
    pub keyed: bool,
    /// For one attempt.
    pub timeout: Millis,
    pub retry: Retry,
}

impl Call {
    /// Whether sending the same call again can do no harm.
    pub fn is_repeatable(&self) -> bool {
        self.safety != Safety::Once || self.keyed
    }
}

/// When and how often a failed attempt is tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    pub max_attempts: u32,
    pub backoff: Backoff,
    pub initial: Millis,
    pub factor: f64,
    pub max: Millis,
    pub jitter: bool,
    pub on: Vec<Category>,
}

impl Retry {
    /// The house default: three attempts, one second doubling up to a minute, with jitter.
    pub fn standard() -> Retry {
        Retry {
            max_attempts: limits::ATTEMPTS_DEFAULT,
            backoff: Backoff::Exponential,
            initial: limits::BACKOFF_INITIAL_DEFAULT,
            factor: 2.0,
            max: limits::BACKOFF_CAP_DEFAULT,
            jitter: true,
            on: vec![Category::RateLimited, Category::Unavailable, Category::Timeout],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    Fixed,
    Linear,
    Exponential,
}

/// One call per item of a list.
#[derive(Debug)]
pub struct FanOut {
    pub items: Expression,
    pub max_parallel: u32,
    /// More items than this is a failure of the step, before any call.
    pub max_items: u32,
}

#[derive(Debug)]
pub struct Fallback {
    pub call: Call,
    /// Offsets the fallback's effect; the step's own compensation offsets the first call's.
    pub compensation: Option<Compensation>,
}

#[derive(Debug)]
pub struct Compensation {
    pub call: Call,
    pub probe: Option<Probe>,
}

/// The read that finds out whether an effect happened.
#[derive(Debug)]
pub struct Probe {
    pub call: Call,
    /// True: it happened. False: it did not. Anything else: still unknown.
    pub happened: Expression,
    /// What the step's result is when it did; the probe's whole result when not given.
    pub result: Option<Expression>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalRule {
    pub expires: Millis,
}

/// What undoing a step can achieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cancellable {
    Reversible,
    PartiallyReversible,
    Irreversible,
}

/// What happens when a step has failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailurePolicy {
    pub action: PolicyAction,
    /// Steps to cancel beside the dependents.
    pub propagate_to: Vec<usize>,
    pub reason: String,
}

/// Who calls the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    Server,
    Agent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyAction {
    ManualDecision,
    CancelAll,
    CancelDependent,
    ContinueOthers,
    Compensate,
}
