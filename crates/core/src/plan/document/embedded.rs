//! The exact bytes of a plan that is part of a larger JSON text, such as the body of a request.
//!
//! A general JSON reader keeps the last of two equal keys and rounds large integers; the plan must be read from what its
//! author wrote.

use serde_json::Value;

/// Replaces the object at `path` by its exact text, so that the strict reader sees what was written. `bytes` is the
/// JSON text that `value` was read from.
pub fn keep_text(bytes: &[u8], value: &mut Value, path: &[&str]) {
    let found = path.iter().try_fold(value, |value, name| value.get_mut(*name));
    if let Some(found @ Value::Object(_)) = found
        && let Some(text) = bytes_at(bytes, path).and_then(|bytes| std::str::from_utf8(bytes).ok())
    {
        *found = Value::String(text.to_owned());
    }
}

/// The same for the object at `field` of every item of the list at `path`.
pub fn keep_texts(bytes: &[u8], value: &mut Value, path: &[&str], field: &str) {
    let found = path.iter().try_fold(value, |value, name| value.get_mut(*name));
    let texts = bytes_at(bytes, path).and_then(items);
    if let (Some(Value::Array(found)), Some(texts)) = (found, texts) {
        for (item, text) in found.iter_mut().zip(texts) {
            keep_text(text, item, &[field]);
        }
    }
}

/// Returns the bytes of every item of a list.
fn items(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut items = Vec::new();
    let mut at = skip_space(text, 1);
    while !matches!(text.get(at)?, b']') {
        let end = end_of(text, at)?;
        items.push(text.get(at..end)?);
        at = skip_space(text, end);
        if text.get(at) == Some(&b',') {
            at = skip_space(text, at + 1);
        }
    }
    Some(items)
}

/// Returns the bytes of the value at a path of field names. The text is valid JSON; of two equal keys the last counts,
/// as for other readers.
fn bytes_at<'a>(text: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    let start = skip_space(text, 0);
    let Some((name, rest)) = path.split_first() else { return text.get(start..end_of(text, start)?) };
    if text.get(start) != Some(&b'{') {
        return None;
    }
    let mut found = None;
    let mut at = skip_space(text, start + 1);
    while text.get(at) == Some(&b'"') {
        let key_end = end_of(text, at)?;
        let key = text.get(at..key_end)?;
        // The colon.
        let value = skip_space(text, skip_space(text, key_end) + 1);
        let value_end = end_of(text, value)?;
        if serde_json::from_slice::<String>(key).is_ok_and(|key| key == *name) {
            found = text.get(value..value_end);
        }
        // The comma, or the end.
        at = skip_space(text, skip_space(text, value_end) + 1);
    }
    bytes_at(found?, rest)
}

fn skip_space(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Where the value that starts at `start` ends.
fn end_of(text: &[u8], start: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, start);
    loop {
        match text.get(at)? {
            b'"' => {
                at += 1;
                while *text.get(at)? != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => {
                let is_plain = |byte: &&u8| !matches!(byte, b',' | b'}' | b']') && !byte.is_ascii_whitespace();
                return Some(at + text[at..].iter().take_while(is_plain).count());
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(text: &str, path: &[&str]) -> Value {
        let mut value = serde_json::from_str(text).unwrap();
        keep_text(text.as_bytes(), &mut value, path);
        value
    }

    #[test]
    fn an_object_becomes_its_exact_text() {
        let plan = r#"{ "a": 1, "a": [2, {"b": "}\"\\"}], "big": 12345678901234567890123 }"#;
        for text in [
            format!(r#"{{"plan":{plan}}}"#),
            format!(" {{ \"x\": [1, {{\"plan\": {{}}}}], \"plan\" :\n{plan} , \"z\": null }} "),
            format!(r#"{{"plan":{{}},"pl\u0061n":{plan},"t":true}}"#),
        ] {
            assert_eq!(kept(&text, &["plan"])["plan"], json!(plan), "{text}");
        }
        let nested = format!(r#"{{"params":{{"name":"x","arguments":{{"n":-1.5e3,"plan":{plan}}}}}}}"#);
        assert_eq!(kept(&nested, &["params", "arguments", "plan"])["params"]["arguments"]["plan"], json!(plan));
    }

    #[test]
    fn the_objects_of_a_list_become_their_exact_texts() {
        let plan = r#"{ "a": 1, "a": [2, "]"] }"#;
        let text = format!(r#"{{"plans": [ {{"plan":{plan}}} ,7,{{"plan":"x"}},{{"n":[],"plan": {plan}}}], "z": 1}}"#);
        let mut value = serde_json::from_str(&text).unwrap();
        keep_texts(text.as_bytes(), &mut value, &["plans"], "plan");
        assert_eq!(value["plans"], json!([{ "plan": plan }, 7, { "plan": "x" }, { "n": [], "plan": plan }]));
        for text in [r#"{"plans":[]}"#, r#"{"plans":{"plan":{}}}"#, "{}", "[]"] {
            let mut value = serde_json::from_str(text).unwrap();
            keep_texts(text.as_bytes(), &mut value, &["plans"], "plan");
            assert_eq!(value, serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn everything_else_stays() {
        for text in [r#"{"plan":"text"}"#, r#"{"plan":null}"#, r#"{"plan":[{}]}"#, r#"{"other":{}}"#, "[]", "7"] {
            assert_eq!(kept(text, &["plan"]), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
    }
}
