//! What the answer to a call means: done, not done, or unknown.

use super::connection::McpConnection;
use super::http::{self, RequestReach};
use super::wire::UNREADABLE;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult};
use rmcp::service::ServiceError;
use rutter_core::limits;
use rutter_core::text::cut_bytes;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The result of `tools/call`, in either era: the structured content, or [`plain`]. A tool that declares the schema of
/// its result may return the JSON as its only text, as servers do for older clients.
pub(super) fn of_result(result: Value, declares_output: bool) -> CallOutcome {
    let Value::Object(mut result) = result else {
        return unreadable();
    };
    let (content, has_content) = match result.remove("content") {
        Some(Value::Array(content)) => (content, true),
        _ => (Vec::new(), false),
    };
    if result.get("isError") == Some(&Value::Bool(true)) {
        // The tool itself says that it did not do its work.
        return CallOutcome::NotDone(ToolFailure::new(FailureCategory::ToolError, error_text(&content)));
    }
    let value = match result.remove("structuredContent") {
        Some(structured) if !structured.is_null() => structured,
        // A tool that has nothing to say answers with an empty list.
        _ if !has_content && !result.contains_key("isError") && !is_complete(&result) => {
            return unreadable();
        }
        _ => match only_json(&content) {
            Some(json) if declares_output => json,
            json => plain(content, json),
        },
    };
    CallOutcome::Done { result: Arc::new(value), cost_micros: 0 }
}

/// A JSON-RPC error instead of a result. Only three codes are sent before a tool is reached.
pub(super) fn of_error(error: &ErrorData) -> CallOutcome {
    let failure = |category| ToolFailure::new(category, cut(&error.message));
    match error.code {
        ErrorCode::METHOD_NOT_FOUND => CallOutcome::NotDone(failure(FailureCategory::NotFound)),
        ErrorCode::INVALID_PARAMS => CallOutcome::NotDone(failure(FailureCategory::InvalidInput)),
        ErrorCode::HEADER_MISMATCH => CallOutcome::NotDone(failure(FailureCategory::Protocol)),
        UNREADABLE | ErrorCode::PARSE_ERROR | ErrorCode::INVALID_REQUEST => {
            CallOutcome::Maybe(failure(FailureCategory::Protocol))
        }
        ErrorCode::INTERNAL_ERROR => CallOutcome::Maybe(failure(FailureCategory::Internal)),
        _ => CallOutcome::Maybe(failure(FailureCategory::ToolError)),
    }
}

/// An answer to a call that had ended. A late error of the tool may be what the cancellation made of a half-done call.
pub(super) fn of_late(answer: ServerJsonRpcMessage, declares_output: bool) -> CallOutcome {
    let result = match answer {
        ServerJsonRpcMessage::Response(response) => response.result,
        ServerJsonRpcMessage::Error(error) => return of_error(&error.error),
        _ => return unreadable(),
    };
    let asks = |what: &str| {
        let message = format!("it {what}, after the call had ended");
        CallOutcome::Maybe(ToolFailure::new(FailureCategory::Protocol, message))
    };
    match result {
        ServerResult::InputRequiredResult(_) => return asks("asked for input"),
        ServerResult::CreateTaskResult(_) => return asks("went on in the background"),
        _ => {}
    }
    match serde_json::to_value(result).map(|result| of_result(result, declares_output)) {
        Ok(CallOutcome::NotDone(failure)) => CallOutcome::Maybe(failure),
        Ok(outcome) => outcome,
        Err(_) => unreadable(),
    }
}

/// A request that got no answer at all.
pub(super) async fn of_loss(connection: &McpConnection, request: &RequestId, error: ServiceError) -> CallOutcome {
    match error {
        ServiceError::McpError(error) => of_error(&error),
        ServiceError::TransportSend(error) if connection.over_http => match http::failure(&*error.error) {
            Some((RequestReach::Never, failure)) => CallOutcome::NotDone(failure),
            Some((RequestReach::Perhaps, failure)) => CallOutcome::Maybe(failure),
            None => CallOutcome::Maybe(ToolFailure::new(FailureCategory::Unavailable, "the request failed")),
        },
        _ if !connection.over_http && connection.wire.never_sent(request) => {
            let failure = connection.end_reason().await;
            let message = format!("the call was not sent: {}", failure.message);
            CallOutcome::NotDone(ToolFailure::new(FailureCategory::Unavailable, message))
        }
        _ => CallOutcome::Maybe(connection.end_reason().await),
    }
}

/// A longer text is kept once. Escaped in JSON, a text can be twice as long, and a result must not grow too large by that.
const TWICE_BYTES_MAX: usize = limits::PAYLOAD_BYTES_MAX / 4;

pub(super) fn unreadable() -> CallOutcome {
    CallOutcome::Maybe(ToolFailure::new(FailureCategory::Protocol, "its answer is not the result of a tool"))
}

/// A modern result says that it is one, even where it holds nothing.
fn is_complete(result: &Map<String, Value>) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("complete")
}

fn text_of(item: &Value) -> Option<&str> {
    (item.get("type").and_then(Value::as_str) == Some("text")).then(|| item.get("text")?.as_str())?
}

fn only_json(content: &[Value]) -> Option<Value> {
    let [item] = content else { return None };
    serde_json::from_str(text_of(item)?).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

/// The shape of every result without structured content: `text` is all its text, `content` its parts, and `json` its
/// only text where that is a JSON object or list. Whether a text can be read as JSON does not change where it is.
/// A text that is too long to be kept twice is only under `text`: its part has its length.
fn plain(content: Vec<Value>, json: Option<Value>) -> Value {
    let text = content.iter().filter_map(text_of).collect::<Vec<_>>().join("\n");
    let is_long = text.len() > TWICE_BYTES_MAX;
    let reduce = |item: Value| match text_of(&item) {
        Some(text) if is_long => json!({"type": "text", "text_bytes": text.len()}),
        Some(text) => json!({"type": "text", "text": text}),
        None => item,
    };
    let mut result = json!({ "text": text, "content": content.into_iter().map(reduce).collect::<Vec<Value>>() });
    if let Some(json) = json {
        result["json"] = json;
    }
    result
}

fn error_text(content: &[Value]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(text_of).collect();
    match texts.join("\n") {
        text if text.trim().is_empty() => "the tool failed without a reason".to_owned(),
        text => cut(&text),
    }
}

/// As much of a foreign text as fits into a message.
pub(super) fn cut(text: &str) -> String {
    const BYTES_MAX: usize = 4 * 1024;
    match cut_bytes(text, BYTES_MAX) {
        whole if whole.len() == text.len() => text.to_owned(),
        first => format!("{first}…"),
    }
}

#[cfg(test)]
mod tests;
