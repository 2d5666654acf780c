//! Checks policies, step numbers and schemas of the plan itself.

use super::edge::reads;
use super::sketch::PlanSketch;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::draft::{DraftShape, StepDraft};
use crate::plan::inputs::{self, InputDeclaration};
use crate::plan::name;
use crate::plan::schema::CompiledSchema;
use crate::pointer::field;
use crate::wording::quoted;
use serde_json::Value;

pub(super) fn check(sketch: &PlanSketch<'_>, found: &mut Vec<Diagnostic>) {
    found.extend(bad_name(sketch));
    if let Some(declared) = &sketch.draft.inputs {
        inputs(sketch, declared, found);
    }
    for step in &sketch.draft.steps {
        found.extend(else_without_condition(sketch, step));
        schema(format!("{}/output", step.pointer), step.output.as_ref(), found);
        for (id, pointer) in step.failure_policy.iter().flat_map(|policy| &policy.propagate_to) {
            if *id == step.id {
                let message = format!("the failure of step {} would cancel the step itself", quoted(id));
                let fix = PatchOperation::Remove { path: pointer.clone() };
                found.push(Diagnostic::error("plan.self_propagation", pointer, message).fix(vec![fix]));
            }
        }
    }
    if sketch.draft.shape == DraftShape::Numbered {
        forward(sketch, found);
    }
}

/// What is saved is read without this check: names of plans of earlier versions stay.
fn bad_name(sketch: &PlanSketch<'_>) -> Option<Diagnostic> {
    let at = format!("{}/name", sketch.root());
    if sketch.draft.name.chars().any(char::is_control) {
        return Some(Diagnostic::error("plan.bad_name", at, "the name has control characters or line breaks"));
    }
    // The beginning of a request, under which a plan without a name is listed, is nobody's choice.
    sketch.draft.document.pointer(&at)?;
    let mistake = name::mistake(&sketch.draft.name)?;
    let fix = mistake.instead.map(|value| PatchOperation::Replace { path: at.clone(), value: value.into() });
    let found = Diagnostic::error("plan.bad_name", at, mistake.message).hint(mistake.hint);
    Some(match fix {
        Some(fix) => found.fix(vec![fix]),
        None => found,
    })
}

/// `else_of` names a step with a `when`: without one it is never skipped by it.
fn else_without_condition(sketch: &PlanSketch<'_>, step: &StepDraft) -> Option<Diagnostic> {
    let (id, pointer) = step.else_of.as_ref().filter(|(id, _)| *id != step.id)?;
    let other = &sketch.draft.steps[*sketch.index.get(id.as_str())?];
    if other.when.is_some() {
        return None;
    }
    let message = format!("step {} has no \"when\", so step {} would never run", quoted(id), quoted(&step.id));
    Some(
        Diagnostic::error("plan.else_without_when", pointer, message)
            .hint("name the step whose condition decides between the two, or give that step a \"when\""),
    )
}

fn inputs(sketch: &PlanSketch<'_>, declared: &InputDeclaration, found: &mut Vec<Diagnostic>) {
    let pointer = format!("{}/inputs", sketch.root());
    if let Err(error) = CompiledSchema::compile(&declared.schema) {
        let at = format!("{pointer}{}", declared.source_pointer(&error.pointer));
        found.push(Diagnostic::error("plan.bad_schema", at, format!("not a JSON Schema: {}", error.message)));
    }
    for unfit in inputs::unfit_defaults(&declared.schema) {
        let at = format!("{pointer}{}", declared.source_pointer(&unfit.pointer));
        let message = format!("the default of {} does not fit its schema: {}", quoted(&unfit.name), unfit.message);
        let hint = "an execution without this input could not begin";
        found.push(Diagnostic::error("plan.bad_schema", at, message).hint(hint));
    }
    for name in declared.stray_keywords() {
        let message = format!("{} is not a keyword of JSON Schema", quoted(name));
        let hint = match sketch.guess(name, inputs::keywords()) {
            Some(meant) => format!("did you mean {:?}?", meant.word()),
            None => {
                "declare the input under \"properties\", or all inputs by name: {amount: {type: number}}".to_owned()
            }
        };
        found.push(Diagnostic::error("plan.bad_schema", field(&pointer, name), message).hint(hint));
    }
}

fn schema(pointer: String, value: Option<&Value>, found: &mut Vec<Diagnostic>) {
    if let Some(Err(error)) = value.map(CompiledSchema::compile) {
        let at = format!("{pointer}{}", error.pointer);
        found.push(Diagnostic::error("plan.bad_schema", at, format!("not a JSON Schema: {}", error.message)));
    }
}

/// A numbered step can only depend on steps with lower numbers.
fn forward(sketch: &PlanSketch<'_>, found: &mut Vec<Diagnostic>) {
    let steps = &sketch.draft.steps;
    let later = |own: Option<u64>, id: &str| {
        let other = steps[*sketch.index.get(id)?].number;
        own.zip(other).filter(|(own, other)| other > own)
    };
    for (draft, step) in steps.iter().zip(&sketch.steps) {
        for (id, pointer) in &draft.depends_on {
            if let Some((own, other)) = later(draft.number, id) {
                let message = format!("step {own} needs step {other}, which comes later");
                let fix = PatchOperation::Remove { path: pointer.clone() };
                found.push(Diagnostic::error("plan.forward_dependency", pointer, message).fix(vec![fix]));
            }
        }
        for (id, pointer) in reads(draft, step) {
            if let Some((own, other)) = later(draft.number, &id) {
                let message = format!("step {own} reads step {other}, which comes later");
                found.push(Diagnostic::error("plan.forward_dependency", pointer, message));
            }
        }
    }
}
