//! Errors as HTTP: a status and `application/problem+json`. The kind of an error decides its status.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use rutter_app::error::{AppError, ErrorKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub(crate) const MEDIA_TYPE: &str = "application/problem+json";
/// The default of `Retry-After`.
const RETRY_AFTER_SECONDS: u64 = 1;

/// RFC 9457, with the fields of every Rutter error.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProblemDetails {
    /// Where the code is explained.
    r#type: String,
    title: &'static str,
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// The error message.
    detail: String,
    /// Stable, such as `store.not_found`.
    code: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The same request may succeed a little later.
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    details: Option<Value>,
}

pub fn status_of(error: &AppError) -> StatusCode {
    match error.kind() {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::UnsupportedMedia => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorKind::Unacceptable => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The complete response.
pub(crate) fn response(error: AppError) -> Response<Body> {
    response_with_status(status_of(&error), error)
}

/// The same with a given status.
pub(crate) fn response_with_status(status: StatusCode, app_error: AppError) -> Response<Body> {
    if status.is_server_error() {
        tracing::warn!(error.code = %app_error.code, "a request failed: {}", app_error.message);
    }
    let wait = match status {
        StatusCode::SERVICE_UNAVAILABLE => Some(RETRY_AFTER_SECONDS),
        _ => None,
    };
    let problem = ProblemDetails {
        r#type: format!("/api/docs/errors#{}", app_error.code),
        title: status.canonical_reason().unwrap_or("Error"),
        status: status.as_u16(),
        detail: app_error.message,
        code: app_error.code.into_owned(),
        hint: app_error.hint,
        retryable: app_error.retryable,
        details: app_error.details.map(|details| *details),
    };
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(wait) = wait {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
    }
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"rutter\"");
        headers.insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
