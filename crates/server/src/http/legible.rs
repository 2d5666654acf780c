//! Reads a message before the library of the protocol does, so that whatever comes over HTTP is answered in the terms of
//! the protocol, as over pipes.

use crate::limits::MESSAGE_BYTES_MAX;
use crate::mcp::message::{Wrong, read, without_mark};
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use rmcp::model::ErrorCode;
use serde_json::Value;

pub(super) async fn look(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let bytes = match whole(body).await {
        Ok(bytes) => bytes,
        Err((status, wrong)) => return answer(status, &wrong),
    };
    match read(&bytes) {
        Ok(Some(_)) => {}
        Ok(None) => return StatusCode::ACCEPTED.into_response(),
        Err(wrong) => return answer(StatusCode::BAD_REQUEST, &wrong),
    }
    let bytes = bytes.slice_ref(without_mark(&bytes));
    // It came whole, so its length is known, however it was sent.
    parts.headers.remove(header::TRANSFER_ENCODING);
    parts.headers.insert(header::CONTENT_LENGTH, bytes.len().into());
    next.run(Request::from_parts(parts, Body::from(bytes))).await
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
