//! Validates a message before the protocol library reads it, so that invalid messages over HTTP get the same errors as
//! over pipes.

use crate::message::{InvalidMessage, REPEATED, read, with_exact_plan, without_mark};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, RequestId};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rutter_app::limits::MESSAGE_BYTES_MAX;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Open requests of sessions. The library would answer only one of two with the same id.
pub(super) type OpenRequests = Arc<Mutex<HashSet<OpenRequestKey>>>;

/// The session, and the request's id in it.
type OpenRequestKey = (String, RequestId);

pub(super) async fn check_message(State(open): State<OpenRequests>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let bytes = match whole(body).await {
        Ok(bytes) => bytes,
        Err((status, wrong)) => return answer(status, &wrong),
    };
    let message = match read(&bytes) {
        Ok(Some(message)) => message,
        Ok(None) => return StatusCode::ACCEPTED.into_response(),
        Err(wrong) => return answer(StatusCode::BAD_REQUEST, &wrong),
    };
    let session = parts.headers.get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let place = match (session, message) {
        (Some(session), ClientJsonRpcMessage::Request(request)) => {
            let wrong = InvalidMessage::of(json!(request.id), ErrorCode::INVALID_REQUEST, REPEATED);
            match OpenRequestGuard::take(open, (session, request.id)) {
                Some(place) => Some(place),
                None => return answer(StatusCode::BAD_REQUEST, &wrong),
            }
        }
        _ => None,
    };
    let bytes = match with_exact_plan(without_mark(&bytes)) {
        Cow::Borrowed(exact) => bytes.slice_ref(exact),
        Cow::Owned(exact) => Bytes::from(exact),
    };
    // The body was read completely, so its length is known even if it was sent in chunks.
    parts.headers.remove(header::TRANSFER_ENCODING);
    parts.headers.insert(header::CONTENT_LENGTH, bytes.len().into());
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    match place {
        None => response,
        // The request is open until its response is sent completely, or the client disconnects.
        Some(place) => response.map(|body| {
            Body::from_stream(body.into_data_stream().inspect(move |_| {
                let _stays = &place;
            }))
        }),
    }
}

struct OpenRequestGuard {
    open: OpenRequests,
    key: OpenRequestKey,
}

impl OpenRequestGuard {
    fn take(open: OpenRequests, key: OpenRequestKey) -> Option<OpenRequestGuard> {
        let is_new = open.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        is_new.then_some(OpenRequestGuard { open, key })
    }
}

impl Drop for OpenRequestGuard {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

async fn whole(body: Body) -> Result<Bytes, (StatusCode, InvalidMessage)> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            let message = format!("the message is incomplete: {error}");
            (StatusCode::BAD_REQUEST, InvalidMessage::of(Value::Null, ErrorCode::PARSE_ERROR, message))
        })?;
        if bytes.len() + chunk.len() > MESSAGE_BYTES_MAX {
            let message = format!("expected a message of at most {MESSAGE_BYTES_MAX} bytes");
            let wrong = InvalidMessage::of(Value::Null, ErrorCode::INVALID_REQUEST, message);
            return Err((StatusCode::PAYLOAD_TOO_LARGE, wrong));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}

fn answer(status: StatusCode, wrong: &InvalidMessage) -> Response {
    let content = [(header::CONTENT_TYPE, "application/json")];
    (status, content, wrong.answer().to_string()).into_response()
}
