//! Keeping answers small: how much of a list fits, and what stands where a value was too long.

use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value, json};

/// What one item of a list may take.
const ITEM_BYTES_MAX: usize = 2_000;
/// A field of an item that is too large keeps its value up to this.
const FIELD_BYTES_MAX: usize = 300;

/// How an item of a list stands in schemas: what it has is seen at once, and would cost every prompt.
pub(crate) struct Item;

impl JsonSchema for Item {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Item".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

pub(crate) fn bytes_of(value: &Value) -> usize {
    value.to_string().len()
}

/// How many items from the first on fit; at least one, so that a list always goes on.
pub(crate) fn fitting(items: &[Value], room: usize) -> usize {
    let mut used = 0;
    let fits = |item: &&Value| {
        used += bytes_of(item) + 1;
        used <= room
    };
    items.iter().take_while(fits).count().max(1).min(items.len())
}

/// An item whose long values are left to its resource, and without what says nothing.
pub(crate) fn compact(value: Value) -> Value {
    let mut value = without_nulls(value);
    if bytes_of(&value) > ITEM_BYTES_MAX {
        shorten(&mut value);
    }
    value
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        value => value,
    }
}

fn shorten(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    for value in fields.values_mut().filter(|value| bytes_of(value) > FIELD_BYTES_MAX) {
        match value {
            Value::Object(inner) if is_record(inner) => shorten(value),
            Value::String(text) => *value = json!(cut(text, FIELD_BYTES_MAX)),
            _ => *value = json!(format!("{} bytes; read the resource", bytes_of(value))),
        }
    }
}

/// Few fields, so that shortening each of them is enough.
fn is_record(fields: &Map<String, Value>) -> bool {
    fields.len() <= 10 && fields.keys().all(|key| key.len() <= 40)
}

/// A text of at most so many bytes.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    match text.len() <= bytes_max {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(bytes_max)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_makes_way_and_the_short_ones_stay() {
        let item =
            compact(json!({ "seq": 3, "none": null, "event": { "part": "a", "result": "x".repeat(9_000),
            "list": vec![1; 5_000] } }));
        assert!(bytes_of(&item) < ITEM_BYTES_MAX, "{item}");
        assert_eq!((&item["seq"], &item["event"]["part"]), (&json!(3), &json!("a")));
        assert!(item.get("none").is_none());
        let nested = compact(json!({ "a": { "b": { "c": vec!["é".repeat(400); 90] } } }));
        assert!(bytes_of(&nested) < ITEM_BYTES_MAX, "{nested}");
    }

    #[test]
    fn as_many_as_fit_and_never_none() {
        let items = vec![json!("12345678"); 4];
        assert_eq!([0, 11, 22, 32, 33, 100].map(|room| fitting(&items, room)), [1, 1, 2, 2, 3, 4]);
        assert_eq!(fitting(&[], 10), 0);
    }
}
