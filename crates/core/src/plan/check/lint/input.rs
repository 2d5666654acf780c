//! Lint for inputs that an execution may lack and an expression cannot do without.

use super::super::expression_site::{ExpressionSite, places};
use super::super::sketch::PlanSketch;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::Step;
use crate::plan::draft::StepDraft;
use crate::plan::inputs::{InputDeclaration, optional_part};
use crate::pointer;
use crate::wording::quoted;
use serde_json::{Value, json};

/// Reports each input once, at the first expression that needs it.
pub(super) fn check(sketch: &PlanSketch<'_>, sound: &[bool], found: &mut Vec<Diagnostic>) {
    let Some(declared) = &sketch.draft.inputs else { return };
    let mut needed: Vec<NeededInput> = Vec::new();
    let steps = sketch.draft.steps.iter().zip(&sketch.steps).zip(sound);
    for ((draft, step), _) in steps.filter(|(_, sound)| **sound) {
        for place in places(draft, step) {
            for path in place.expression.needed.iter().filter(|path| path[0] == "inputs") {
                let Some(part) = optional_part(&declared.schema, &path[1..]) else { continue };
                if !looks_first(step, part) && !needed.iter().any(|other| other.names == part) {
                    needed.push(NeededInput::new(part, draft, &place));
                }
            }
        }
    }
    let all: Vec<&str> = needed.iter().filter_map(|input| input.top()).collect();
    found.extend(needed.iter().map(|input| input.finding(sketch, declared, &all)));
}

/// Whether the step's own condition asks for the input: then the author has thought of it.
fn looks_first(step: &Step, part: &[String]) -> bool {
    let Some(when) = &step.when else { return false };
    when.reads.iter().any(|path| !when.needed.contains(path) && path[0] == "inputs" && path[1..].starts_with(part))
}

/// An input that a step needs and an execution may lack.
struct NeededInput {
    /// Its name, and the names within it.
    names: Vec<String>,
    step: String,
    pointer: String,
}

impl NeededInput {
    fn new(names: &[String], draft: &StepDraft, place: &ExpressionSite<'_>) -> NeededInput {
        NeededInput { names: names.to_vec(), step: draft.id.clone(), pointer: place.pointer() }
    }

    /// The name, if the input itself is optional and not a part of it.
    fn top(&self) -> Option<&str> {
        match self.names.as_slice() {
            [name] => Some(name),
            _ => None,
        }
    }

    fn finding(&self, sketch: &PlanSketch<'_>, declared: &InputDeclaration, all: &[&str]) -> Diagnostic {
        let path = format!("inputs.{}", self.names.join("."));
        let message =
            format!("step {} needs `{path}`, which an execution need not be given: it then fails", quoted(&self.step));
        let hint = format!("require it, give it a \"default\" in \"inputs\", or write `{path} | default(…)`");
        let found = Diagnostic::warning("lint.unguarded_input", &self.pointer, message).hint(hint);
        match self.top() {
            Some(name) => found.fix(vec![require(&format!("{}/inputs", sketch.root()), declared, name, all)]),
            None => found,
        }
    }
}

/// The patch that makes the input required. Without a list yet, it gets all that need to be in it, so that the fixes of
/// several findings can be applied together.
fn require(inputs: &str, declared: &InputDeclaration, name: &str, all: &[&str]) -> PatchOperation {
    if declared.is_shorthand {
        return PatchOperation::Remove { path: pointer::field(&pointer::field(inputs, name), "required") };
    }
    match declared.schema.get("required") {
        Some(Value::Array(_)) => PatchOperation::Add { path: format!("{inputs}/required/-"), value: json!(name) },
        _ => PatchOperation::Add { path: format!("{inputs}/required"), value: json!(all) },
    }
}
