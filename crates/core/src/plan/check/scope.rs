//! The schema of an expression's path, as far as it is known before execution.

use super::call_site::{CallPurpose, CallSite};
use super::expression_site::ExpressionRole;
use super::sketch::PlanSketch;
use crate::plan::schema::SchemaLookup;
use crate::plan::{PlannedCall, Step};
use serde_json::{Map, Value, json};

/// Looks up the schema of a path's value at this position of this step.
pub(super) fn lookup(
    sketch: &PlanSketch<'_>,
    step: &Step,
    role: ExpressionRole,
    site: &CallSite<'_>,
    path: &[String],
) -> SchemaLookup {
    let Some((root, rest)) = path.split_first() else { return SchemaLookup::Unknown };
    match (root.as_str(), rest) {
        ("inputs", _) => {
            let declared = sketch.draft.inputs.as_ref();
            declared.map_or(SchemaLookup::Unknown, |declared| sketch.look_up(&declared.schema, rest))
        }
        ("steps", [id, field, rest @ ..]) => match field.as_str() {
            "status" => SchemaLookup::Known(json!({"type": "string"})),
            "items" => items_of_step(sketch, id, rest),
            _ => result_of_step(sketch, id, rest),
        },
        ("result", _) => match role {
            ExpressionRole::Verdict => result_of_call(sketch, site.call, None, rest),
            _ => result_of_call(sketch, site.effect, step.output.as_deref(), rest),
        },
        ("parameters", _) => parameter(site.effect_draft.fields(), rest),
        ("item", _) => item(sketch, step, role, site, rest),
        ("index", []) => SchemaLookup::Known(json!({"type": "integer", "minimum": 0})),
        ("key", []) => SchemaLookup::Known(json!({"type": "string"})),
        _ => SchemaLookup::Unknown,
    }
}

/// Whether this root has a value here.
pub(super) fn has_value(role: ExpressionRole, fans_out: bool, root: &str) -> bool {
    use CallPurpose::*;
    let in_call = !matches!(role, ExpressionRole::Condition | ExpressionRole::Items);
    match root {
        "inputs" | "steps" => true,
        "key" => in_call,
        "item" | "index" => in_call && fans_out,
        "parameters" => {
            matches!(role, ExpressionRole::Verdict | ExpressionRole::Parameters(Undo | Probe | UndoProbe))
        }
        "result" => matches!(role, ExpressionRole::Verdict | ExpressionRole::Parameters(Undo | UndoProbe)),
        _ => false,
    }
}

fn result_of_step(sketch: &PlanSketch<'_>, id: &str, path: &[String]) -> SchemaLookup {
    let Some(&position) = sketch.index.get(id) else { return SchemaLookup::Unknown };
    let step = &sketch.steps[position];
    // With a fallback, the result comes from either tool, and only the step's own schema covers both.
    let of_call = |path: &[String]| match (&step.output, &step.fallback) {
        (Some(schema), Some(_)) => sketch.look_up(schema, path),
        (None, Some(_)) => SchemaLookup::Unknown,
        (schema, None) => result_of_call(sketch, &step.call, schema.as_deref(), path),
    };
    let fans_out = sketch.draft.steps[position].for_each.is_some();
    match (fans_out, path) {
        (false, _) => of_call(path),
        (true, []) => SchemaLookup::Known(json!({"type": "array"})),
        (true, [position, path @ ..]) if is_position(position) => of_call(path),
        (true, _) => SchemaLookup::Missing { known_keys: Vec::new() },
    }
}

/// One object per item of a fan-out. What an item that failed lacks is not known before execution.
fn items_of_step(sketch: &PlanSketch<'_>, id: &str, path: &[String]) -> SchemaLookup {
    let Some(&position) = sketch.index.get(id) else { return SchemaLookup::Unknown };
    if sketch.draft.steps[position].for_each.is_none() {
        return SchemaLookup::Missing { known_keys: Vec::new() };
    }
    const KEYS: [&str; 3] = ["status", "result", "failure"];
    match path {
        [] => SchemaLookup::Known(json!({"type": "array"})),
        [item] if is_position(item) => SchemaLookup::Known(json!({"type": "object"})),
        [item, key, ..] if is_position(item) && !KEYS.contains(&key.as_str()) => {
            SchemaLookup::Missing { known_keys: KEYS.map(str::to_owned).to_vec() }
        }
        [item, key, rest @ ..] if is_position(item) && key == "result" => {
            let path: Vec<String> = std::iter::once(item).chain(rest).cloned().collect();
            result_of_step(sketch, id, &path)
        }
        [item, key] if is_position(item) && key == "status" => SchemaLookup::Known(json!({"type": "string"})),
        [item, ..] if is_position(item) => SchemaLookup::Unknown,
        _ => SchemaLookup::Missing { known_keys: Vec::new() },
    }
}

/// The step's own schema comes first, then the tool's.
fn result_of_call(sketch: &PlanSketch<'_>, call: &PlannedCall, own: Option<&Value>, path: &[String]) -> SchemaLookup {
    let own = own.map_or(SchemaLookup::Unknown, |schema| sketch.look_up(schema, path));
    let output = sketch.tool(call).and_then(|tool| tool.output.as_deref());
    match (own, output) {
        (SchemaLookup::Unknown | SchemaLookup::Undeclared { .. }, Some(schema)) => sketch.look_up(schema, path),
        (own, _) => own,
    }
}

fn parameter(parameters: &Map<String, Value>, path: &[String]) -> SchemaLookup {
    let Some((name, rest)) = path.split_first() else {
        return SchemaLookup::Known(json!({"type": "object"}));
    };
    match parameters.get(name) {
        None => SchemaLookup::Missing { known_keys: parameters.keys().cloned().collect() },
        Some(Value::Object(inner)) if !rest.is_empty() && !inner.contains_key("secret") => parameter(inner, rest),
        Some(Value::Number(_)) if rest.is_empty() => SchemaLookup::Known(json!({"type": "number"})),
        Some(Value::Bool(_)) if rest.is_empty() => SchemaLookup::Known(json!({"type": "boolean"})),
        Some(_) => SchemaLookup::Unknown,
    }
}

/// The schema of an item of the list, at any position.
fn item(
    sketch: &PlanSketch<'_>,
    step: &Step,
    role: ExpressionRole,
    site: &CallSite<'_>,
    path: &[String],
) -> SchemaLookup {
    let Some(list) = step.for_each.as_ref().and_then(|fan_out| fan_out.items.path()) else {
        return SchemaLookup::Unknown;
    };
    if list.first().is_some_and(|root| root == "item") {
        return SchemaLookup::Unknown;
    }
    let path: Vec<String> = list.iter().cloned().chain(["0".to_owned()]).chain(path.iter().cloned()).collect();
    match lookup(sketch, step, role, site, &path) {
        // A list that does not exist at all is reported where it is read.
        SchemaLookup::Missing { known_keys } if known_keys.is_empty() => SchemaLookup::Unknown,
        other => other,
    }
}

fn is_position(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}
