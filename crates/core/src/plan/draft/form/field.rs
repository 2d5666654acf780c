//! The kinds of fields a plan has, as JSON Schemas.

use super::FormFields;
use crate::limits::{NAME_CHARS_MAX, PLAN_STEPS_MAX, TEXT_BYTES_MAX};
use crate::time::Millis;
use serde_json::{Map, Value, json};

pub(super) fn object(what: &str, required: &[&str], fields: FormFields) -> Value {
    let properties: Map<String, Value> = fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
    json!({
        "description": what, "type": "object", "required": required,
        "properties": properties, "additionalProperties": false,
    })
}

pub(super) fn described(mut schema: Value, what: &str) -> Value {
    schema["description"] = json!(what);
    schema
}

pub(super) fn text(what: &str) -> Value {
    json!({ "description": what, "type": "string", "maxLength": TEXT_BYTES_MAX })
}

/// A text that must not be blank.
pub(super) fn filled(what: &str) -> Value {
    json!({ "description": what, "type": "string", "pattern": r"\S" })
}

pub(super) fn name(what: &str) -> Value {
    json!({ "description": what, "type": "string", "pattern": r"\S", "maxLength": NAME_CHARS_MAX })
}

pub(super) fn step_id(what: &str) -> Value {
    let pattern = "^[A-Za-z][A-Za-z0-9_-]*$";
    json!({ "description": what, "type": "string", "pattern": pattern, "maxLength": NAME_CHARS_MAX })
}

pub(super) fn tool(what: &str) -> Value {
    let pattern = r"^[A-Za-z0-9_/-]+(\.[A-Za-z0-9_/-]+)+$";
    json!({ "description": what, "type": "string", "pattern": pattern, "maxLength": NAME_CHARS_MAX })
}

pub(super) fn expression(what: &str) -> Value {
    filled(&format!("{what} An expression."))
}

pub(super) fn flag(what: &str, default: bool) -> Value {
    json!({ "description": what, "type": "boolean", "default": default })
}

pub(super) fn any_object(what: &str) -> Value {
    json!({ "description": what, "type": "object" })
}

pub(super) fn whole(what: &str, min: i64, max: i64, default: Option<i64>) -> Value {
    let mut schema = json!({ "description": what, "type": "integer", "minimum": min, "maximum": max });
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    schema
}

pub(super) fn count(what: &str, default: u32, max: u32) -> Value {
    whole(what, 1, i64::from(max), Some(i64::from(default)))
}

pub(super) fn span(what: &str, max: Millis, default: Option<Millis>) -> Value {
    let what = format!("{what} At most {max}.");
    let mut schema = json!({ "description": what, "type": "string", "pattern": r"^\s*([0-9]+(ms|s|m|h|d))+\s*$" });
    if let Some(default) = default {
        schema["default"] = json!(default.to_string());
    }
    schema
}

/// An empty `default` means that the default depends on other fields.
pub(super) fn words<T>(what: &str, words: &[(&'static str, T)], default: &str) -> Value {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let mut schema = json!({ "description": what, "type": "string", "enum": words });
    if !default.is_empty() {
        schema["default"] = json!(default);
    }
    schema
}

pub(super) fn unbounded(what: &str, items: Value) -> Value {
    json!({ "description": what, "type": "array", "items": items })
}

pub(super) fn list(what: &str, items: Value, max: usize) -> Value {
    json!({ "description": what, "type": "array", "items": items, "maxItems": max })
}

pub(super) fn steps(of: &str) -> Value {
    let items = json!({ "$ref": format!("#/$defs/{of}") });
    json!({
        "description": "The steps of the plan.", "type": "array", "items": items,
        "minItems": 1, "maxItems": PLAN_STEPS_MAX,
    })
}

pub(super) fn reference(what: &str, to: &str) -> Value {
    json!({ "description": what, "$ref": format!("#/$defs/{to}") })
}

/// A short form, or an object with options.
pub(super) fn either(what: &str, short: Value, to: &str) -> Value {
    json!({ "description": what, "anyOf": [short, { "$ref": format!("#/$defs/{to}") }] })
}
