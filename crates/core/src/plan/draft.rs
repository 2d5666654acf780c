//! A plan draft: typed fields of the author's document, not yet checked against each other or the tools.

mod form;
mod ids;
mod native;
mod numbered;
mod reader;
mod shape;

use super::document::{DocumentFormat, PlanDocument};
use super::findings::FindingCollector;
use super::inputs::InputDeclaration;
use super::{Cancellable, FailureTolerance, PolicyAction, SilenceAction};
use crate::diagnostic::Diagnostic;
use crate::time::{Millis, Timestamp};
use crate::tool::attempts::{BackoffStrategy, RetrySettings};
use crate::tool::{FailureCategory, Safety};
pub use form::schema;
use reader::FieldReader;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A plan draft, read from any of the accepted shapes.
#[derive(Clone, Debug)]
pub struct PlanDraft {
    /// The exact bytes; the plan's hash is over these and the tools it pins.
    pub source: Arc<[u8]>,
    pub format: DocumentFormat,
    /// The document as a JSON value; pointers and fixes refer to it.
    pub document: Arc<Value>,
    pub shape: DraftShape,
    pub name: String,
    pub goal: String,
    pub description: String,
    pub request: String,
    pub reasoning: String,
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
    pub inputs: Option<InputDeclaration>,
    pub max_parallel: Option<u32>,
    pub deadline: Option<Millis>,
    pub agent_timeout: Option<Millis>,
    pub on_agent_silence: Option<SilenceAction>,
    pub budget: BudgetDraft,
    pub on_failure: Option<PolicyAction>,
    pub defaults: DefaultsDraft,
    pub steps: Vec<StepDraft>,
}

impl PlanDraft {
    /// Reads the fields of a document, and reports all mistakes at once.
    ///
    /// There is a draft whenever the document is an object; a wrong field is then missing from it.
    /// Timestamps are compared with `now`, if given.
    pub fn read(document: &PlanDocument, now: Option<Timestamp>) -> (Option<PlanDraft>, Vec<Diagnostic>) {
        let mut findings = FindingCollector::default();
        let draft = PlanDraft::read_object(document, now, &mut findings);
        (draft, findings.into_list())
    }

    fn read_object(
        document: &PlanDocument,
        now: Option<Timestamp>,
        findings: &mut FindingCollector,
    ) -> Option<PlanDraft> {
        let mut reader = FieldReader::new(&document.value, String::new(), "a plan", findings)?;
        if shape::is_wrapped(reader.fields()) {
            let draft = reader.child("plan").map(|plan| native::read(plan, document, now));
            reader.finish();
            return draft;
        }
        Some(native::read(reader, document, now))
    }
}

/// The accepted shapes of a plan document; [`DraftShape::of`] recognises them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftShape {
    /// The documented form.
    Native,
    /// A list of steps without ordering fields: every step runs after the one before.
    Flat,
    /// `step_number`, `tool_name`, numeric `depends_on`.
    Numbered,
}

#[derive(Clone, Debug, Default)]
pub struct BudgetDraft {
    pub calls: Option<u64>,
    pub cost: Option<f64>,
    pub time: Option<Millis>,
}

#[derive(Clone, Debug, Default)]
pub struct DefaultsDraft {
    pub retry: Option<RetryDraft>,
    pub timeout: Option<Millis>,
}

#[derive(Clone, Debug)]
pub struct StepDraft {
    /// The pointer of this step in the document: `/steps/3`.
    pub pointer: String,
    /// In the numbered shape, `step_3`.
    pub id: String,
    /// The document's key that holds the id, for pointers: `id` or `step_number`.
    pub id_key: &'static str,
    /// `tool` or `tool_name`.
    pub tool_key: &'static str,
    pub number: Option<u64>,
    pub name: String,
    pub description: String,
    pub call: CallDraft,
    /// Step ids, each with its pointer; numbers of the numbered shape are already ids here.
    pub depends_on: Vec<(String, String)>,
    pub when: Option<String>,
    /// The step whose other branch this is, with its pointer.
    pub else_of: Option<(String, String)>,
    pub for_each: Option<FanOutDraft>,
    pub fallback: Option<FallbackDraft>,
    pub cancellable: Option<Cancellable>,
    pub compensation: Option<CompensationDraft>,
    pub probe: Option<ProbeDraft>,
    pub approval: Option<ApprovalDraft>,
    pub failure_policy: Option<PolicyDraft>,
    pub timeout_total: Option<Millis>,
    pub priority: Option<i32>,
    pub output: Option<Value>,
}

/// The fields that a step, a compensation, a probe and a fallback have in common.
#[derive(Clone, Debug)]
pub struct CallDraft {
    /// The pointer of the object with `tool` and `parameters`.
    pub pointer: String,
    pub tool: String,
    /// Always an object; shared with the template compiled from it.
    pub parameters: Arc<Value>,
    pub safety: Option<Safety>,
    pub timeout: Option<Millis>,
    pub retry: Option<RetryDraft>,
}

impl CallDraft {
    pub fn fields(&self) -> &Map<String, Value> {
        self.parameters.as_object().expect("parameters are read as an object")
    }
}

#[derive(Clone, Debug, Default)]
pub struct RetryDraft {
    pub pointer: String,
    pub max_attempts: Option<u32>,
    pub backoff: Option<BackoffStrategy>,
    pub initial: Option<Millis>,
    pub factor: Option<f64>,
    pub max: Option<Millis>,
    pub jitter: Option<bool>,
    pub on: Option<Vec<FailureCategory>>,
}

impl From<RetrySettings> for RetryDraft {
    fn from(settings: RetrySettings) -> RetryDraft {
        let RetrySettings { max_attempts, backoff, initial, factor, max, jitter, on } = settings;
        RetryDraft { pointer: String::new(), max_attempts, backoff, initial, factor, max, jitter, on }
    }
}

#[derive(Clone, Debug)]
pub struct FanOutDraft {
    pub pointer: String,
    /// The pointer of the expression itself: the same pointer, or its `items`.
    pub items_pointer: String,
    pub items: String,
    pub max_parallel: Option<u32>,
    pub max_items: Option<u32>,
    pub tolerate: Option<FailureTolerance>,
}

#[derive(Clone, Debug)]
pub struct FallbackDraft {
    pub call: CallDraft,
    pub compensation: Option<CompensationDraft>,
}

#[derive(Clone, Debug)]
pub struct CompensationDraft {
    pub call: CallDraft,
    pub probe: Option<ProbeDraft>,
}

#[derive(Clone, Debug)]
pub struct ProbeDraft {
    pub call: CallDraft,
    pub happened: String,
    pub result: Option<String>,
    pub settle: Option<Millis>,
}

#[derive(Clone, Debug)]
pub struct ApprovalDraft {
    pub pointer: String,
    pub required: bool,
    pub expires: Option<Millis>,
}

#[derive(Clone, Debug)]
pub struct PolicyDraft {
    pub pointer: String,
    pub action: Option<PolicyAction>,
    pub propagate_to: Vec<(String, String)>,
    pub reason: String,
}

#[cfg(test)]
mod tests;
