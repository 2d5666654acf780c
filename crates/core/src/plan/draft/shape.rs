//! Recognises the shape of a plan document.

use super::DraftShape;
use serde_json::{Map, Value};

impl DraftShape {
    /// Returns the shape of a plan.
    ///
    /// - Numbered: some step has a `step_number`, or the plan has `selected_tools`.
    /// - Flat: the plan has no ordering fields. It has only the fields of the earlier journal server
    ///   (`name`, `description`, `steps`; in a step `id`, `name`, `tool`, `parameters`, `cancellable`,
    ///   `failure_policy`, `cancellation`), and no parameter refers to another step.
    /// - Native: everything else, also with a mistyped field, so that hints refer to the documented form.
    pub(super) fn of(plan: &Map<String, Value>) -> DraftShape {
        let steps = plan.get("steps").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut steps = steps.iter().filter_map(Value::as_object);
        if plan.contains_key("selected_tools") || steps.clone().any(|step| step.contains_key("step_number")) {
            return DraftShape::Numbered;
        }
        let has_only =
            |fields: &Map<String, Value>, names: &[&str]| fields.keys().all(|name| names.contains(&name.as_str()));
        let flat = has_only(plan, PLAN_FIELDS)
            && steps.all(|step| has_only(step, STEP_FIELDS) && !step.get("parameters").is_some_and(refers_to_a_step));
        if flat { DraftShape::Flat } else { DraftShape::Native }
    }

    pub(super) fn id_key(self) -> &'static str {
        if self == DraftShape::Numbered { "step_number" } else { "id" }
    }

    pub(super) fn tool_key(self) -> &'static str {
        if self == DraftShape::Numbered { "tool_name" } else { "tool" }
    }

    pub(super) fn compensation_key(self) -> &'static str {
        if self == DraftShape::Flat { "cancellation" } else { "compensation" }
    }
}

const PLAN_FIELDS: &[&str] = &["$schema", "name", "description", "steps"];
const STEP_FIELDS: &[&str] = &["id", "name", "tool", "parameters", "cancellable", "failure_policy", "cancellation"];

/// Whether the plan is in a `plan` field, as the tools of the earlier journal server expected.
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
