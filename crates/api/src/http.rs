//! The HTTP server: the listener, the [`gate`], security headers, and the router of MCP, the API and the pages.

mod authority;
pub mod gate;
pub mod listen;

pub use listen::serve;

use crate::admit;
use crate::answer::errors_as_problems;
use crate::openapi;
use crate::state::{ApiSettings, ApiState};
use axum::Extension;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gate::RequestGate;
use rutter_app::app::App;
use rutter_app::principal::Principal;
use rutter_observe::live::LiveLedger;
use rutter_observe::metrics;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Default headers of every response. `same-origin` lets our own forms send their origin; without a referrer policy
/// that allows it, they would send none.
const SECURITY_HEADERS: [(header::HeaderName, &str); 7] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Routes of the other surfaces, served next to the API.
#[derive(Debug)]
pub struct Beside {
    /// MCP; the gate requires a token or key.
    pub mcp: Router,
    /// The dashboard, which authenticates by itself.
    pub pages: Router,
}

/// The API, MCP and the pages.
pub fn full_router(
    app: &Arc<App>,
    gate: Arc<RequestGate>,
    settings: ApiSettings,
    beside: Beside,
    closing: &CancellationToken,
) -> Router {
    let live = LiveLedger::new(Arc::clone(&app.feed), closing.child_token());
    let api = ApiState::new(Arc::clone(app), live, settings, openapi::document(), closing.child_token());
    let routes = [
        mcp(beside.mcp, Arc::clone(&gate)),
        crate::router(api, Arc::clone(&app.auth)),
        beside.pages,
        monitoring(Arc::clone(app)),
    ];
    guarded_router(routes, gate)
}

/// MCP for clients with a token or key.
pub fn mcp(routes: Router, gate: Arc<RequestGate>) -> Router {
    routes.layer(from_fn_with_state(gate, gate::admit))
}

/// Metrics, for tokens and keys with the scope read.
pub fn monitoring(app: Arc<App>) -> Router {
    let auth = Arc::clone(&app.auth);
    let read = move |Extension(principal): Extension<Principal>| {
        let app = Arc::clone(&app);
        async move {
            match app.metrics_text(&principal).await {
                Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
                Err(error) => admit::refused(StatusCode::FORBIDDEN, &error),
            }
        }
    };
    Router::new().route("/metrics", get(read)).layer(from_fn_with_state(auth, admit::for_api))
}

/// Several sets of routes behind one gate.
pub fn guarded_router(routes: impl IntoIterator<Item = Router>, gate: Arc<RequestGate>) -> Router {
    let empty = Router::new().route("/healthz", get(|| async { "ok\n" }));
    routes
        .into_iter()
        .fold(empty, Router::merge)
        .layer(from_fn_with_state(gate, gate::check_request))
        .layer(from_fn(errors_as_problems))
        .layer(from_fn(add_security_headers))
}

async fn add_security_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in SECURITY_HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
