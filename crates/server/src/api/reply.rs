//! What a route answers: a value with its status and headers, or a page of a list.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) struct Reply<O> {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    content: Content<O>,
}

enum Content<O> {
    /// The status says everything.
    Nothing,
    Value(O),
    /// A value that was written out before.
    Written(Bytes),
}

impl<O> Reply<O> {
    fn new(status: StatusCode, content: Content<O>) -> Reply<O> {
        Reply { status, headers: HeaderMap::new(), content }
    }

    pub(crate) fn ok(value: O) -> Reply<O> {
        Reply::new(StatusCode::OK, Content::Value(value))
    }

    /// A value as it was written out before.
    pub(crate) fn written(value: Bytes) -> Reply<O> {
        Reply::new(StatusCode::OK, Content::Written(value))
    }

    /// Something new, which is found there from now on.
    pub(crate) fn created(value: O, location: &str) -> Reply<O> {
        Reply::new(StatusCode::CREATED, Content::Value(value)).header(header::LOCATION, location)
    }

    pub(crate) fn nothing() -> Reply<O> {
        Reply::new(StatusCode::NO_CONTENT, Content::Nothing)
    }

    /// The client has it already.
    pub(crate) fn unchanged(tag: &str) -> Reply<O> {
        Reply::new(StatusCode::NOT_MODIFIED, Content::Nothing).tag(tag)
    }

    pub(crate) fn tag(self, tag: &str) -> Reply<O> {
        self.header(header::ETAG, tag)
    }

    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Reply<O> {
        // Ids that cannot stand in a header are found in the body.
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

impl<O: Serialize> Reply<O> {
    pub(crate) fn response(self) -> Result<Response<Body>, serde_json::Error> {
        let (body, is_json) = match self.content {
            Content::Nothing => (Body::empty(), false),
            Content::Value(value) => (Body::from(serde_json::to_vec(&value)?), true),
            Content::Written(bytes) => (Body::from(bytes), true),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        let headers = response.headers_mut();
        if is_json {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        // What was looked at once may be another thing the next time.
        let kept = headers.contains_key(header::ETAG);
        let kept = HeaderValue::from_static(if kept { "private, no-cache" } else { "no-store" });
        headers.insert(header::CACHE_CONTROL, kept);
        Ok(response)
    }
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListOf{T}")]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    /// Ask for the same list with this as `cursor` to go on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}
