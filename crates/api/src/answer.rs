//! The path of every request to its response: principal, scope, rate limit, idempotency key, body, handler.

use crate::idempotent_replies;
use crate::idempotent_replies::Idempotency;
use crate::problem;
use crate::rate_limit::{RateAllowance, RequestKind};
use crate::request::ApiRequest;
use crate::route::ApiRoute;
use crate::state::ApiState;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Response, StatusCode, header};
use axum::middleware::Next;
use futures::FutureExt;
use rutter_app::error::AppError;
use rutter_app::principal::Principal;
use rutter_app::request_key::is_request_key;
use rutter_core::canonical::canonical;
use rutter_core::limits::REQUEST_KEY_BYTES_MAX;
use rutter_core::plan::document::embedded::{keep_text, keep_texts};
use rutter_core::plan::document::{DocumentFormat, PlanDocument, ambiguities};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::time::Instant;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub(crate) async fn answer(
    api: Arc<ApiState>,
    route: &'static ApiRoute,
    path: Result<Vec<(String, String)>, AppError>,
    request: Request,
) -> Response<Body> {
    let mut allowance = None;
    let answering = AssertUnwindSafe(answer_admitted(&api, route, path, request, &mut allowance));
    let answer = match answering.catch_unwind().await {
        Ok(answer) => answer,
        Err(_) => {
            tracing::error!(operation = route.about.operation, "a request panicked; the client got an error");
            let message = "this request failed inside Rutter; whether it changed anything is unknown";
            Err(AppError::new("server.internal", message).hint("check before sending it again"))
        }
    };
    let mut response = match answer {
        Ok(response) => response,
        Err(error) => problem::response(error),
    };
    if let Some(allowance) = allowance {
        allowance.write(response.headers_mut());
    }
    let status = response.status();
    let is_documented = route.about.success.contains(&status.as_u16()) || route.refusals().contains(&status.as_u16());
    if !is_documented {
        tracing::error!(operation = route.about.operation, %status, "an undocumented status code");
    }
    api.app.metrics.request(route.about.operation, status.as_u16());
    response
}

async fn answer_admitted(
    api: &Arc<ApiState>,
    route: &'static ApiRoute,
    path: Result<Vec<(String, String)>, AppError>,
    request: Request,
    allowance: &mut Option<RateAllowance>,
) -> Result<Response<Body>, AppError> {
    let (parts, body) = request.into_parts();
    let caller = principal_of(api, route, &parts)?;
    if route.about.right.is_some() {
        let pursuit = if route.about.is_read() { RequestKind::Read } else { RequestKind::Change };
        *allowance = api.rate_limiter.take(&caller, pursuit, Instant::now());
        if let Some(error) = allowance.as_ref().and_then(RateAllowance::fault) {
            return Err(error);
        }
    }
    let Ok(_place) = Arc::clone(&api.app.request_permits).try_acquire_owned() else {
        let app_error = AppError::new("server.busy", "too many concurrent requests");
        return Err(AppError { retryable: true, ..app_error.hint("try again in a moment") });
    };
    let key = match route.about.idempotency {
        Idempotency::No => None,
        Idempotency::Journal | Idempotency::Reply { .. } | Idempotency::ReplyOrRerun => key(&parts.headers)?,
    };
    let bytes = bytes(route, body).await?;
    let mut body = json(route, &parts.headers, &bytes)?;
    let canonical_body = comparable(&body);
    // The plan is read from what its author wrote: this reader keeps the last of two equal keys.
    keep_text(&bytes, &mut body, &["plan"]);
    keep_texts(&bytes, &mut body, &["plans"], "document");
    let (method, uri) = (parts.method, parts.uri);
    let call = ApiRequest {
        api: Arc::clone(api),
        principal: caller.clone(),
        uri: uri.clone(),
        headers: parts.headers,
        path: path?,
        key: key.clone(),
    };
    let run = with_sign_of_life(call, route, body);
    let (Idempotency::Reply { .. } | Idempotency::ReplyOrRerun, Some(key)) = (route.about.idempotency, key) else {
        return run.await;
    };
    let query = uri.query().unwrap_or_default();
    let asked = [method.as_str().as_bytes(), uri.path().as_bytes(), query.as_bytes(), canonical_body.as_bytes()];
    let keyed = idempotent_replies::KeyedRequest::new(&caller.tenant, &caller.key_owner(), &key, &asked);
    let (api, span) = (Arc::clone(api), tracing::Span::current());
    // A client that disconnects cancels nothing: otherwise nothing would record what was done.
    let whole = async move { api.idempotent_replies.once(&api.app, &keyed, route.about.idempotency, run).await };
    let whole = tokio::spawn(tracing::Instrument::instrument(whole, span));
    whole.await.unwrap_or_else(|_| Err(AppError::new("server.internal", "this request failed inside Rutter")))
}

/// Whatever an agent asks about an execution or of it says that the agent is alive, also what is refused. A look comes
/// after the sign, so that it sees it; a change comes before, so that its conditions hold.
async fn with_sign_of_life(call: ApiRequest, route: &ApiRoute, body: Value) -> Result<Response<Body>, AppError> {
    if !route.about.path.starts_with("/executions/{id}") {
        return (route.run)(call, body).await;
    }
    let (app, caller, identity) = (Arc::clone(call.app()), call.principal.clone(), call.identity());
    if route.about.is_read() {
        app.notice_agent(&caller, &identity).await;
        return (route.run)(call, body).await;
    }
    let done = (route.run)(call, body).await;
    app.notice_agent(&caller, &identity).await;
    done
}

/// The principal, if it has the right of the route.
fn principal_of(api: &ApiState, route: &ApiRoute, parts: &Parts) -> Result<Principal, AppError> {
    let principal = parts.extensions.get::<Principal>();
    match (principal, route.about.right) {
        (Some(caller), Some(right)) => api.app.require(caller, right).map(|()| caller.clone()),
        (Some(known), None) => Ok(known.clone()),
        (None, None) => Ok(api.anonymous.clone()),
        (None, Some(_)) => Err(AppError::new("server.unauthorized", "a key is required: Authorization: Bearer …")
            .hint("an operator creates one with rutter key create")),
    }
}

/// The idempotency key, with or without the quotation marks some clients add.
fn key(headers: &HeaderMap) -> Result<Option<String>, AppError> {
    let Some(value) = headers.get(KEY) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let key = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    match is_request_key(key) {
        true => Ok(Some(key.to_owned())),
        false => {
            let message = format!(
                "expected an Idempotency-Key of 1 to {REQUEST_KEY_BYTES_MAX} visible ASCII characters, without spaces"
            );
            Err(AppError::new("server.arguments", message))
        }
    }
}

async fn bytes(route: &ApiRoute, body: Body) -> Result<Bytes, AppError> {
    if route.body.is_none() {
        return Ok(Bytes::new());
    }
    let max = route.about.body_bytes_max;
    axum::body::to_bytes(body, max).await.map_err(|error| {
        let is_long = std::error::Error::source(&error).is_some_and(|error| error.to_string().contains("length limit"));
        match is_long {
            true => AppError::new("server.too_large", format!("expected a body of at most {max} bytes")),
            false => AppError::new("server.arguments", "the body is incomplete"),
        }
    })
}

fn json(route: &ApiRoute, headers: &HeaderMap, bytes: &[u8]) -> Result<Value, AppError> {
    if route.body.is_none() || bytes.is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let message = format!("expected a body of type application/json, not {kind:?}");
        return Err(AppError::new("server.media_type", message));
    }
    let body: Value = serde_json::from_slice(bytes)
        .map_err(|error| AppError::new("server.arguments", format!("the body is not JSON: {error}")))?;
    if !body.is_object() {
        return Err(AppError::new("server.arguments", "expected a JSON object as the body"));
    }
    match ambiguities(bytes).iter().find(|found| !is_in_a_plan(&found.pointer)) {
        None => Ok(body),
        Some(found) => Err(AppError::new("server.arguments", format!("{} at {}", found.message, found.pointer))
            .hint("nothing was done: two programs could read this body differently")),
    }
}

/// The body as it is compared with that of a repeated request: a plan counts by its content, as an object or as text.
fn comparable(body: &Value) -> String {
    let mut body = body.clone();
    let document = |plan: &mut Value| {
        let Value::String(text) = &*plan else { return };
        if let Ok(document) = PlanDocument::read(text.as_bytes(), DocumentFormat::guess(text.as_bytes())) {
            *plan = (*document.value).clone();
        }
    };
    body.get_mut("plan").into_iter().for_each(document);
    let plans = body.get_mut("plans").and_then(Value::as_array_mut).into_iter().flatten();
    plans.filter_map(|plan| plan.get_mut("document")).for_each(document);
    canonical(&body)
}

/// Whether a pointer leads into a plan, whose own reader reports all its mistakes at once.
fn is_in_a_plan(pointer: &str) -> bool {
    let document = || pointer.strip_prefix("/plans/")?.split_once('/')?.1.strip_prefix("document/");
    pointer.starts_with("/plan/") || document().is_some()
}

/// Renders errors of the gate as problem details, for requests to the API.
pub(crate) async fn errors_as_problems(request: Request, next: Next) -> Response<Body> {
    let is_ours = request.uri().path().starts_with("/api/");
    let mut response = next.run(request).await;
    if !is_ours {
        return response;
    }
    let Some(error) = response.extensions_mut().remove::<AppError>() else { return response };
    let mut answer = problem::response_with_status(response.status(), error);
    for name in [header::WWW_AUTHENTICATE, header::RETRY_AFTER] {
        if let Some(value) = response.headers_mut().remove(&name) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

/// The path cannot be decoded.
pub(crate) fn unreadable() -> AppError {
    AppError::new("server.arguments", "the decoded path is not UTF-8")
}

/// The response to an unsupported method.
pub(crate) fn other_method(methods: &str) -> Response<Body> {
    let error = AppError::new("server.method", format!("this path supports only {methods}"));
    let mut response = problem::response(error);
    if let Ok(methods) = methods.parse() {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    debug_assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    response
}

pub(crate) fn no_route(path: &str) -> Response<Body> {
    let error = AppError::new("server.no_route", format!("there is no route {path:?}"));
    problem::response(error.hint("/api/docs lists all routes"))
}
