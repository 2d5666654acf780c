//! What the answer to a call means: done, not done, or unknown.

use super::connection::McpConnection;
use super::http::{self, RequestReach};
use super::wire::UNREADABLE;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::service::ServiceError;
use rutter_core::text::cut_bytes;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The result of `tools/call`, in either era.
pub(super) fn of_result(result: Value) -> CallOutcome {
    let Value::Object(mut result) = result else {
        return unreadable();
    };
    let content = match result.remove("content") {
        Some(Value::Array(content)) => content,
        _ => Vec::new(),
    };
    if result.get("isError") == Some(&Value::Bool(true)) {
        // The tool itself says that it did not do its work.
        return CallOutcome::NotDone(ToolFailure::new(FailureCategory::ToolError, error_text(&content)));
    }
    let value = match result.remove("structuredContent") {
        Some(structured) if !structured.is_null() => structured,
        _ if content.is_empty() && !result.contains_key("isError") && !is_complete(&result) => {
            return unreadable();
        }
        _ => only_json(&content).unwrap_or_else(|| plain(content)),
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

fn plain(content: Vec<Value>) -> Value {
    let reduce = |item: Value| match text_of(&item) {
        Some(text) => json!({"type": "text", "text": text}),
        None => item,
    };
    json!({ "content": content.into_iter().map(reduce).collect::<Vec<Value>>() })
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
