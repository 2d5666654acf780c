//! A route's reply: a value with status and headers, or a page of a list.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) struct ApiReply<O> {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    content: ReplyContent<O>,
}

enum ReplyContent<O> {
    /// No body.
    Nothing,
    Value(O),
    /// A value that is already serialized.
    Written(Bytes),
}

impl<O> ApiReply<O> {
    fn new(status: StatusCode, content: ReplyContent<O>) -> ApiReply<O> {
        ApiReply { status, headers: HeaderMap::new(), content }
    }

    pub(crate) fn ok(value: O) -> ApiReply<O> {
        ApiReply::new(StatusCode::OK, ReplyContent::Value(value))
    }

    /// A value that is already serialized.
    pub(crate) fn written(value: Bytes) -> ApiReply<O> {
        ApiReply::new(StatusCode::OK, ReplyContent::Written(value))
    }

    /// A new object, and its location.
    pub(crate) fn created(value: O, location: &str) -> ApiReply<O> {
        ApiReply::new(StatusCode::CREATED, ReplyContent::Value(value)).header(header::LOCATION, location)
    }

    pub(crate) fn nothing() -> ApiReply<O> {
        ApiReply::new(StatusCode::NO_CONTENT, ReplyContent::Nothing)
    }

    /// The client's version is current.
    pub(crate) fn unchanged(tag: &str) -> ApiReply<O> {
        ApiReply::new(StatusCode::NOT_MODIFIED, ReplyContent::Nothing).tag(tag)
    }

    pub(crate) fn tag(self, tag: &str) -> ApiReply<O> {
        self.header(header::ETAG, tag)
    }

    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> ApiReply<O> {
        // An id that is no valid header value is only in the body.
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

impl<O: Serialize> ApiReply<O> {
    pub(crate) fn response(self) -> Result<Response<Body>, serde_json::Error> {
        let (body, is_json) = match self.content {
            ReplyContent::Nothing => (Body::empty(), false),
            ReplyContent::Value(value) => (Body::from(serde_json::to_vec(&value)?), true),
            ReplyContent::Written(bytes) => (Body::from(bytes), true),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        let headers = response.headers_mut();
        if is_json {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        // Replies with an ETag may be cached but must be revalidated.
        let stored = headers.contains_key(header::ETAG);
        let retained = HeaderValue::from_static(if stored { "private, no-cache" } else { "no-store" });
        headers.insert(header::CACHE_CONTROL, retained);
        Ok(response)
    }
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListOf{T}")]
pub(crate) struct ListReply<T> {
    pub(crate) items: Vec<T>,
    /// The cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}
