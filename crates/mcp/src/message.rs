//! Parses messages from clients. Invalid ones get an error response with the id they have.

use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, CompleteRequestParams, ErrorCode,
    GetPromptRequestParams, GetTaskParams, InitializeRequestParams, PaginatedRequestParams, ReadResourceRequestParams,
    SubscribeRequestParams, SubscriptionsListenRequestParams, UnsubscribeRequestParams, UpdateTaskParams,
};
use rutter_core::plan::document::ambiguities;
use rutter_core::plan::document::embedded::keep_text;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The error for a second request with the id of an open one.
pub(crate) const REPEATED: &str = "another request with this id has no answer yet";

/// Why a message is invalid, and its id, if it has one.
#[derive(Debug)]
pub(crate) struct InvalidMessage {
    id: Value,
    code: ErrorCode,
    message: String,
}

impl InvalidMessage {
    pub(crate) fn of(id: Value, code: ErrorCode, message: impl Into<String>) -> InvalidMessage {
        InvalidMessage { id, code, message: message.into() }
    }

    pub(crate) fn answer(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id, "error": { "code": self.code.0, "message": self.message } })
    }
}

/// Strips a byte order mark.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// The message with the plan of a tool call as its exact text: the library's reader keeps the last of two equal keys, and
/// the strict reader must see what the author wrote. What this returns is for the library: `read` judges what was sent,
/// because a message that was written anew has lost its ambiguities.
pub(crate) fn with_exact_plan(bytes: &[u8]) -> Cow<'_, [u8]> {
    // The name of the field may be written with escapes.
    let has_plan = || [PLAN_FIELD, b"\\u"].iter().any(|part| bytes.windows(part.len()).any(|found| found == *part));
    let read = || serde_json::from_slice::<Value>(bytes).ok().filter(|message| message["method"] == "tools/call");
    match has_plan().then(read).flatten() {
        None => Cow::Borrowed(bytes),
        Some(mut message) => {
            keep_text(bytes, &mut message, PLAN_PATH);
            Cow::Owned(message.to_string().into_bytes())
        }
    }
}

const PLAN_FIELD: &[u8] = b"\"plan\"";
const PLAN_PATH: &[&str] = &["params", "arguments", "plan"];

/// What two readers could read differently in the arguments of a tool call. A plan has its own reader, which reports all
/// its mistakes at once.
fn ambiguity(bytes: &[u8]) -> Option<String> {
    let is_judged = |pointer: &str| match pointer.strip_prefix("/params") {
        Some(rest) => !rest.starts_with("/_meta") && !rest.starts_with("/arguments/plan/"),
        None => false,
    };
    let found = ambiguities(bytes).into_iter().find(|found| is_judged(&found.pointer))?;
    Some(format!("{} at {}; nothing was done", found.message, found.pointer))
}

/// Reads the bytes that a client sent, and keeps the plan of a tool call as its exact text. `None` for messages that need
/// no response and mean nothing.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<ClientJsonRpcMessage>, InvalidMessage> {
    let bytes = without_mark(bytes);
    let mut value: Value = serde_json::from_slice(bytes).map_err(|error| {
        InvalidMessage::of(Value::Null, ErrorCode::PARSE_ERROR, format!("this is not JSON: {error}"))
    })?;
    let invalid = |message: &str| InvalidMessage::of(Value::Null, ErrorCode::INVALID_REQUEST, message);
    let Value::Object(fields) = &value else {
        return Err(invalid("a message is one JSON object; batches are not part of the protocol"));
    };
    let id = match fields.get("id") {
        None => None,
        Some(id) if id.is_string() || id.is_i64() => Some(id.clone()),
        // An error response to an unreadable message has no id.
        Some(Value::Null) if fields.contains_key("error") => return Ok(None),
        Some(_) => return Err(invalid("id must be a text or an integer")),
    };
    let wrong = |code: ErrorCode, message: &str| InvalidMessage::of(id.clone().unwrap_or_default(), code, message);
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(wrong(ErrorCode::INVALID_REQUEST, "jsonrpc must be \"2.0\""));
    }
    match fields.get("method") {
        Some(Value::String(method)) if !method.is_empty() => {}
        Some(_) => return Err(wrong(ErrorCode::INVALID_REQUEST, "method must be the name of a method")),
        None if fields.contains_key("result") || fields.contains_key("error") => {}
        None => {
            return Err(wrong(ErrorCode::INVALID_REQUEST, "a message has a method, a result or an error"));
        }
    }
    if fields.get("params").is_some_and(|params| !params.is_object() && !params.is_null()) {
        return Err(wrong(ErrorCode::INVALID_PARAMS, "params must be an object"));
    }
    let is_request = id.is_some() && fields.contains_key("method");
    // The library ignores invalid values of optional parameters.
    let listed = fields.get("method").and_then(Value::as_str).filter(|method| LISTS.contains(method));
    if let (Some(method), Some(params @ Value::Object(_))) = (listed, fields.get("params"))
        && let Some(why) = why::<PaginatedRequestParams>(params)
    {
        return Err(wrong(ErrorCode::INVALID_PARAMS, &format!("invalid params of {method}: {why}")));
    }
    let is_call = fields.get("method").is_some_and(|method| method == "tools/call");
    if let Some(why) = is_call.then(|| ambiguity(bytes)).flatten() {
        return Err(wrong(ErrorCode::INVALID_PARAMS, &why));
    }
    // The id is this server's, so the error names none: the client could take it for the answer to a request of its own.
    if !fields.contains_key("method")
        && let Some(found) = ambiguities(bytes).iter().find(|found| found.pointer.starts_with("/result"))
    {
        return Err(invalid(&format!("{} at {}; send the response again", found.message, found.pointer)));
    }
    if is_call {
        keep_text(bytes, &mut value, PLAN_PATH);
    }
    let is_modern = value.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some();
    match serde_json::from_value(value) {
        Ok(message) => match protocol_mistake(&message, is_modern) {
            Some(why) => Err(wrong(ErrorCode::INVALID_PARAMS, &why)),
            None => Ok(Some(message)),
        },
        Err(error) if is_request => Err(wrong(ErrorCode::INVALID_PARAMS, &error.to_string())),
        // An unknown notification or response.
        Err(error) => {
            tracing::debug!("ignored an unreadable notification or response: {error}");
            Ok(None)
        }
    }
}

const LISTS: &[&str] = &["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/// Methods of legacy protocol versions. Modern requests, which name their version, get "method not found".
const LEGACY_METHODS: &[&str] =
    &["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// What is wrong with the parameters of a protocol method. The library takes such a request for a custom one and would
/// answer "method not found".
fn protocol_mistake(message: &ClientJsonRpcMessage, is_modern: bool) -> Option<String> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::CustomRequest(custom) = &request.request else { return None };
    if is_modern && LEGACY_METHODS.contains(&custom.method.as_str()) {
        return None;
    }
    let params = custom.params.as_ref().unwrap_or(&Value::Null);
    let why = match custom.method.as_str() {
        "initialize" => why::<InitializeRequestParams>(params),
        "tools/call" => why::<CallToolRequestParams>(params),
        "prompts/get" => why::<GetPromptRequestParams>(params),
        "resources/read" => why::<ReadResourceRequestParams>(params),
        "resources/subscribe" => why::<SubscribeRequestParams>(params),
        "resources/unsubscribe" => why::<UnsubscribeRequestParams>(params),
        "subscriptions/listen" => why::<SubscriptionsListenRequestParams>(params),
        "completion/complete" => why::<CompleteRequestParams>(params),
        "tasks/get" | "tasks/cancel" => why::<GetTaskParams>(params),
        "tasks/update" => why::<UpdateTaskParams>(params),
        "ping" | "server/discover" | "logging/setLevel" => None,
        _ => return None,
    };
    let why = why.unwrap_or_else(|| "they do not match the protocol".to_owned());
    Some(format!("invalid params of {}: {why}", custom.method))
}

fn why<P: DeserializeOwned>(params: &Value) -> Option<String> {
    P::deserialize(params).err().map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_methods_do_not_exist_for_modern_clients() {
        let version = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
        for method in LEGACY_METHODS {
            let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": version } });
            assert!(read(message.to_string().as_bytes()).unwrap().is_some(), "{method}");
        }
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "_meta": version } });
        assert_eq!(read(call.to_string().as_bytes()).unwrap_err().code, ErrorCode::INVALID_PARAMS);
    }

    #[test]
    fn arguments_that_two_readers_could_read_differently_are_refused() {
        let call = |arguments: &str| {
            let params = format!("{{\"name\":\"call_tool\",\"arguments\":{arguments}}}");
            format!("{{\"jsonrpc\":\"2.0\",\"id\":12345678901234567,\"method\":\"tools/call\",\"params\":{params}}}")
        };
        for arguments in [
            r#"{"parameters":{"amount":1,"amount":1000}}"#,
            r#"{"parameters":{"amount":123456789012345678901234567890}}"#,
            r#"{"steps":[{"id":"a","id":"b"}]}"#,
            r#"{"plan":{},"pl\u0061n":{}}"#,
        ] {
            let wrong = read(call(arguments).as_bytes()).unwrap_err();
            assert_eq!(
                (wrong.id, wrong.code),
                (json!(12345678901234567_i64), ErrorCode::INVALID_PARAMS),
                "{arguments}"
            );
        }
        let response = r#"{"jsonrpc":"2.0","id":3,"result":{"content":{"approve":false,"approve":true}}}"#;
        let wrong = read(response.as_bytes()).unwrap_err();
        assert_eq!((wrong.id, wrong.code), (Value::Null, ErrorCode::INVALID_REQUEST));
        // The reader of plans reports these, with everything else that is wrong with the plan.
        let escaped = call(r#"{"pl\u0061n":{"name":"a","name":"b"}}"#);
        assert!(read(escaped.as_bytes()).is_ok());
        let exact: Value = serde_json::from_slice(&with_exact_plan(escaped.as_bytes())).unwrap();
        assert_eq!(exact["params"]["arguments"]["plan"], r#"{"name":"a","name":"b"}"#);
    }

    #[test]
    fn an_invalid_message_is_answered_with_its_id() {
        let request = |rest: &str| format!("{{\"jsonrpc\":\"2.0\",{rest}}}");
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        for (line, id, code) in [
            ("{".to_owned(), json!(null), -32700),
            ("\u{0}".to_owned(), json!(null), -32700),
            (deep, json!(null), -32700),
            ("[]".to_owned(), json!(null), -32600),
            ("7".to_owned(), json!(null), -32600),
            ("{\"id\":1,\"method\":\"ping\"}".to_owned(), json!(1), -32600),
            (request("\"id\":1.5,\"method\":\"ping\""), json!(null), -32600),
            (request("\"id\":null,\"method\":\"ping\""), json!(null), -32600),
            (request("\"id\":{},\"method\":\"ping\""), json!(null), -32600),
            (request("\"id\":1,\"method\":7"), json!(1), -32600),
            (request("\"id\":\"a\""), json!("a"), -32600),
            (request("\"id\":2,\"method\":\"ping\",\"params\":[]"), json!(2), -32602),
            (request("\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":7}"), json!(3), -32602),
            (request("\"id\":4,\"method\":\"tools/list\",\"params\":{\"cursor\":7}"), json!(4), -32602),
            (request("\"id\":5,\"method\":\"initialize\",\"params\":{}"), json!(5), -32602),
        ] {
            let wrong = read(line.as_bytes()).unwrap_err();
            assert_eq!((wrong.id, wrong.code.0), (id, code), "{line}");
        }
        for rest in [
            "\"id\":1,\"method\":\"ping\"",
            "\"method\":\"notifications/initialized\"",
            "\"id\":1,\"method\":\"of/their/own\",\"params\":{\"a\":1}",
        ] {
            assert!(read(request(rest).as_bytes()).unwrap().is_some(), "{rest}");
        }
        assert!(read(format!("\u{feff}{}", request("\"id\":1,\"method\":\"ping\"")).as_bytes()).is_ok());
    }
}
