//! Prepares the exact call of a part: evaluates its parameters, fixes its key and its hash.

use super::Execution;
use super::agenda::PartPosition;
use super::part::{PartState, StepPart};
use super::step::{SkipCause, StepStage};
use crate::hash::Hash;
use crate::id::{StepId, ToolName};
use crate::journal::event::{CallSide, SkipReason};
use crate::plan::expression::{EvaluationError, ExpressionScope, ItemOutcome};
use crate::plan::{PlannedCall, Probe};
use crate::tool::{FailureCategory, ToolFailure};
use serde_json::Value;
use std::sync::Arc;

/// A call ready to be approved or made.
pub(super) struct PreparedCall {
    pub tool: ToolName,
    pub definition: Hash,
    pub parameters: Arc<Value>,
    pub key: Hash,
    /// What an approval is bound to: step, item, tool, its definition, parameters.
    pub hash: Hash,
}

/// Why there is no call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum UnpreparedCall {
    /// Evaluating it needs the result of this step, which was skipped, failed or was cancelled.
    Lacks {
        step: StepId,
        failure: ToolFailure,
    },
    Failed(ToolFailure),
}

impl UnpreparedCall {
    pub fn into_failure(self) -> ToolFailure {
        match self {
            UnpreparedCall::Lacks { failure, .. } | UnpreparedCall::Failed(failure) => failure,
        }
    }
}

impl From<ToolFailure> for UnpreparedCall {
    fn from(failure: ToolFailure) -> UnpreparedCall {
        UnpreparedCall::Failed(failure)
    }
}

impl Execution {
    /// The call a part makes on a side, if the plan has one.
    pub(super) fn call_of(&self, at: PartPosition, side: CallSide) -> Option<&PlannedCall> {
        let step = &self.plan.steps[at.step()];
        match side {
            CallSide::Do => Some(&step.call),
            CallSide::Fallback => step.fallback.as_ref().map(|fallback| &fallback.call),
            CallSide::Undo => self.compensation_of(at).map(|compensation| &compensation.call),
            CallSide::Probe => self.probe_of(at).map(|probe| &probe.call),
        }
    }

    pub(super) fn compensation_of(&self, at: PartPosition) -> Option<&crate::plan::Compensation> {
        let step = &self.plan.steps[at.step()];
        match self.part_at(at)?.effect?.side {
            CallSide::Fallback => step.fallback.as_ref()?.compensation.as_ref(),
            CallSide::Do | CallSide::Undo | CallSide::Probe => step.compensation.as_ref(),
        }
    }

    /// The probe for the side in doubt.
    pub(super) fn probe_of(&self, at: PartPosition) -> Option<&Probe> {
        let step = &self.plan.steps[at.step()];
        match &self.part_at(at)?.state {
            PartState::InDoubt { side: CallSide::Do, .. } => step.probe.as_ref(),
            PartState::InDoubt { side: CallSide::Undo, .. } => self.compensation_of(at)?.probe.as_ref(),
            _ => None,
        }
    }

    pub(super) fn prepare(&self, at: PartPosition, side: CallSide) -> Result<PreparedCall, UnpreparedCall> {
        let step = &self.plan.steps[at.step()];
        let part = self.part_at(at).ok_or_else(|| invalid("the part does not exist"))?;
        let call = self.call_of(at, side).ok_or_else(|| invalid("the plan names no call for this"))?;
        let item = self.item_of(at);
        let mut scope = PartScope { execution: self, part, item, key: Some(String::new()), result: None };
        if side == CallSide::Probe {
            scope.key = part.key.map(|key| key.to_string());
        }
        let render = |scope: &PartScope<'_>| {
            call.parameters
                .render(scope)
                .map_err(|error| self.unprepared(&format!("parameters{}", error.pointer), error.error))
        };
        let (parameters, text, key) = match self.repeated(part, side) {
            Some((parameters, key)) => {
                let text = bytes(&parameters);
                (parameters, text, key)
            }
            None => {
                // The key depends on the parameters, so they are evaluated without it first.
                let parameters = render(&scope)?;
                let text = bytes(&parameters);
                let key = match side {
                    CallSide::Probe => part.key.unwrap_or(Hash::ZERO),
                    CallSide::Do | CallSide::Fallback | CallSide::Undo => self.key(at, side, part, &text),
                };
                if side != CallSide::Probe && call.parameters.uses_key() {
                    scope.key = Some(key.to_string());
                    let parameters = render(&scope)?;
                    let text = bytes(&parameters);
                    (parameters, text, key)
                } else {
                    (parameters, text, key)
                }
            }
        };
        let definition = self.definition(&call.tool);
        let item = at.item.to_be_bytes();
        let hash = Hash::of_fields(
            "rutter/call/v1",
            &[step.id.as_str().as_bytes(), &item, call.tool.as_str().as_bytes(), &definition.0, &text],
        );
        Ok(PreparedCall { tool: call.tool.clone(), definition, parameters, key, hash })
    }

    /// The earlier call, if this is a retry: a call that may have taken effect must be repeated exactly.
    fn repeated(&self, part: &StepPart, side: CallSide) -> Option<(Arc<Value>, Hash)> {
        let (sent, parameters) = part.sent.as_ref().filter(|(sent, _)| *sent == side)?;
        let again = match sent {
            CallSide::Undo => true,
            CallSide::Do | CallSide::Fallback => part.effect.is_some() || part.side() == Some(side),
            CallSide::Probe => false,
        };
        let key = part.key.filter(|_| again)?;
        Some((parameters.value()?.clone(), key))
    }

    /// The idempotency key: stable over retries, restarts and replans, and new only after a compensation.
    fn key(&self, at: PartPosition, side: CallSide, part: &StepPart, parameters: &[u8]) -> Hash {
        Hash::of_fields(
            "rutter/key/v1",
            &[
                self.identity.tenant.as_str().as_bytes(),
                self.lineage.as_bytes(),
                self.plan.steps[at.step()].id.as_str().as_bytes(),
                &at.item.to_be_bytes(),
                &[side as u8],
                &u64::from(part.generation).to_be_bytes(),
                parameters,
            ],
        )
    }

    /// The result of a step, if it has one.
    pub fn result_of(&self, step: &str) -> Option<&Value> {
        self.steps[self.plan.find(step)?].result()
    }

    /// Whether this definition of a tool is a change that was neither reported nor accepted, or the end of one.
    pub fn is_news(&self, tool: &ToolName, found: Hash) -> bool {
        found != self.drifted.get(tool).copied().unwrap_or_else(|| self.definition(tool))
    }

    pub(super) fn definition(&self, tool: &ToolName) -> Hash {
        let pinned = || self.plan.tools.get(tool).map(|tool| tool.definition);
        self.accepted.get(tool).copied().or_else(pinned).unwrap_or(Hash::ZERO)
    }

    /// Evaluates `else_of` and `when`: whether the step is to run at all, or why it is skipped.
    pub(super) fn skipped_because(&self, step: usize) -> Result<Option<SkipReason>, UnpreparedCall> {
        let planned = &self.plan.steps[step];
        if let Some(other) = planned.else_of
            && self.steps[other].skip_cause != Some(SkipCause::Condition)
        {
            return Ok(Some(SkipReason::ElseOf(self.plan.steps[other].id.clone())));
        }
        let Some(when) = &planned.when else { return Ok(None) };
        match when.evaluate_bool(&StepScope { execution: self }) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(SkipReason::Condition)),
            Err(error) => Err(self.unprepared("when", error)),
        }
    }

    /// The step whose missing result the call of this step cannot do without.
    pub(super) fn lacked_by_call(&self, step: usize) -> Option<StepId> {
        if !self.may_lack(step) {
            return None;
        }
        let part = self.part_at(PartPosition::new(step, 0))?;
        let scope = PartScope { execution: self, part, item: None, key: Some(String::new()), result: None };
        let rendered = self.plan.steps[step].call.parameters.can_render(&scope);
        match rendered.map_err(|error| self.unprepared("", error.error)) {
            Err(UnpreparedCall::Lacks { step, .. }) => Some(step),
            Err(UnpreparedCall::Failed(_)) | Ok(()) => None,
        }
    }

    /// The same for a fan-out: no item can do without. A single item that cannot fails by itself.
    pub(super) fn lacked_by_items(&self, step: usize, items: &Value) -> Option<StepId> {
        let items = items.as_array().filter(|_| self.may_lack(step))?;
        let part = StepPart::new();
        let mut lacked = None;
        for (index, item) in (0..).zip(items) {
            let (item, key) = (Some((item, index)), Some(String::new()));
            let scope = PartScope { execution: self, part: &part, item, key, result: None };
            let rendered = self.plan.steps[step].call.parameters.can_render(&scope);
            match rendered.map_err(|error| self.unprepared("", error.error)) {
                Err(UnpreparedCall::Lacks { step, .. }) => lacked = lacked.or(Some(step)),
                Err(UnpreparedCall::Failed(_)) | Ok(()) => return None,
            }
        }
        lacked
    }

    /// Whether a step that this one comes after has settled without a result.
    fn may_lack(&self, step: usize) -> bool {
        let stages = self.plan.graph.needs[step].iter().map(|need| self.steps[need.step].stage);
        stages.into_iter().any(|stage| stage.is_settled() && stage != StepStage::Completed)
    }

    /// Why an expression has no value: a step has no result, or anything else.
    fn unprepared(&self, place: &str, error: EvaluationError) -> UnpreparedCall {
        let EvaluationError::Missing { step: Some(lacked), .. } = &error else {
            return invalid(format!("{place}: {error}")).into();
        };
        let state = self.plan.find(lacked).map(|step| &self.steps[step]);
        match state.filter(|state| state.stage.is_settled() && state.stage != StepStage::Completed) {
            Some(state) => UnpreparedCall::Lacks {
                step: StepId::new(lacked),
                failure: invalid(format!("{place}: {error}, because {lacked} is {}", state.status())),
            },
            None => invalid(format!("{place}: {error}")).into(),
        }
    }

    /// The number of items of a fan-out that has settled.
    fn item_count(&self, step: &str) -> Option<usize> {
        let step = self.plan.find(step)?;
        let state = &self.steps[step];
        (state.stage.is_settled() && state.items.is_some()).then_some(state.parts.len())
    }

    fn item_outcome(&self, step: &str, item: usize) -> Option<ItemOutcome<'_>> {
        let part = self.steps[self.plan.find(step)?].parts.get(item)?;
        let failure = match &part.state {
            PartState::Failed { failure } | PartState::CompensationFailed { failure, .. } => Some(failure),
            _ => None,
        };
        let result = part.result.as_ref().filter(|_| matches!(part.state, PartState::Completed { .. }));
        Some(ItemOutcome { status: part.status(), result: result.and_then(|it| it.value()).map(|it| &**it), failure })
    }

    fn item_of(&self, at: PartPosition) -> Option<(&Value, u32)> {
        self.plan.steps[at.step()].for_each.as_ref()?;
        let items = self.steps[at.step()].items.as_ref()?.value()?;
        Some((items.get(at.item())?, at.item))
    }

    /// Evaluates `for_each`: the items of a step's list.
    pub(super) fn items(&self, step: usize) -> Result<Arc<Value>, UnpreparedCall> {
        let Some(fan_out) = &self.plan.steps[step].for_each else {
            return Err(invalid("the step has no for_each").into());
        };
        let items = fan_out
            .items
            .evaluate(&StepScope { execution: self })
            .map_err(|error| self.unprepared("for_each", error))?;
        let Value::Array(list) = &items else {
            return Err(invalid("for_each: expected a list").into());
        };
        if list.len() > fan_out.max_items as usize {
            return Err(invalid(format!(
                "for_each: {} items, at most {} are allowed (max_items)",
                list.len(),
                fan_out.max_items
            ))
            .into());
        }
        Ok(Arc::new(items))
    }

    /// Evaluates a probe's answer: it happened with this result, it did not, or the answer is inconclusive.
    pub(super) fn evaluate_probe(&self, at: PartPosition, answer: &Value) -> Result<Option<Value>, String> {
        let (Some(probe), Some(part)) = (self.probe_of(at), self.part_at(at)) else {
            return Err("the plan no longer has the probe".to_owned());
        };
        let (item, key) = (self.item_of(at), part.key.map(|key| key.to_string()));
        let scope = PartScope { execution: self, part, item, key, result: Some(answer) };
        let text = |error: EvaluationError| error.to_string();
        if !probe.happened.evaluate_bool(&scope).map_err(text)? {
            return Ok(None);
        }
        match &probe.result {
            Some(result) => result.evaluate(&scope).map(Some).map_err(text),
            None => Ok(Some(answer.clone())),
        }
    }
}

fn invalid(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(FailureCategory::InvalidInput, message)
}

fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON value can always be written")
}

/// The values that expressions of a whole step can read.
struct StepScope<'a> {
    execution: &'a Execution,
}

impl ExpressionScope for StepScope<'_> {
    fn inputs(&self) -> Option<&Value> {
        self.execution.inputs.value().map(|value| &**value)
    }

    fn step_result(&self, step: &str) -> Option<&Value> {
        self.execution.steps[self.execution.plan.find(step)?].result()
    }

    fn step_status(&self, step: &str) -> Option<&'static str> {
        Some(self.execution.steps[self.execution.plan.find(step)?].status())
    }

    fn step_items(&self, step: &str) -> Option<usize> {
        self.execution.item_count(step)
    }

    fn step_item(&self, step: &str, item: usize) -> Option<ItemOutcome<'_>> {
        self.execution.item_outcome(step, item)
    }
}

/// The values that the calls of one part can read.
struct PartScope<'a> {
    execution: &'a Execution,
    part: &'a StepPart,
    /// In a fan-out: the item and its position.
    item: Option<(&'a Value, u32)>,
    key: Option<String>,
    /// The answer of its probe, instead of the part's own result.
    result: Option<&'a Value>,
}

impl ExpressionScope for PartScope<'_> {
    fn inputs(&self) -> Option<&Value> {
        self.execution.inputs.value().map(|value| &**value)
    }

    fn step_result(&self, step: &str) -> Option<&Value> {
        self.execution.steps[self.execution.plan.find(step)?].result()
    }

    fn step_status(&self, step: &str) -> Option<&'static str> {
        Some(self.execution.steps[self.execution.plan.find(step)?].status())
    }

    fn step_items(&self, step: &str) -> Option<usize> {
        self.execution.item_count(step)
    }

    fn step_item(&self, step: &str, item: usize) -> Option<ItemOutcome<'_>> {
        self.execution.item_outcome(step, item)
    }

    fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn result(&self) -> Option<&Value> {
        self.result.or_else(|| self.part.result.as_ref()?.value().map(|value| &**value))
    }

    fn parameters(&self) -> Option<&Value> {
        self.part.parameters.as_ref()?.value().map(|value| &**value)
    }

    fn item(&self) -> Option<(&Value, u32)> {
        self.item
    }
}
