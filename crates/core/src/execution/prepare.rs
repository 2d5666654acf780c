//! Prepares the exact call of a part: evaluates its parameters, fixes its key and its hash.

use super::Execution;
use super::agenda::PartPosition;
use super::part::{PartState, StepPart};
use crate::hash::Hash;
use crate::id::ToolName;
use crate::journal::event::CallSide;
use crate::limits;
use crate::plan::expression::{EvaluationError, ExpressionScope};
use crate::plan::{PlannedCall, Probe, Step};
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

    pub(super) fn prepare(&self, at: PartPosition, side: CallSide) -> Result<PreparedCall, ToolFailure> {
        let step = &self.plan.steps[at.step()];
        let part = self.part_at(at).ok_or_else(|| invalid("the part does not exist"))?;
        let call = self.call_of(at, side).ok_or_else(|| invalid("the plan names no call for this"))?;
        let mut scope = PartScope { execution: self, step, at, part, key: Some(String::new()), result: None };
        if side == CallSide::Probe {
            scope.key = part.key.map(|key| key.to_string());
        }
        let render = |scope: &PartScope<'_>| {
            call.parameters
                .render(scope)
                .map_err(|error| invalid(format!("parameters{}: {}", error.pointer, error.error)))
        };
        let (parameters, key) = match self.repeated(part, side) {
            Some((parameters, key)) => (parameters, key),
            None => {
                // The key depends on the parameters, so they are evaluated without it first.
                let parameters = render(&scope)?;
                let key = match side {
                    CallSide::Probe => part.key.unwrap_or(Hash::ZERO),
                    CallSide::Do | CallSide::Fallback | CallSide::Undo => self.key(at, side, part, &bytes(&parameters)),
                };
                if side != CallSide::Probe && call.parameters.uses_key() {
                    scope.key = Some(key.to_string());
                    (render(&scope)?, key)
                } else {
                    (parameters, key)
                }
            }
        };
        let text = bytes(&parameters);
        if text.len() > limits::VALUE_BYTES_MAX {
            return Err(invalid(format!("parameters are larger than {} bytes", limits::VALUE_BYTES_MAX)));
        }
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

    /// Whether this definition of a tool is a change that was neither reported nor accepted.
    pub fn is_news(&self, tool: &ToolName, found: Hash) -> bool {
        found != self.definition(tool) && self.drifted.get(tool) != Some(&found)
    }

    pub(super) fn definition(&self, tool: &ToolName) -> Hash {
        let pinned = || self.plan.tools.get(tool).map(|tool| tool.definition);
        self.accepted.get(tool).copied().or_else(pinned).unwrap_or(Hash::ZERO)
    }

    /// Evaluates `when`: whether the step is to run at all.
    pub(super) fn is_wanted(&self, step: usize) -> Result<bool, ToolFailure> {
        match &self.plan.steps[step].when {
            None => Ok(true),
            Some(when) => {
                when.evaluate_bool(&StepScope { execution: self }).map_err(|error| invalid(format!("when: {error}")))
            }
        }
    }

    /// Evaluates `for_each`: the items of a step's list.
    pub(super) fn items(&self, step: usize) -> Result<Arc<Value>, ToolFailure> {
        let Some(fan_out) = &self.plan.steps[step].for_each else {
            return Err(invalid("the step has no for_each"));
        };
        let items = fan_out
            .items
            .evaluate(&StepScope { execution: self })
            .map_err(|error| invalid(format!("for_each: {error}")))?;
        let Value::Array(list) = &items else {
            return Err(invalid("for_each: expected a list"));
        };
        if list.len() > fan_out.max_items as usize {
            return Err(invalid(format!(
                "for_each: {} items, at most {} are allowed (max_items)",
                list.len(),
                fan_out.max_items
            )));
        }
        Ok(Arc::new(items))
    }

    /// Evaluates a probe's answer: it happened with this result, it did not, or the answer is inconclusive.
    pub(super) fn evaluate_probe(&self, at: PartPosition, answer: &Value) -> Result<Option<Value>, String> {
        let (Some(probe), Some(part)) = (self.probe_of(at), self.part_at(at)) else {
            return Err("the plan no longer has the probe".to_owned());
        };
        let step = &self.plan.steps[at.step()];
        let key = part.key.map(|key| key.to_string());
        let scope = PartScope { execution: self, step, at, part, key, result: Some(answer) };
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
}

/// The values that the calls of one part can read.
struct PartScope<'a> {
    execution: &'a Execution,
    step: &'a Step,
    at: PartPosition,
    part: &'a StepPart,
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
        self.step.for_each.as_ref()?;
        let items = self.execution.steps[self.at.step()].items.as_ref()?.value()?;
        Some((items.get(self.at.item())?, self.at.item))
    }
}
