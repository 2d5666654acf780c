//! The canonical form of a JSON value: equal values have one text, however they were written.
//!
//! Keys are sorted and numbers are written by value, so `1`, `1.0` and `1e0` are the same. Digests of requests and the
//! comparison of plans are made over this form.

use serde_json::{Number, Value};
use std::fmt::Write;

/// Above this, an integer in floating point is no longer exact and stays as it was written.
const WHOLE_MAX: f64 = 18_446_744_073_709_551_616.0;

/// Returns the canonical text of a value.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

/// The depth is bounded by the readers of JSON.
fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => write_plain(value, text),
        Value::Number(number) => write_number(number, text),
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_value(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (at, (name, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_plain(&Value::String(name.clone()), text);
                text.push(':');
                write_value(value, text);
            }
            text.push('}');
        }
    }
}

fn write_number(number: &Number, text: &mut String) {
    match number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < WHOLE_MAX) {
        // Exact: the number is whole and fits.
        Some(whole) => write_plain(&(whole as i128), text),
        None => write_plain(number, text),
    }
}

fn write_plain(value: &dyn std::fmt::Display, text: &mut String) {
    write!(text, "{value}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(text: &str) -> String {
        canonical(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn equal_values_have_one_text() {
        for (one, other) in [
            (r#"{"a":1,"b":[2,{"d":1,"c":2}]}"#, r#"{ "b": [2.0, {"c":2e0,"d":1}], "a": 1.0 }"#),
            ("-0.0", "0"),
            ("1e3", "1000"),
            ("9007199254740993", "9007199254740993"),
            ("10000000000000000000.0", "10000000000000000000"),
        ] {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn different_values_have_different_texts() {
        for (one, other) in [
            ("1", "1.5"),
            ("1", "\"1\""),
            ("null", "\"null\""),
            ("[]", "{}"),
            ("[1,2]", "[2,1]"),
            ("9007199254740993", "9007199254740992"),
        ] {
            assert_ne!(of(one), of(other), "{one} {other}");
        }
        assert_ne!(canonical(&json!({ "a": null })), canonical(&json!({})));
        assert_eq!(canonical(&json!({ "b": "\"\n", "a": 0.5 })), r#"{"a":0.5,"b":"\"\n"}"#);
    }
}
