//! Results given by hand: they must fit the output schema, and have what compensations and later steps need of them.

use super::Execution;
use super::admit::AdmissionResult;
use super::agenda::PartPosition;
use super::input::Refusal;
use super::part::{PartState, StepPart};
use super::step::StepStage;
use crate::id::{PartId, ToolName};
use crate::journal::event::{CallSide, Question};
use crate::plan::schema::CompiledSchema;
use crate::plan::template::ParameterTemplate;
use crate::plan::{Compensation, Step};
use crate::text::cut;
use crate::tool::undeclared_output;
use serde_json::Value;

/// The length of a result in a refusal.
const RESULT_CHARS_MAX: usize = 300;

impl Execution {
    /// Checks the result of a step that was done by hand.
    pub(super) fn admit_resolved_result(&self, about: &Question, result: Option<&Value>) -> AdmissionResult {
        match about {
            Question::Item(part) => match self.locate(part) {
                Some(at) => self.admit_result(at, self.side_by_hand(at), result),
                None => Ok(()),
            },
            Question::Failure(step) => {
                let Some(step) = self.plan.find(step.as_str()) else { return Ok(()) };
                if self.steps[step].parts.is_empty() {
                    return self.admit_list(step, result);
                }
                let parts = self.steps[step].parts.iter().enumerate();
                let mut open = parts.filter(|(_, part)| !matches!(part.state, PartState::Completed { .. }));
                // One result stands for all its parts.
                open.try_for_each(|(item, _)| {
                    let at = PartPosition::new(step, item);
                    self.admit_result(at, self.side_by_hand(at), result)
                })
            }
            Question::Compensation(_) | Question::Limit(_) | Question::SecondEffect(_) | Question::Silence => Ok(()),
        }
    }

    /// Refuses to say by hand how a step was done whose own call took effect after all: its tool's answer is its result.
    pub(super) fn admit_resolving_unanswered(&self, about: &Question) -> AdmissionResult {
        let is_meant = |id: &PartId| match about {
            Question::Item(part) => part == id,
            Question::Failure(step) => id.step == *step,
            _ => false,
        };
        let mut answered = self.parts().filter(|(id, part)| is_meant(id) && part.is_answered_after_all());
        let Some((id, part)) = answered.next() else { return Ok(()) };
        let attempt = part.effect.map_or(0, |effect| effect.attempt);
        let result = part.result.as_ref().and_then(|result| result.value()).map(ToString::to_string);
        let result = cut(&result.unwrap_or_else(|| "erased".to_owned()), RESULT_CHARS_MAX);
        Err(Refusal::new(
            "execution.answered",
            format!("{id} took effect: attempt {attempt} was answered late, with the result {result}"),
        )
        .hint(format!("retry {id}: it is completed with that result, and not called again; or undo it")))
    }

    /// Checks the result of a doubt that is settled as "it happened".
    pub(super) fn admit_settled_result(&self, part: &PartId, result: Option<&Value>) -> AdmissionResult {
        let Some(at) = self.locate(part) else { return Ok(()) };
        match self.part_at(at).map(|part| &part.state) {
            Some(PartState::InDoubt { side: side @ (CallSide::Do | CallSide::Fallback), .. }) => {
                self.admit_result(at, *side, result)
            }
            // Nothing reads the result of a compensation.
            _ => Ok(()),
        }
    }

    /// Checks the result that an agent records. It may have none; another call than the planned one has another result.
    pub(super) fn admit_recorded_result(&self, id: &PartId, result: &Value) -> AdmissionResult {
        let Some((at, part)) = self.locate(id).and_then(|at| Some((at, self.part_at(at)?))) else { return Ok(()) };
        let side = match &part.state {
            PartState::Running(attempt) => {
                let planned = self.call_of(at, attempt.side).map(|call| &call.tool);
                if planned != Some(&attempt.sent.tool) {
                    return Ok(());
                }
                attempt.side
            }
            PartState::Pending => CallSide::Do,
            PartState::Asking { side, .. } | PartState::Approved { side, .. } | PartState::BackingOff { side, .. } => {
                *side
            }
            // A result that the step does not take over is a deviation, and on record as it is.
            PartState::InDoubt { .. }
            | PartState::Completed { .. }
            | PartState::Failed { .. }
            | PartState::Cancelled
            | PartState::Compensated { .. }
            | PartState::CompensationFailed { .. } => return Ok(()),
        };
        if result.is_null() { Ok(()) } else { self.admit_shape(at.step(), side, &id.to_string(), result) }
    }

    /// Checks one result. An explicit `null` says that it is not known, and is taken at its word.
    pub(super) fn admit_result(&self, at: PartPosition, side: CallSide, result: Option<&Value>) -> AdmissionResult {
        match result {
            Some(Value::Null) => Ok(()),
            Some(result) => {
                self.admit_shape(at.step(), side, &self.name(at).to_string(), result)?;
                self.admit_reads(at, side, Some(result))
            }
            None => self.admit_reads(at, side, None),
        }
    }

    /// The result of a fan-out that failed before its list was known: one result per item.
    fn admit_list(&self, step: usize, result: Option<&Value>) -> AdmissionResult {
        let Some(result) = result.filter(|result| !result.is_null()) else { return Ok(()) };
        let id = &self.plan.steps[step].id;
        let Value::Array(items) = result else {
            return Err(invalid(format!("the result of {id} must be a list, with one result per item")));
        };
        let mut items = items.iter().enumerate();
        items.try_for_each(|(item, result)| self.admit_shape(step, CallSide::Do, &format!("{id}[{item}]"), result))
    }

    /// Refuses a result that the step's or the tool's schema forbids.
    fn admit_shape(&self, step: usize, side: CallSide, name: &str, result: &Value) -> AdmissionResult {
        let planned = &self.plan.steps[step];
        let call = match side {
            CallSide::Fallback => planned.fallback.as_ref().map(|fallback| &fallback.call),
            CallSide::Do | CallSide::Undo | CallSide::Probe => Some(&planned.call),
        };
        let own = planned.output.as_deref().map(|schema| ("the step's `output`".to_owned(), schema));
        let of_tool = call.and_then(|call| {
            self.pinned_output(&call.tool).map(|schema| (format!("the output schema of {}", call.tool), schema))
        });
        for (whose, schema) in own.into_iter().chain(of_tool) {
            // The schema compiled when the plan was checked; if it no longer does, it says nothing.
            let Ok(schema) = CompiledSchema::compile(schema) else { continue };
            if let Some(violation) = schema.validate(result).first() {
                let place = format!("result{}", violation.pointer);
                return Err(invalid(format!("{name}: {place}: {} ({whose})", violation.message)));
            }
        }
        Ok(())
    }

    /// The output schema that a tool declares, unless another definition than the pinned one was accepted.
    fn pinned_output(&self, tool: &ToolName) -> Option<&Value> {
        let pinned = self.plan.tools.get(tool)?;
        if self.accepted.get(tool).is_some_and(|accepted| *accepted != pinned.definition) {
            return None;
        }
        pinned.output.as_deref().filter(|schema| **schema != undeclared_output())
    }

    /// Refuses a result without the values that its compensation, or a step that has not run yet, cannot do without.
    fn admit_reads(&self, at: PartPosition, side: CallSide, result: Option<&Value>) -> AdmissionResult {
        let step = &self.plan.steps[at.step()];
        let mut readers: Vec<String> = Vec::new();
        let undo = compensation_of(step, side).filter(|_| !self.is_read(at.step(), side));
        let missing = undo.map(|undo| needed(&undo.call.parameters).filter(|path| lacks(path, "result", result)));
        let mut missing: Vec<String> = missing.into_iter().flatten().map(|path| path.join(".")).collect();
        missing.dedup();
        if !missing.is_empty() {
            readers.push(format!("the compensation of {} reads {}", step.id, missing.join(", ")));
        }
        // The result of a fan-out is a list, and exists even where an item has none.
        let dependents = self.plan.graph.dependents[at.step()].iter().filter(|_| step.for_each.is_none());
        for dependent in dependents.filter(|need| self.steps[need.step].stage == StepStage::Waiting) {
            let reader = &self.plan.steps[dependent.step];
            let root = ["steps", step.id.as_str(), "result"];
            let of_call = needed(&reader.call.parameters);
            let of_rules = reader.when.iter().chain(reader.for_each.as_ref().map(|fan_out| &fan_out.items));
            let paths = of_rules.flat_map(|expression| expression.needed.iter().map(Vec::as_slice)).chain(of_call);
            let below = paths.filter(|path| path.starts_with(&root.map(str::to_owned)));
            let mut missing: Vec<String> =
                below.filter(|path| lacks(&path[2..], "result", result)).map(|path| path.join(".")).collect();
            missing.dedup();
            if !missing.is_empty() {
                readers.push(format!("{} reads {}", reader.id, missing.join(", ")));
            }
        }
        if readers.is_empty() {
            return Ok(());
        }
        Err(Refusal::new("execution.result_missing", readers.join("; ")).hint(
            "give it in `result`; if nobody knows it, say so with `result_unknown` (`--result-unknown` on the command \
             line): what reads it fails until it is added with `correct`",
        ))
    }

    /// The side whose effect a part that is resolved by hand has.
    fn side_by_hand(&self, at: PartPosition) -> CallSide {
        let effect = self.part_at(at).and_then(|part: &StepPart| part.effect);
        effect.map_or(CallSide::Do, |effect| effect.side)
    }
}

fn invalid(message: String) -> Refusal {
    Refusal::new("execution.result_invalid", message).hint("nothing was recorded; give the result as the tool would")
}

fn compensation_of(step: &Step, side: CallSide) -> Option<&Compensation> {
    match side {
        CallSide::Fallback => step.fallback.as_ref()?.compensation.as_ref(),
        CallSide::Do | CallSide::Undo | CallSide::Probe => step.compensation.as_ref(),
    }
}

/// The paths without which the parameters have no value.
fn needed(parameters: &ParameterTemplate) -> impl Iterator<Item = &[String]> {
    let expressions = parameters.holes().iter().flat_map(|(_, hole)| hole.expressions());
    expressions.flat_map(|expression| expression.needed.iter().map(Vec::as_slice))
}

/// Whether a value certainly lacks what a path below this root reads. What is not an object may be read in other ways.
fn lacks(path: &[String], root: &str, value: Option<&Value>) -> bool {
    let Some((_, keys)) = path.split_first().filter(|(first, _)| *first == root) else { return false };
    let Some(mut value) = value else { return true };
    for key in keys {
        match value {
            Value::Object(fields) => match fields.get(key) {
                Some(found) => value = found,
                None => return true,
            },
            _ => return false,
        }
    }
    false
}
