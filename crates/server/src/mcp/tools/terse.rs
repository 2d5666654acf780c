//! Answers in few bytes: short schemas, and lists that end before they grow too long.

use crate::words::cut;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

/// The schema of a list of objects; what is in them shows itself.
pub(crate) fn rows(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "object" } })
}

pub(crate) fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

pub(crate) fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string" })
}

/// As many rows as fit into so many bytes.
pub(crate) fn fitting(rows: impl IntoIterator<Item = Value>, bytes_max: usize) -> Vec<Value> {
    let mut left = bytes_max;
    let mut kept = Vec::new();
    for row in rows {
        let Some(rest) = left.checked_sub(bytes(&row) + 1) else { break };
        left = rest;
        kept.push(row);
    }
    kept
}

/// How long it is as JSON.
pub(crate) fn bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

/// A value as it is, or the beginning of its text when that is too long.
pub(crate) fn shortened(value: &Value, bytes_max: usize) -> Value {
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
        // Some characters have several bytes, and quotation marks get a stroke before them.
        chars_max = chars_max * 3 / 4;
    }
}
