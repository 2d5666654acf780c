//! The expected response to some bytes, derived from the bytes alone.

use serde_json::Value;

/// The expected response. Over HTTP a status from 400 to 499 is accepted for each of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Due {
    /// One response with this id.
    Named(Value),
    /// One error without an id: the sender cannot be identified.
    Nameless,
    /// Nothing: it is not a request.
    Silence,
}

pub fn due(bytes: &[u8]) -> Due {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Due::Silence;
    }
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(bytes) else { return Due::Nameless };
    let is_ours = fields.get("jsonrpc").is_some_and(|version| version == "2.0");
    let is_answer = fields.contains_key("result") || fields.contains_key("error");
    let has_params = fields.get("params").is_none_or(|params| params.is_object() || params.is_null());
    let method = fields.get("method");
    let is_named = method.and_then(Value::as_str).is_some_and(|method| !method.is_empty());
    match fields.get("id") {
        Some(Value::Null) if fields.contains_key("error") => Due::Silence,
        Some(id) if id.is_string() || id.is_i64() => match is_ours && method.is_none() && is_answer && has_params {
            true => Due::Silence,
            false => Due::Named(id.clone()),
        },
        Some(_) => Due::Nameless,
        None if is_ours && has_params && (is_named || (method.is_none() && is_answer)) => Due::Silence,
        None => Due::Nameless,
    }
}
