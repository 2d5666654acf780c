//! Errors as HTTP: a status and `application/problem+json`. The only place that maps errors to statuses.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use rutter_app::error::AppError;
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
    let area = error.code.split('.').next().unwrap_or_default();
    match error.code.as_ref() {
        "server.arguments" | "command.reason_missing" | "store.invalid" | "store.too_broad" => StatusCode::BAD_REQUEST,
        "server.unauthorized" => StatusCode::UNAUTHORIZED,
        "server.not_allowed" | "server.host" | "server.origin" | "execution.not_a_person" => StatusCode::FORBIDDEN,
        "store.not_found" | "server.session" | "server.no_route" | "execution.unknown_part" => StatusCode::NOT_FOUND,
        "server.method" => StatusCode::METHOD_NOT_ALLOWED,
        "store.conflict" | "store.key_reused" | "server.stale_question" => StatusCode::CONFLICT,
        "server.precondition" | "engine.changed" => StatusCode::PRECONDITION_FAILED,
        "server.too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        "server.media_type" => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "server.rate_limited" => StatusCode::TOO_MANY_REQUESTS,
        "engine.plan"
        | "engine.secret"
        | "store.limit"
        | "execution.inputs"
        | "execution.text_too_long"
        | "execution.too_large"
        | "execution.answer_invalid"
        | "execution.evidence_missing"
        | "execution.unknown_tool" => StatusCode::UNPROCESSABLE_ENTITY,
        "store.overloaded" | "store.disk_full" | "store.read_only" | "store.closed" | "store.fenced"
        | "engine.busy" | "engine.closing" | "engine.undecided" | "server.busy" => StatusCode::SERVICE_UNAVAILABLE,
        _ if matches!(area, "execution" | "replan") => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
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
