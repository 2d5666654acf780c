//! The plan reference, generated from the JSON Schema.

use super::{code, row};
use rutter_core::limits::{NAME_CHARS_MAX, PLAN_BYTES_MAX, PLAN_STEPS_MAX};
use rutter_core::plan::draft::schema;
use serde_json::{Map, Value};

const OPENING: &str = "\
# Plan reference

For authors of plans, people and agents: every field of a plan.

Generated from the JSON Schema of plans, which the parser agrees with; `UPDATE_GOLDENS=1 cargo test -p rutter-mcp \
references` regenerates it. A plan is JSON or YAML. Unknown fields are refused, with a suggestion of the one that was \
probably meant. Durations are strings such as `250ms`, `30s`, `5m`, `24h`, `7d` or a sum of them. See \
[expressions.md](expressions.md) for expressions and [errors.md](errors.md) for every mistake a check can report.
";

const SMALLEST: &str = "\
```yaml
name: order-4711
inputs: { type: object, required: [sku], properties: { sku: { type: string } } }
steps:
  - id: reserve
    tool: inventory.reserve
    parameters: { sku: \"{{ inputs.sku }}\", key: \"{{ key }}\" }
    compensation: { tool: inventory.release, parameters: { id: \"{{ result.id }}\" } }
  - id: confirm
    tool: mail.send
    depends_on: [reserve]
    parameters: { text: \"Reserved: {{ steps.reserve.result.id }}\" }
    approval: { required: true }
    cancellable: irreversible
```
";

/// The sections; the last field names another shape whose fields a section shares.
const SECTIONS: &[(&str, &str, Option<&str>)] = &[
    ("Plan", "plan", None),
    ("Step", "step", None),
    ("Retry", "retry", None),
    ("For each", "for_each", None),
    ("Compensation", "compensation", None),
    ("Probe", "probe", None),
    ("Fallback", "fallback", None),
    ("Approval", "approval", None),
    ("Failure policy", "failure_policy", None),
    ("Budget", "budget", None),
    ("Defaults", "defaults", None),
    ("Flat plans", "flat_plan", None),
    ("Steps of flat plans", "flat_step", None),
    ("Numbered plans", "numbered_plan", Some("plan")),
    ("Steps of numbered plans", "numbered_step", Some("step")),
];

/// The plan reference as Markdown.
pub fn plan() -> String {
    let schema = schema();
    let mut text = OPENING.to_owned();
    text.push_str(&format!(
        "\nAt most {PLAN_STEPS_MAX} steps and {} KiB. The smallest useful plan looks like this:\n\n{SMALLEST}",
        PLAN_BYTES_MAX >> 10
    ));
    for (heading, name, like) in SECTIONS {
        let object = &schema["$defs"][*name];
        text.push_str(&format!("\n## {heading}\n\n{}", object["description"].as_str().unwrap_or_default()));
        let like = like.map(|like| (like, &schema["$defs"][like]));
        if let Some((like, _)) = like {
            text.push_str(&format!(" Fields not listed here are those of a [{like}](#{like})."));
        }
        text.push_str("\n\n| field | type | default | meaning |\n|---|---|---|---|\n");
        let known =
            |field: &str, value: &Value| like.is_some_and(|(_, like)| like["properties"].get(field) == Some(value));
        let required = object["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (field, value) in object["properties"].as_object().into_iter().flatten() {
            if known(field, value) {
                continue;
            }
            let is_required = required.iter().any(|name| name == field);
            let default = match value.get("default") {
                Some(Value::String(word)) => code(word),
                Some(value) => code(&value.to_string()),
                None if is_required => "required".to_owned(),
                None => String::new(),
            };
            let meaning = value["description"].as_str().unwrap_or_default().to_owned();
            text.push_str(&row(&[code(field), kind(value), default, meaning]));
        }
    }
    text
}

/// The type of a field as text.
fn kind(value: &Value) -> String {
    let Some(fields) = value.as_object() else { return "any".to_owned() };
    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
        return link(target);
    }
    if let Some(Value::Array(either)) = fields.get("anyOf") {
        return either.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(Value::Array(words)) = fields.get("enum") {
        return words.iter().filter_map(Value::as_str).map(code).collect::<Vec<_>>().join(", ");
    }
    match fields.get("type") {
        Some(Value::String(name)) if name == "array" => {
            let items = fields.get("items").map(kind).unwrap_or_default();
            format!("list of {items}{}", bounds(fields))
        }
        Some(Value::String(name)) => format!("{}{}", plain(name, fields), bounds(fields)),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

fn plain<'a>(name: &'a str, fields: &Map<String, Value>) -> &'a str {
    let is_duration = fields.get("pattern").and_then(Value::as_str).is_some_and(|p| p.contains("ms|s|m"));
    match name {
        "string" if is_duration => "duration",
        "string" => "text",
        "integer" => "whole number",
        "boolean" => "true or false",
        name => name,
    }
}

fn bounds(fields: &Map<String, Value>) -> String {
    let of = |name: &str| fields.get(name).map(ToString::to_string);
    match (of("minimum"), of("maximum"), of("maxLength"), of("maxItems")) {
        (Some(min), Some(max), ..) => format!(", {min} to {max}"),
        (Some(min), None, ..) => format!(", from {min}"),
        (None, _, Some(max), _) if counts_bytes(&max) => format!(", at most {max} bytes"),
        (None, _, Some(max), _) => format!(", at most {max} characters"),
        (None, _, None, Some(max)) => format!(", at most {max}"),
        _ => String::new(),
    }
}

/// Names are limited in characters, longer texts in bytes.
fn counts_bytes(max: &str) -> bool {
    max.parse::<usize>().is_ok_and(|max| max > NAME_CHARS_MAX)
}

fn link(target: &str) -> String {
    let name = target.rsplit('/').next().unwrap_or(target);
    let heading = SECTIONS.iter().find(|(_, of, _)| *of == name).map_or(name, |(heading, ..)| *heading);
    format!("[{}](#{})", heading.to_lowercase(), heading.to_lowercase().replace(' ', "-"))
}
