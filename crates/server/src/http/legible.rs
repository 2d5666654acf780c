//! Reads a message before the library of the protocol does, so that whatever comes over HTTP is answered in the terms of
//! the protocol, as over pipes.

use crate::http::door::SESSION;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::mcp::message::{REPEATED, Wrong, read, without_mark};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, RequestId};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Requests of sessions without an answer. The library would answer only one of two with the same id.
pub(super) type Open = Arc<Mutex<HashSet<Key>>>;

/// The session, and the request's id in it.
type Key = (String, RequestId);

pub(super) async fn look(State(open): State<Open>, request: Request, next: Next) -> Response {
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
    let session = parts.headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let place = match (session, message) {
        (Some(session), ClientJsonRpcMessage::Request(request)) => {
            let wrong = Wrong::of(json!(request.id), ErrorCode::INVALID_REQUEST, REPEATED);
            match Place::take(open, (session, request.id)) {
                Some(place) => Some(place),
                None => return answer(StatusCode::BAD_REQUEST, &wrong),
            }
        }
        _ => None,
    };
    let bytes = bytes.slice_ref(without_mark(&bytes));
    // It came whole, so its length is known, however it was sent.
    parts.headers.remove(header::TRANSFER_ENCODING);
    parts.headers.insert(header::CONTENT_LENGTH, bytes.len().into());
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    match place {
        None => response,
        // It is open until the last of its answer has gone, or nobody waits for it any more.
        Some(place) => response.map(|body| {
            Body::from_stream(body.into_data_stream().inspect(move |_| {
                let _stays = &place;
            }))
        }),
    }
}

struct Place {
    open: Open,
    key: Key,
}

impl Place {
    fn take(open: Open, key: Key) -> Option<Place> {
        let is_new = open.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        is_new.then_some(Place { open, key })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

async fn whole(body: Body) -> Result<Bytes, (StatusCode, Wrong)> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            let message = format!("the message did not come whole: {error}");
            (StatusCode::BAD_REQUEST, Wrong::of(Value::Null, ErrorCode::PARSE_ERROR, message))
        })?;
        if bytes.len() + chunk.len() > MESSAGE_BYTES_MAX {
            let message = format!("a message may have {MESSAGE_BYTES_MAX} bytes, this one has more");
            let wrong = Wrong::of(Value::Null, ErrorCode::INVALID_REQUEST, message);
            return Err((StatusCode::PAYLOAD_TOO_LARGE, wrong));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}

fn answer(status: StatusCode, wrong: &Wrong) -> Response {
    let content = [(header::CONTENT_TYPE, "application/json")];
    (status, content, wrong.answer().to_string()).into_response()
}
