//! Tells in which of the accepted ways a plan is written.

use super::Shape;
use serde_json::{Map, Value};

impl Shape {
    /// Tells the shape of a plan.
    ///
    /// - Numbered: some step has a `step_number`, or the plan has `selected_tools`.
    /// - Flat: nothing in the plan speaks of order. It has only the fields of the earlier journal server
    ///   (`name`, `description`, `steps`; in a step `id`, `name`, `tool`, `parameters`, `cancellable`,
    ///   `failure_policy`, `cancellation`), and no parameter refers to another step.
    /// - Native: everything else, also what has a mistyped field, so that the advice is about our own form.
    pub(super) fn of(plan: &Map<String, Value>) -> Shape {
        let steps = plan.get("steps").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut steps = steps.iter().filter_map(Value::as_object);
        if plan.contains_key("selected_tools") || steps.clone().any(|step| step.contains_key("step_number")) {
            return Shape::Numbered;
        }
        let has_only = |fields: &Map<String, Value>, names: &[&str]| {
            fields.keys().all(|name| names.contains(&name.as_str()))
        };
        let flat = has_only(plan, PLAN_FIELDS)
            && steps.all(|step| {
                has_only(step, STEP_FIELDS) && !step.get("parameters").is_some_and(refers_to_a_step)
            });
        if flat { Shape::Flat } else { Shape::Native }
    }

    pub(super) fn id_key(self) -> &'static str {
        if self == Shape::Numbered { "step_number" } else { "id" }
    }

    pub(super) fn tool_key(self) -> &'static str {
        if self == Shape::Numbered { "tool_name" } else { "tool" }
    }

    pub(super) fn compensation_key(self) -> &'static str {
        if self == Shape::Flat { "cancellation" } else { "compensation" }
    }
}

const PLAN_FIELDS: &[&str] = &["$schema", "name", "description", "steps"];
const STEP_FIELDS: &[&str] =
    &["id", "name", "tool", "parameters", "cancellable", "failure_policy", "cancellation"];

/// Whether the plan stands in a `plan` field, as the tools of the earlier journal server took it.
pub(super) fn is_wrapped(fields: &Map<String, Value>) -> bool {
    fields.get("plan").is_some_and(Value::is_object) && !fields.contains_key("steps")
}

fn refers_to_a_step(parameters: &Value) -> bool {
    let mut open = vec![parameters];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if text.contains("{{") && text.contains("steps") => return true,
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values()),
            _ => {}
        }
    }
    false
}
