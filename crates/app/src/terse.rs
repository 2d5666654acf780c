//! Compact answers: short schemas, and lists limited in bytes.

use rutter_core::text::cut;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

/// The schema of a list of objects, without their fields.
pub fn rows(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "object" } })
}

pub fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

pub fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string" })
}

/// As many rows as fit into `bytes_max`.
pub fn fitting(rows: impl IntoIterator<Item = Value>, bytes_max: usize) -> Vec<Value> {
    let mut left = bytes_max;
    let mut stored = Vec::new();
    for row in rows {
        let Some(rest) = left.checked_sub(bytes(&row) + 1) else { break };
        left = rest;
        stored.push(row);
    }
    stored
}

/// The length as JSON.
pub fn bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

/// The value itself, or the beginning of its text if it is too long.
pub fn shortened(value: &Value, bytes_max: usize) -> Value {
    if bytes(value) <= bytes_max {
        return value.clone();
    }
    let text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let mut chars_max = bytes_max.saturating_sub(8);
    loop {
        let short = Value::String(cut(&text, chars_max));
        if chars_max == 0 || bytes(&short) <= bytes_max {
            return short;
        }
        // Some characters have several bytes, and quotation marks are escaped.
        chars_max = chars_max * 3 / 4;
    }
}
