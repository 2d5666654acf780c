//! From a part to the exact call: parameters worked out, key and call hash fixed.

use super::Execution;
use super::agenda::PartAt;
use super::part::{Part, PartState};
use crate::hash::Hash;
use crate::id::ToolName;
use crate::journal::event::Side;
use crate::limits;
use crate::mutation::Mutation;
use crate::plan::expression::{EvaluationError, Scope};
use crate::plan::{Call, Probe, Step};
use crate::tool::{Category, Failure};
use serde_json::Value;
use std::sync::Arc;

/// A call ready to be asked for or made.
pub(super) struct Prepared {
    pub tool: ToolName,
    pub definition: Hash,
    pub parameters: Arc<Value>,
    pub key: Hash,
    /// What an approval is bound to: step, item, tool, its definition, parameters.
    pub hash: Hash,
}

impl Execution {
    /// The call a part makes on a side, if the plan has one.
    pub(super) fn call_of(&self, at: PartAt, side: Side) -> Option<&Call> {
        let step = &self.plan.steps[at.step()];
        match side {
            Side::Do => Some(&step.call),
            Side::Fallback => step.fallback.as_ref().map(|fallback| &fallback.call),
            Side::Undo => self.compensation_of(at).map(|compensation| &compensation.call),
            Side::Probe => self.probe_of(at).map(|probe| &probe.call),
        }
    }

    pub(super) fn compensation_of(&self, at: PartAt) -> Option<&crate::plan::Compensation> {
        let step = &self.plan.steps[at.step()];
        match self.part_at(at)?.effect?.side {
            Side::Fallback => step.fallback.as_ref()?.compensation.as_ref(),
            Side::Do | Side::Undo | Side::Probe => step.compensation.as_ref(),
        }
    }

    /// The probe that can tell about the side in doubt.
    pub(super) fn probe_of(&self, at: PartAt) -> Option<&Probe> {
        let step = &self.plan.steps[at.step()];
        match &self.part_at(at)?.state {
            PartState::InDoubt { side: Side::Do, .. } => step.probe.as_ref(),
            PartState::InDoubt { side: Side::Undo, .. } => self.compensation_of(at)?.probe.as_ref(),
            _ => None,
        }
    }

    pub(super) fn prepare(&self, at: PartAt, side: Side) -> Result<Prepared, Failure> {
        let step = &self.plan.steps[at.step()];
        let part = self.part_at(at).ok_or_else(|| invalid("the part does not exist"))?;
        let call = self.call_of(at, side).ok_or_else(|| invalid("the plan names no call for this"))?;
        let mut scope = PartScope { execution: self, step, at, part, key: Some(String::new()), result: None };
        if side == Side::Probe {
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
                // The key is made from the parameters, so they are worked out without it first.
                let parameters = render(&scope)?;
                let key = match side {
                    Side::Probe => part.key.unwrap_or(Hash::ZERO),
                    Side::Do | Side::Fallback | Side::Undo => self.key(at, side, part, &bytes(&parameters)),
                };
                if side != Side::Probe && call.parameters.uses_key() {
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
        Ok(Prepared { tool: call.tool.clone(), definition, parameters, key, hash })
    }

    /// The call that is tried again, if this is one: what may have been done must not be done otherwise.
    fn repeated(&self, part: &Part, side: Side) -> Option<(Arc<Value>, Hash)> {
        let (sent, parameters) = part.sent.as_ref().filter(|(sent, _)| *sent == side)?;
        let again = match sent {
            Side::Undo => true,
            Side::Do | Side::Fallback => part.effect.is_some() || part.side() == Some(side),
            Side::Probe => false,
        };
        let key = part.key.filter(|_| again && !Mutation::NewKeyOnRetry.is_active())?;
        Some((parameters.value()?.clone(), key))
    }

    /// The same over retries, restarts and replans; another only after what it named was undone.
    fn key(&self, at: PartAt, side: Side, part: &Part, parameters: &[u8]) -> Hash {
        let mut generation = u64::from(part.generation);
        if Mutation::NewKeyOnRetry.is_active() {
            generation += u64::from(part.attempts_of(side)) << 32;
        }
        Hash::of_fields(
            "rutter/key/v1",
            &[
                self.identity.tenant.as_str().as_bytes(),
                self.lineage.as_bytes(),
                self.plan.steps[at.step()].id.as_str().as_bytes(),
                &at.item.to_be_bytes(),
                &[side as u8],
                &generation.to_be_bytes(),
                parameters,
            ],
        )
    }

    /// What a step brought, if it did.
    pub fn result_of(&self, step: &str) -> Option<&Value> {
        self.steps[self.plan.find(step)?].result()
    }

    /// Whether a tool was found changed in a way that nobody has reported or accepted.
    pub fn is_news(&self, tool: &ToolName, found: Hash) -> bool {
        found != self.definition(tool) && self.drifted.get(tool) != Some(&found)
    }

    pub(super) fn definition(&self, tool: &ToolName) -> Hash {
        let pinned = || self.plan.tools.get(tool).map(|tool| tool.definition);
        self.accepted.get(tool).copied().or_else(pinned).unwrap_or(Hash::ZERO)
    }

    /// `when`: whether the step is to be done at all.
    pub(super) fn is_wanted(&self, step: usize) -> Result<bool, Failure> {
        if Mutation::SkipConditionIgnored.is_active() {
            return Ok(true);
        }
        match &self.plan.steps[step].when {
            None => Ok(true),
            Some(when) => when
                .evaluate_bool(&StepScope { execution: self })
                .map_err(|error| invalid(format!("when: {error}"))),
        }
    }

    /// `for_each`: the items of a step's list.
    pub(super) fn items(&self, step: usize) -> Result<Arc<Value>, Failure> {
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

    /// What a probe's answer says: it happened with this result, it did not, or it does not tell.
    pub(super) fn judge(&self, at: PartAt, answer: &Value) -> Result<Option<Value>, EvaluationError> {
        let (Some(probe), Some(part)) = (self.probe_of(at), self.part_at(at)) else { return Ok(None) };
        let step = &self.plan.steps[at.step()];
        let key = part.key.map(|key| key.to_string());
        let scope = PartScope { execution: self, step, at, part, key, result: Some(answer) };
        if !probe.happened.evaluate_bool(&scope)? {
            return Ok(None);
        }
        match &probe.result {
            Some(result) => result.evaluate(&scope).map(Some),
            None => Ok(Some(answer.clone())),
        }
    }
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Category::InvalidInput, message)
}

fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON value can always be written")
}

/// What expressions about a whole step can see.
struct StepScope<'a> {
    execution: &'a Execution,
}

impl Scope for StepScope<'_> {
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
        None
    }

    fn result(&self) -> Option<&Value> {
        None
    }

    fn parameters(&self) -> Option<&Value> {
        None
    }

    fn item(&self) -> Option<(&Value, u32)> {
        None
    }
}

/// What the calls of one part can see.
struct PartScope<'a> {
    execution: &'a Execution,
    step: &'a Step,
    at: PartAt,
    part: &'a Part,
    key: Option<String>,
    /// In place of the part's own result: the answer of its probe.
    result: Option<&'a Value>,
}

impl Scope for PartScope<'_> {
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
