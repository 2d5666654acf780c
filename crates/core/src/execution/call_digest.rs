//! What a denial binds: one call, however it is written and whichever step makes it.
//!
//! The idempotency key is another one for every step, so nothing that comes from it may count: neither what an expression
//! makes of it, nor a text that holds it. Such places are left out, and a denial remembers which they were.

use crate::canonical::canonical;
use crate::hash::Hash;
use crate::id::ToolName;
use serde_json::Value;

/// The digits of a key in hex.
const KEY_DIGITS: usize = 64;

/// Over the tool and its parameters, which are without the idempotency key.
pub(super) fn digest(tool: &ToolName, parameters: &Value) -> Hash {
    Hash::of_fields("rutter/denied/v1", &[tool.as_str().as_bytes(), canonical(parameters).as_bytes()])
}

/// The parameters with the key left out of every text: what journals of earlier versions have a digest of.
pub(super) fn without_key(parameters: &Value, key: Hash) -> Value {
    let key = key.to_string();
    fn strip(value: &Value, key: &str) -> Value {
        match value {
            Value::String(text) => Value::String(text.replace(key, "")),
            Value::Array(items) => Value::Array(items.iter().map(|item| strip(item, key)).collect()),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(name, value)| (name.clone(), strip(value, key))).collect())
            }
            other => other.clone(),
        }
    }
    strip(parameters, &key)
}

/// The parameters without what stands at these places (JSON Pointers): fields are gone, items of a list are null.
pub(super) fn without<'a>(parameters: &Value, places: impl IntoIterator<Item = &'a String>) -> Value {
    let mut parameters = parameters.clone();
    for place in places {
        let Some((parent, name)) = place.rsplit_once('/') else { return Value::Null };
        match parameters.pointer_mut(parent) {
            Some(Value::Object(fields)) => drop(fields.shift_remove(&name.replace("~1", "/").replace("~0", "~"))),
            Some(Value::Array(items)) => {
                let item = name.parse().ok().and_then(|at: usize| items.get_mut(at));
                item.into_iter().for_each(|item| *item = Value::Null);
            }
            _ => {}
        }
    }
    parameters
}

/// The places of the texts that hold a key, in lower or upper case.
pub(super) fn places_of_keys(parameters: &Value, is_key: &mut dyn FnMut(&str) -> bool) -> Vec<String> {
    fn visit(value: &Value, place: &str, is_key: &mut dyn FnMut(&str) -> bool, found: &mut Vec<String>) {
        match value {
            Value::String(text) if holds_key(text, is_key) => found.push(place.to_owned()),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    visit(item, &format!("{place}/{at}"), is_key, found);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    visit(value, &format!("{place}/{name}"), is_key, found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    visit(parameters, "", is_key, &mut found);
    found
}

fn holds_key(text: &str, is_key: &mut dyn FnMut(&str) -> bool) -> bool {
    let runs = text.split(|character: char| !character.is_ascii_hexdigit()).filter(|run| run.len() >= KEY_DIGITS);
    runs.map(str::to_ascii_lowercase)
        .any(|run| (0..=run.len() - KEY_DIGITS).any(|start| is_key(&run[start..start + KEY_DIGITS])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_digest_knows_neither_the_order_of_keys_nor_the_form_of_a_number() {
        let tool = ToolName::new("t.charge");
        let one = digest(&tool, &json!({"amount": 1, "to": {"b": [2.50], "a": null}}));
        assert_eq!(one, digest(&tool, &json!({"to": {"a": null, "b": [2.5]}, "amount": 1.0})));
        assert_ne!(one, digest(&tool, &json!({"amount": "1", "to": {"b": [2.5], "a": null}})));
        assert_ne!(one, digest(&ToolName::new("t.other"), &json!({"amount": 1, "to": {"b": [2.5], "a": null}})));
        assert_eq!(digest(&tool, &json!(-0.0)), digest(&tool, &json!(0)));
    }

    #[test]
    fn the_key_is_left_out_wherever_it_stands() {
        let key = Hash::of(&[b"key"]);
        let parameters = json!({"key": key.to_string(), "note": [format!("of {key}")]});
        assert_eq!(without_key(&parameters, key), json!({"key": "", "note": ["of "]}));
    }

    #[test]
    fn what_holds_a_key_is_left_out_in_every_case_and_nothing_else_is() {
        let key = Hash::of(&[b"key"]).to_string();
        let other = Hash::of(&[b"a checksum"]).to_string();
        let parameters = json!({
            "amount": 1, "a/b": key.to_uppercase(), "list": [other, format!("no-{key}{key}")], "deep": {"~": key}
        });
        let places = places_of_keys(&parameters, &mut |text| text == key);
        assert_eq!(places, ["/a~1b", "/list/1", "/deep/~0"]);
        let left = without(&parameters, &places);
        assert_eq!(left, json!({"amount": 1, "list": [other, null], "deep": {}}));
        assert_eq!(without(&left, &places), left, "what is not there needs not to be left out");
        assert_eq!(without(&parameters, &[String::new()]), json!(null));
    }
}
