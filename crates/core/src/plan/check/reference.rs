//! Checks the reads of expressions: names out of scope, undeclared inputs, paths not in a schema.

use super::call_site::CallPurpose;
use super::expression_site::{ExpressionRole, ExpressionSite, places};
use super::scope::{has_value, lookup};
use super::sketch::PlanSketch;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::draft::DraftShape;
use crate::plan::schema::SchemaLookup;
use crate::wording::{SpellingGuess, quoted};
use indexmap::IndexSet;
use serde_json::{Map, Value, json};

pub(super) fn check(sketch: &PlanSketch<'_>, found: &mut Vec<Diagnostic>) {
    let mut undeclared = UndeclaredInputs::default();
    for (draft, step) in sketch.draft.steps.iter().zip(&sketch.steps) {
        for place in places(draft, step) {
            for path in place.expression.reads.iter() {
                let Some(root) = path.first() else { continue };
                if !has_value(place.role, draft.for_each.is_some(), root) {
                    found.push(out_of_scope(&place, root));
                } else if root == "inputs" && sketch.draft.inputs.is_none() {
                    undeclared.add(&place, path);
                } else {
                    let lookup = lookup(sketch, step, place.role, &place.site, path);
                    found.extend(wrong_path(sketch, &place, path, lookup));
                }
            }
        }
    }
    found.extend(undeclared.report(sketch));
}

fn out_of_scope(place: &ExpressionSite<'_>, root: &str) -> Diagnostic {
    let message = format!("`{root}` has no value here");
    let hint = match (root, place.role) {
        ("result", ExpressionRole::Parameters(CallPurpose::Probe)) => {
            "a probe is asked when the step's result is not known; find the effect by `parameters` or `key`"
        }
        ("result" | "parameters", _) => "`result` and `parameters` exist in compensations and probes only",
        ("key", _) => "the key belongs to a call, and conditions and lists are decided before there is one",
        ("item" | "index", ExpressionRole::Condition) => "`when` decides for the whole step, before there are items",
        _ => "`item` and `index` exist in steps with `for_each` only",
    };
    Diagnostic::error("plan.out_of_scope", place.pointer(), message).hint(hint)
}

fn wrong_path(
    sketch: &PlanSketch<'_>,
    place: &ExpressionSite<'_>,
    path: &[String],
    lookup: SchemaLookup,
) -> Option<Diagnostic> {
    let of_inputs = path.first().is_some_and(|root| root == "inputs");
    let dotted = || quoted(&path.join("."));
    let (found, known_keys) = match lookup {
        SchemaLookup::Known(_) | SchemaLookup::Unknown => return None,
        SchemaLookup::Missing { known_keys } | SchemaLookup::Undeclared { known_keys } if of_inputs => {
            let message = format!("{} is not among the inputs the plan declares", dotted());
            (Diagnostic::error("plan.unknown_input", place.pointer(), message), known_keys)
        }
        SchemaLookup::Missing { known_keys } => {
            let message = format!("{} does not exist", dotted());
            (Diagnostic::error("plan.unknown_path", place.pointer(), message), known_keys)
        }
        SchemaLookup::Undeclared { known_keys } => {
            // The shape of a plain text result: the tool itself declares none.
            let is_plain = known_keys.len() == 3 && ["text", "content", "json"].iter().all(|key| has(&known_keys, key));
            let message = match is_plain {
                true => {
                    format!("{} is there only if the tool returns structured content: it declares no output", dotted())
                }
                false => format!("{} is not declared by the tool's output schema", dotted()),
            };
            (Diagnostic::warning("plan.undeclared_path", place.pointer(), message), known_keys)
        }
    };
    Some(suggest(sketch, place, path, found, &known_keys))
}

fn has(keys: &[String], wanted: &str) -> bool {
    keys.iter().any(|key| key == wanted)
}

/// Suggests a known key for the wrong segment of the path, recognised by its similarity to a key.
fn suggest(
    sketch: &PlanSketch<'_>,
    place: &ExpressionSite<'_>,
    path: &[String],
    found: Diagnostic,
    known_keys: &[String],
) -> Diagnostic {
    let guess = path.iter().skip(1).rev().find_map(|name| {
        let guess = sketch.guess(name, known_keys.iter().map(String::as_str))?;
        Some((name, guess))
    });
    match guess {
        Some((name, SpellingGuess::Clear(near))) if near != name => {
            let found = found.hint(format!("did you mean {near:?}?"));
            place.rename(sketch.draft, found, &format!(".{name}"), &format!(".{near}"))
        }
        Some((_, SpellingGuess::Vague(near))) => found.hint(format!("did you mean {near:?}?")),
        _ if known_keys.is_empty() && reads_fan_out(sketch, path) => {
            found.hint("the result of a step with `for_each` is a list: read a position of it, or all with `map`")
        }
        _ if known_keys.is_empty() => found,
        _ => found.hint(format!("there are: {}", listed(known_keys.iter()))),
    }
}

/// The first names, at most `NAMES_MAX`.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    const NAMES_MAX: usize = 20;
    let more = if names.len() > NAMES_MAX { ", …" } else { "" };
    let names: Vec<&str> = names.take(NAMES_MAX).map(String::as_str).collect();
    format!("{}{more}", names.join(", "))
}

fn reads_fan_out(sketch: &PlanSketch<'_>, path: &[String]) -> bool {
    let position = path.get(1).filter(|_| path[0] == "steps").and_then(|id| sketch.index.get(id.as_str()));
    position.is_some_and(|&position| sketch.draft.steps[position].for_each.is_some())
}

/// Inputs that are read although the plan declares none, reported once.
#[derive(Default)]
struct UndeclaredInputs {
    pointer: Option<String>,
    names: IndexSet<String>,
}

impl UndeclaredInputs {
    fn add(&mut self, place: &ExpressionSite<'_>, path: &[String]) {
        self.pointer.get_or_insert_with(|| place.pointer());
        self.names.extend(path.get(1).cloned());
    }

    fn report(self, sketch: &PlanSketch<'_>) -> Option<Diagnostic> {
        let message = match self.names.is_empty() {
            true => "the plan reads its inputs and declares none".to_owned(),
            false => format!("the plan reads the inputs {} and declares none", listed(self.names.iter())),
        };
        let found = Diagnostic::error("plan.undeclared_inputs", self.pointer?, message)
            .hint("add \"inputs\", a JSON Schema that says what an execution must be given");
        if sketch.draft.shape != DraftShape::Native {
            return Some(found);
        }
        let properties: Map<String, Value> = self.names.iter().map(|name| (name.clone(), json!({}))).collect();
        let value = json!({"type": "object", "required": self.names, "properties": properties});
        Some(found.fix(vec![PatchOperation::Add { path: format!("{}/inputs", sketch.root()), value }]))
    }
}
