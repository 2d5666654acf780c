//! From a request to its answer, for every route alike: who asks, may they, not too fast, what do they say, and only
//! once.

use crate::api::Api;
use crate::api::call::Call;
use crate::api::pace::{Allowance, Pursuit};
use crate::api::problem;
use crate::api::replies;
use crate::api::route::{Keyed, Route};
use crate::auth::require;
use crate::fault::Fault;
use crate::guest::Guest;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Response, StatusCode, header};
use axum::middleware::Next;
use futures::FutureExt;
use rutter_core::limits::REQUEST_KEY_BYTES_MAX;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::time::Instant;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub(crate) async fn answer(
    api: Arc<Api>,
    route: &'static Route,
    path: Result<Vec<(String, String)>, Fault>,
    request: Request,
) -> Response<Body> {
    let mut allowance = None;
    let answering = AssertUnwindSafe(admitted(&api, route, path, request, &mut allowance));
    let answer = match answering.catch_unwind().await {
        Ok(answer) => answer,
        Err(_) => {
            tracing::error!(
                operation = route.about.operation,
                "a request panicked; whoever asked was told so"
            );
            let message = "this request failed inside Rutter; whether it changed anything is not known";
            Err(Fault::new("server.internal", message).hint("look before asking again"))
        }
    };
    let mut response = match answer {
        Ok(response) => response,
        Err(fault) => problem::response(fault),
    };
    if let Some(allowance) = allowance {
        allowance.write(response.headers_mut());
    }
    let status = response.status();
    let is_documented =
        route.about.success.contains(&status.as_u16()) || route.refusals().contains(&status.as_u16());
    if !is_documented {
        tracing::error!(operation = route.about.operation, %status, "an answer that is not documented");
    }
    api.desk.metrics.request(route.about.operation, status.as_u16());
    response
}

async fn admitted(
    api: &Arc<Api>,
    route: &'static Route,
    path: Result<Vec<(String, String)>, Fault>,
    request: Request,
    allowance: &mut Option<Allowance>,
) -> Result<Response<Body>, Fault> {
    let (parts, body) = request.into_parts();
    let guest = guest(api, route, &parts)?;
    if route.about.scope.is_some() {
        let pursuit = if route.about.is_read() { Pursuit::Look } else { Pursuit::Change };
        *allowance = api.pace.take(&guest, pursuit, Instant::now());
        if let Some(fault) = allowance.as_ref().and_then(Allowance::fault) {
            return Err(fault);
        }
    }
    let Ok(_place) = Arc::clone(&api.desk.places).try_acquire_owned() else {
        let fault = Fault::new("server.busy", "too many requests at once");
        return Err(Fault { retryable: true, ..fault.hint("try again in a moment") });
    };
    let key = match route.about.keyed {
        Keyed::No => None,
        Keyed::Journal | Keyed::Reply { .. } => key(&parts.headers)?,
    };
    let bytes = bytes(route, body).await?;
    let body = json(route, &parts.headers, &bytes)?;
    let (method, uri) = (parts.method, parts.uri);
    let call = Call {
        api: Arc::clone(api),
        guest: guest.clone(),
        uri: uri.clone(),
        headers: parts.headers,
        path: path?,
        key: key.clone(),
    };
    let run = (route.run)(call, body);
    let (Keyed::Reply { without }, Some(key)) = (route.about.keyed, key) else { return run.await };
    let query = uri.query().unwrap_or_default();
    let asked = [method.as_str().as_bytes(), uri.path().as_bytes(), query.as_bytes(), bytes.as_ref()];
    let keyed = replies::Keyed::new(&guest.tenant, &guest.id, &key, &asked);
    let (api, span) = (Arc::clone(api), tracing::Span::current());
    // Whoever stops waiting stops nothing: half of it would leave nobody who knows what was done.
    let whole = async move { api.replies.once(&api.desk, &keyed, without, run).await };
    let whole = tokio::spawn(tracing::Instrument::instrument(whole, span));
    whole.await.unwrap_or_else(|_| Err(Fault::new("server.internal", "this request failed inside Rutter")))
}

/// Who asks, if they may ask this.
fn guest(api: &Api, route: &Route, parts: &Parts) -> Result<Guest, Fault> {
    let guest = parts.extensions.get::<Guest>();
    match (guest, route.about.scope) {
        (Some(guest), Some(scope)) => require(guest, scope).map(|()| guest.clone()),
        (Some(guest), None) => Ok(guest.clone()),
        (None, None) => Ok(api.stranger.clone()),
        (None, Some(_)) => {
            Err(Fault::new("server.unauthorized", "this needs a key: Authorization: Bearer …")
                .hint("an operator makes one with rutter key create"))
        }
    }
}

/// The key of the request, with or without the quotation marks some clients put.
fn key(headers: &HeaderMap) -> Result<Option<String>, Fault> {
    let Some(value) = headers.get(KEY) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let key = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let is_key =
        (1..=REQUEST_KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    match is_key {
        true => Ok(Some(key.to_owned())),
        false => {
            let message = format!(
                "an Idempotency-Key has 1 to {REQUEST_KEY_BYTES_MAX} visible ASCII characters, without spaces"
            );
            Err(Fault::new("server.arguments", message))
        }
    }
}

async fn bytes(route: &Route, body: Body) -> Result<Bytes, Fault> {
    if route.body.is_none() {
        return Ok(Bytes::new());
    }
    let max = route.about.body_bytes_max;
    axum::body::to_bytes(body, max).await.map_err(|error| {
        let is_long =
            std::error::Error::source(&error).is_some_and(|error| error.to_string().contains("length limit"));
        match is_long {
            true => Fault::new("server.too_large", format!("a body has at most {max} bytes")),
            false => Fault::new("server.arguments", "the body ended before it was whole"),
        }
    })
}

fn json(route: &Route, headers: &HeaderMap, bytes: &[u8]) -> Result<Value, Fault> {
    if route.body.is_none() || bytes.is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let message = format!("the body must be application/json, this is {kind:?}");
        return Err(Fault::new("server.media_type", message));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| Fault::new("server.arguments", format!("the body is no JSON: {error}")))
}

/// Tells a refusal of whoever stands at the door as a problem, to those who asked the API.
pub(crate) async fn as_problem(request: Request, next: Next) -> Response<Body> {
    let is_ours = request.uri().path().starts_with("/api/");
    let mut response = next.run(request).await;
    if !is_ours {
        return response;
    }
    let Some(fault) = response.extensions_mut().remove::<Fault>() else { return response };
    let mut told = problem::told(response.status(), fault);
    for name in [header::WWW_AUTHENTICATE, header::RETRY_AFTER] {
        if let Some(value) = response.headers_mut().remove(&name) {
            told.headers_mut().insert(name, value);
        }
    }
    told
}

/// The address is written in a way nobody can read.
pub(crate) fn unreadable() -> Fault {
    Fault::new("server.arguments", "the address is not UTF-8 once its percent signs are read")
}

/// What is said to a method that a path does not have.
pub(crate) fn other_method(methods: &str) -> Response<Body> {
    let fault = Fault::new("server.method", format!("this can only be asked with {methods}"));
    let mut response = problem::response(fault);
    if let Ok(methods) = methods.parse() {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    debug_assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    response
}

pub(crate) fn no_route(path: &str) -> Response<Body> {
    let fault = Fault::new("server.no_route", format!("there is nothing at {path:?}"));
    problem::response(fault.hint("/api/docs lists what there is"))
}
