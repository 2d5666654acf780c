//! A plan that has been checked: every name resolves, every expression compiles, the steps form a DAG.
//!
//! From text to plan: [`document`] parses JSON or YAML strictly, [`draft`] gives the fields their types,
//! [`check`] reports all mistakes at once and builds the [`Plan`]. [`crate::preview`] predicts its execution,
//! [`diff`] compares two revisions, [`crate::optimize`] suggests a better one.

pub mod check;
pub mod codes;
pub mod diff;
pub mod document;
pub mod draft;
pub mod expression;
pub mod findings;
pub mod graph;
pub mod inputs;
pub mod name;
pub mod patch;
pub mod schema;
pub mod stored;
pub mod template;

use crate::hash::Hash;
use crate::id::{StepId, ToolName};
use crate::limits;
use crate::time::Millis;
use crate::tool::attempts::BackoffStrategy;
use crate::tool::{FailureCategory, Safety, Tool};
use document::DocumentFormat;
use expression::Expression;
use graph::StepGraph;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use template::ParameterTemplate;

/// A checked plan. Shared by reference, never changed; a change is a new revision.
#[derive(Debug)]
pub struct Plan {
    /// Hash of the author's exact bytes and of the pinned tools.
    pub hash: Hash,
    pub source: Arc<[u8]>,
    pub format: DocumentFormat,
    pub name: String,
    pub goal: String,
    pub about: PlanDescription,
    /// JSON Schema the execution's inputs must satisfy.
    pub inputs: Option<Arc<Value>>,
    pub max_parallel: u32,
    pub deadline: Millis,
    /// How long an agent that drives may be silent, and what follows.
    pub agent_timeout: Millis,
    pub on_agent_silence: SilenceAction,
    pub budget: ExecutionBudget,
    /// The policy when a limit is reached or the execution is cancelled; also the default of the steps.
    pub on_failure: PolicyAction,
    pub steps: Vec<Arc<Step>>,
    pub graph: StepGraph,
    /// The definitions the plan was checked against; a call is made only while the tool still has its definition.
    pub tools: BTreeMap<ToolName, Arc<Tool>>,
    pub(crate) index: HashMap<StepId, usize>,
}

/// What follows when the agent that drives is silent for too long. A person is asked where Rutter cannot take over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SilenceAction {
    #[default]
    Ask,
    /// Rutter goes on with it. What the agent left open goes by its safety.
    HandOver,
}

impl SilenceAction {
    pub fn as_str(self) -> &'static str {
        match self {
            SilenceAction::Ask => "ask",
            SilenceAction::HandOver => "hand_over",
        }
    }
}

/// The author's texts about the plan. They have no effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanDescription {
    pub description: String,
    pub request: String,
    pub reasoning: String,
    pub tags: Vec<String>,
    pub metadata: serde_json::Map<String, Value>,
}

/// The most an execution may spend; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionBudget {
    pub calls: Option<u64>,
    pub cost_micros: Option<u64>,
    pub time: Option<Millis>,
}

impl Plan {
    /// Tools the plan calls that are not registered; only an agent can execute such a plan.
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
    pub call: PlannedCall,
    /// False means: skip this step.
    pub when: Option<Expression>,
    /// Runs only if this step was skipped because its `when` was false. A position in the plan.
    pub else_of: Option<usize>,
    pub for_each: Option<FanOutRule>,
    /// Another call, for when the first has failed for good and certainly had no effect.
    pub fallback: Option<FallbackCall>,
    pub cancellable: Cancellable,
    pub compensation: Option<Compensation>,
    pub probe: Option<Probe>,
    pub approval: Option<ApprovalRule>,
    pub policy: FailurePolicy,
    /// From the first attempt to the last, including backoff.
    pub timeout_total: Option<Millis>,
    pub priority: i32,
    /// JSON Schema the result must satisfy, in addition to the tool's own.
    pub output: Option<Arc<Value>>,
}

impl Step {
    /// Every call the step may lead to: its own, the fallback's, their compensations and probes.
    pub fn calls(&self) -> impl Iterator<Item = &PlannedCall> {
        let fallback = self.fallback.iter();
        let undo =
            self.compensation.iter().chain(self.fallback.iter().filter_map(|fallback| fallback.compensation.as_ref()));
        std::iter::once(&self.call)
            .chain(fallback.map(|fallback| &fallback.call))
            .chain(self.probe.iter().map(|probe| &probe.call))
            .chain(undo.flat_map(|undo| std::iter::once(&undo.call).chain(undo.probe.iter().map(|probe| &probe.call))))
    }
}

/// One tool call with everything that governs its attempts.
#[derive(Debug)]
pub struct PlannedCall {
    pub tool: ToolName,
    pub parameters: ParameterTemplate,
    /// The stricter of the tool's safety and the plan's.
    pub safety: Safety,
    /// The tool honours the idempotency key that the parameters pass it.
    pub keyed: bool,
    /// How long the tool remembers the key, from its first use on.
    pub key_window: Millis,
    /// For one attempt.
    pub timeout: Millis,
    /// Whether the plan says the timeout, and it is not the default.
    pub has_own_timeout: bool,
    pub retry: RetryPolicy,
}

impl PlannedCall {
    /// Whether the same call can be sent again without harm.
    pub fn is_repeatable(&self) -> bool {
        self.safety != Safety::Once || self.keyed
    }
}

/// When and how often a failed attempt is retried.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    pub max_attempts: u32,
    pub backoff: BackoffStrategy,
    pub initial: Millis,
    pub factor: f64,
    pub max: Millis,
    pub jitter: bool,
    pub on: Vec<FailureCategory>,
}

impl RetryPolicy {
    /// The default: three attempts, one second doubling up to a minute, with jitter.
    pub fn standard() -> RetryPolicy {
        RetryPolicy {
            max_attempts: limits::ATTEMPTS_DEFAULT,
            backoff: BackoffStrategy::Exponential,
            initial: limits::BACKOFF_INITIAL_DEFAULT,
            factor: 2.0,
            max: limits::BACKOFF_CAP_DEFAULT,
            jitter: true,
            on: vec![FailureCategory::RateLimited, FailureCategory::Unavailable, FailureCategory::Timeout],
        }
    }
}

/// One call per item of a list.
#[derive(Debug)]
pub struct FanOutRule {
    pub items: Expression,
    pub max_parallel: u32,
    /// A longer list fails the step before any call.
    pub max_items: u32,
    /// How many items may fail without failing the step.
    pub tolerate: FailureTolerance,
}

/// How many items of a fan-out may fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailureTolerance {
    Items(u32),
    /// Of the items, rounded down.
    Percent(f64),
}

impl FailureTolerance {
    pub const NONE: FailureTolerance = FailureTolerance::Items(0);

    /// The number of `items` that may fail.
    pub fn allowed(self, items: usize) -> usize {
        match self {
            FailureTolerance::Items(allowed) => allowed as usize,
            FailureTolerance::Percent(percent) => (items as f64 * percent / 100.0) as usize,
        }
    }
}

impl std::fmt::Display for FailureTolerance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FailureTolerance::Items(items) => write!(f, "{items}"),
            FailureTolerance::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[derive(Debug)]
pub struct FallbackCall {
    pub call: PlannedCall,
    /// Undoes the fallback's effect; the step's own compensation undoes the first call's.
    pub compensation: Option<Compensation>,
}

#[derive(Debug)]
pub struct Compensation {
    pub call: PlannedCall,
    pub probe: Option<Probe>,
}

/// A read-only call that tests for the effect.
#[derive(Debug)]
pub struct Probe {
    pub call: PlannedCall,
    /// True: it happened. False: it did not. Anything else: still unknown.
    pub happened: Expression,
    /// The step's result if it happened; by default the probe's whole result.
    pub result: Option<Expression>,
    /// How old a doubt must be before "it did not happen" counts; by default the timeout of the attempt in doubt.
    pub settle: Option<Millis>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalRule {
    pub expires: Millis,
}

/// How far a step can be undone.
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
    /// Steps to cancel besides the dependents.
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

impl Driver {
    pub fn as_str(self) -> &'static str {
        match self {
            Driver::Server => "server",
            Driver::Agent => "agent",
        }
    }
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
