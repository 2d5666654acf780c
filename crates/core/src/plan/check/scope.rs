//! What a path of an expression leads to, as far as schemas tell before anything has happened.

use super::place::Role;
use super::site::{Purpose, Site};
use super::sketch::Sketch;
use crate::plan::schema::Lookup;
use crate::plan::{Call, Step};
use serde_json::{Map, Value, json};

/// Finds the schema of what a path will hold at this place of this step.
pub(super) fn lookup(
    sketch: &Sketch<'_>,
    step: &Step,
    role: Role,
    site: &Site<'_>,
    path: &[String],
) -> Lookup {
    let Some((root, rest)) = path.split_first() else { return Lookup::Unknown };
    match (root.as_str(), rest) {
        ("inputs", _) => {
            sketch.draft.inputs.as_ref().map_or(Lookup::Unknown, |schema| sketch.look_up(schema, rest))
        }
        ("steps", [id, field, rest @ ..]) => match field.as_str() {
            "status" => Lookup::Known(json!({"type": "string"})),
            _ => result_of_step(sketch, id, rest),
        },
        ("result", _) => match role {
            Role::Verdict => result_of_call(sketch, site.call, None, rest),
            _ => result_of_call(sketch, site.effect, step.output.as_deref(), rest),
        },
        ("parameters", _) => parameter(site.effect_draft.fields(), rest),
        ("item", _) => item(sketch, step, role, site, rest),
        ("index", []) => Lookup::Known(json!({"type": "integer", "minimum": 0})),
        ("key", []) => Lookup::Known(json!({"type": "string"})),
        _ => Lookup::Unknown,
    }
}

/// Which of the names an expression may begin with have a value here.
pub(super) fn has_value(role: Role, fans_out: bool, root: &str) -> bool {
    use Purpose::*;
    let in_call = !matches!(role, Role::Condition | Role::Items);
    match root {
        "inputs" | "steps" => true,
        "key" => in_call,
        "item" | "index" => in_call && fans_out,
        "parameters" => matches!(role, Role::Verdict | Role::Parameters(Undo | Probe | UndoProbe)),
        "result" => matches!(role, Role::Verdict | Role::Parameters(Undo | UndoProbe)),
        _ => false,
    }
}

fn result_of_step(sketch: &Sketch<'_>, id: &str, path: &[String]) -> Lookup {
    let Some(&position) = sketch.index.get(id) else { return Lookup::Unknown };
    let step = &sketch.steps[position];
    // With a fallback the result is one tool's or the other's, and only the step's own schema covers both.
    let of_call = |path: &[String]| match (&step.output, &step.fallback) {
        (Some(schema), Some(_)) => sketch.look_up(schema, path),
        (None, Some(_)) => Lookup::Unknown,
        (schema, None) => result_of_call(sketch, &step.call, schema.as_deref(), path),
    };
    let fans_out = sketch.draft.steps[position].for_each.is_some();
    match (fans_out, path) {
        (false, _) => of_call(path),
        (true, []) => Lookup::Known(json!({"type": "array"})),
        (true, [position, path @ ..]) if is_position(position) => of_call(path),
        (true, _) => Lookup::Missing { known_keys: Vec::new() },
    }
}

/// The step's own schema comes first, then what the tool says of itself.
fn result_of_call(sketch: &Sketch<'_>, call: &Call, own: Option<&Value>, path: &[String]) -> Lookup {
    let own = own.map_or(Lookup::Unknown, |schema| sketch.look_up(schema, path));
    let output = sketch.tool(call).and_then(|tool| tool.output.as_deref());
    match (own, output) {
        (Lookup::Unknown | Lookup::Undeclared { .. }, Some(schema)) => sketch.look_up(schema, path),
        (own, _) => own,
    }
}

fn parameter(parameters: &Map<String, Value>, path: &[String]) -> Lookup {
    let Some((name, rest)) = path.split_first() else { return Lookup::Known(json!({"type": "object"})) };
    match parameters.get(name) {
        None => Lookup::Missing { known_keys: parameters.keys().cloned().collect() },
        Some(Value::Object(inner)) if !rest.is_empty() && !inner.contains_key("secret") => {
            parameter(inner, rest)
        }
        Some(Value::Number(_)) if rest.is_empty() => Lookup::Known(json!({"type": "number"})),
        Some(Value::Bool(_)) if rest.is_empty() => Lookup::Known(json!({"type": "boolean"})),
        Some(_) => Lookup::Unknown,
    }
}

/// An item is what the list holds at any position.
fn item(sketch: &Sketch<'_>, step: &Step, role: Role, site: &Site<'_>, path: &[String]) -> Lookup {
    let Some(list) = step.for_each.as_ref().and_then(|fan_out| fan_out.items.path()) else {
        return Lookup::Unknown;
    };
    if list.first().is_some_and(|root| root == "item") {
        return Lookup::Unknown;
    }
    let path: Vec<String> =
        list.iter().cloned().chain(["0".to_owned()]).chain(path.iter().cloned()).collect();
    match lookup(sketch, step, role, site, &path) {
        // What the list lacks altogether is reported where the list is read.
        Lookup::Missing { known_keys } if known_keys.is_empty() => Lookup::Unknown,
        other => other,
    }
}

fn is_position(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}
