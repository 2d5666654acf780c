//! Bounds the size of results: how much of a list fits, and what replaces a long value.

use rutter_app::terse::{bytes, shortened};
use serde_json::{Map, Value};

/// Size limit of one item of a list.
const ITEM_BYTES_MAX: usize = 2_000;
/// In an item that is too large, longer fields are shortened.
const FIELD_BYTES_MAX: usize = 300;

/// How many items from the first on fit; at least one, so that every page makes progress.
pub(crate) fn fitting(items: &[Value], room: usize) -> usize {
    let mut used = 0;
    let fits = |item: &&Value| {
        used += bytes(*item) + 1;
        used <= room
    };
    items.iter().take_while(fits).count().max(1).min(items.len())
}

/// An item without nulls, whose long values are left to its resource.
pub(crate) fn compact(value: Value) -> Value {
    let mut value = without_nulls(value);
    if bytes(&value) > ITEM_BYTES_MAX {
        shorten(&mut value);
    }
    value
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect()),
        value => value,
    }
}

fn shorten(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    for value in fields.values_mut().filter(|value| bytes(value) > FIELD_BYTES_MAX) {
        match value {
            Value::Object(inner) if is_record(inner) => shorten(value),
            _ => *value = shortened(value, FIELD_BYTES_MAX),
        }
    }
}

/// A small object, for which shortening each field is enough.
fn is_record(fields: &Map<String, Value>) -> bool {
    fields.len() <= 10 && fields.keys().all(|key| key.len() <= 40)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_value_is_shortened_and_short_ones_stay() {
        let item = compact(json!({ "seq": 3, "none": null, "event": { "part": "a", "result": "x".repeat(9_000),
            "list": vec![1; 5_000] } }));
        assert!(bytes(&item) < ITEM_BYTES_MAX, "{item}");
        assert_eq!((&item["seq"], &item["event"]["part"]), (&json!(3), &json!("a")));
        assert!(item.get("none").is_none());
        let nested = compact(json!({ "a": { "b": { "c": vec!["é".repeat(400); 90] } } }));
        assert!(bytes(&nested) < ITEM_BYTES_MAX, "{nested}");
    }

    #[test]
    fn as_many_as_fit_and_never_none() {
        let items = vec![json!("12345678"); 4];
        assert_eq!([0, 11, 22, 32, 33, 100].map(|room| fitting(&items, room)), [1, 1, 2, 2, 3, 4]);
        assert_eq!(fitting(&[], 10), 0);
    }
}
