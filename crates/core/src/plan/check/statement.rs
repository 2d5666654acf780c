//! Checks policies, step numbers and schemas of the plan itself.

use super::edge::reads;
use super::sketch::PlanSketch;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::draft::DraftShape;
use crate::plan::schema::CompiledSchema;
use crate::wording::quoted;
use serde_json::Value;

pub(super) fn check(sketch: &PlanSketch<'_>, found: &mut Vec<Diagnostic>) {
    schema(format!("{}/inputs", sketch.root()), sketch.draft.inputs.as_ref(), found);
    for step in &sketch.draft.steps {
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
