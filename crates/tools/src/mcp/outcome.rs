//! What the answer to a call means: done, not done, or nobody knows.

use super::connection::Connection;
use super::http::{self, Reached};
use super::wire::UNREADABLE;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::service::ServiceError;
use rutter_core::tool::{Category, Failure, Outcome};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The result of `tools/call`, in either era.
pub(super) fn of_result(result: Value) -> Outcome {
    let Value::Object(mut result) = result else {
        return unreadable();
    };
    let content = match result.remove("content") {
        Some(Value::Array(content)) => content,
        _ => Vec::new(),
    };
    if result.get("isError") == Some(&Value::Bool(true)) {
        // The tool's own word that it did not do its work.
        return Outcome::NotDone(Failure::new(Category::ToolError, said(&content)));
    }
    let value = match result.remove("structuredContent") {
        Some(structured) if !structured.is_null() => structured,
        _ if content.is_empty() && !result.contains_key("isError") && !is_complete(&result) => {
            return unreadable();
        }
        _ => only_json(&content).unwrap_or_else(|| plain(content)),
    };
    Outcome::Done { result: Arc::new(value), cost_micros: 0 }
}

/// A JSON-RPC error instead of a result. Only these three are given before a tool is reached.
pub(super) fn of_error(error: &ErrorData) -> Outcome {
    let failure = |category| Failure::new(category, cut(&error.message));
    match error.code {
        ErrorCode::METHOD_NOT_FOUND => Outcome::NotDone(failure(Category::NotFound)),
        ErrorCode::INVALID_PARAMS => Outcome::NotDone(failure(Category::InvalidInput)),
        ErrorCode::HEADER_MISMATCH => Outcome::NotDone(failure(Category::Protocol)),
        UNREADABLE | ErrorCode::PARSE_ERROR | ErrorCode::INVALID_REQUEST => {
            Outcome::Maybe(failure(Category::Protocol))
        }
        ErrorCode::INTERNAL_ERROR => Outcome::Maybe(failure(Category::Internal)),
        _ => Outcome::Maybe(failure(Category::ToolError)),
    }
}

/// A request that got no answer at all.
pub(super) async fn of_loss(connection: &Connection, request: &RequestId, error: ServiceError) -> Outcome {
    match error {
        ServiceError::McpError(error) => of_error(&error),
        ServiceError::TransportSend(error) if connection.over_http => match http::failure(&*error.error) {
            Some((Reached::Never, failure)) => Outcome::NotDone(failure),
            Some((Reached::Perhaps, failure)) => Outcome::Maybe(failure),
            None => Outcome::Maybe(Failure::new(Category::Unavailable, "the request failed")),
        },
        _ if !connection.over_http && connection.wire.never_sent(request) => {
            let failure = connection.obituary().await;
            let message = format!("the call was not sent: {}", failure.message);
            Outcome::NotDone(Failure::new(Category::Unavailable, message))
        }
        _ => Outcome::Maybe(connection.obituary().await),
    }
}

pub(super) fn unreadable() -> Outcome {
    Outcome::Maybe(Failure::new(Category::Protocol, "it answered with something that is no result of a tool"))
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

fn said(content: &[Value]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(text_of).collect();
    match texts.join("\n") {
        text if text.trim().is_empty() => "the tool failed and did not say why".to_owned(),
        text => cut(&text),
    }
}

/// As much of a text by somebody else as fits into a message.
pub(super) fn cut(text: &str) -> String {
    const BYTES_MAX: usize = 4 * 1024;
    if text.len() <= BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests;
