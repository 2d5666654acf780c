//! The HTTP API: plans, executions, questions, journal, ledger, tools and live events, as JSON under `/api/v1`.
//!
//! [`routes`] is the one table; each group of routes has its own file. The router, the [`openapi`] document, the
//! [`docs`] pages and the scope checks are derived from it; [`answer`] handles every request.

pub mod admit;
mod alerts;
mod analytics;
mod answer;
mod docs;
pub mod encode;
mod events;
mod executions;
pub mod http;
mod idempotent_replies;
mod journal;
mod keys;
mod ledger;
pub mod openapi;
mod plans;
mod preview;
pub mod problem;
mod questions;
pub mod rate_limit;
mod records;
mod replan;
mod reply;
mod request;
mod response_cache;
mod route;
mod routes;
mod service;
mod signals;
mod streams;
mod tools;
mod webhooks;

pub(crate) use problem::response_with_status;

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, get};
use idempotent_replies::IdempotentReplies;
use rate_limit::{RequestRate, RequestRateLimiter};
use response_cache::ResponseCache;
use route::ApiRoute;
use rutter_app::app::App;
use rutter_app::auth::{AccessScopes, Authenticator};
use rutter_app::limits::STREAMS_PER_PRINCIPAL;
use rutter_app::principal::{Credential, Principal};
use rutter_core::id::TenantId;
use rutter_observe::live::LiveLedger;
use std::collections::BTreeMap;
use std::sync::Arc;
use streams::StreamLimiter;
use tokio_util::sync::CancellationToken;

/// The base path of the routes.
pub const BASE: &str = "/api/v1";

#[derive(Clone, Debug)]
pub struct ApiSettings {
    pub reads: RequestRate,
    pub changes: RequestRate,
    /// Event streams one principal may have open.
    pub streams_per_principal: usize,
}

impl Default for ApiSettings {
    fn default() -> ApiSettings {
        ApiSettings {
            reads: RequestRate { per_second: 100, burst: 200 },
            changes: RequestRate { per_second: 20, burst: 40 },
            streams_per_principal: STREAMS_PER_PRINCIPAL,
        }
    }
}

pub struct ApiState {
    /// The document that describes every route.
    pub(crate) openapi: serde_json::Map<String, serde_json::Value>,
    app: Arc<App>,
    live: Arc<LiveLedger>,
    rate_limiter: RequestRateLimiter,
    idempotent_replies: IdempotentReplies,
    response_cache: ResponseCache,
    streams: StreamLimiter,
    /// Ends the event streams at shutdown.
    closing: CancellationToken,
    /// The principal of unauthenticated requests to public routes.
    anonymous: Principal,
}

impl ApiState {
    pub fn new(
        app: Arc<App>,
        live: Arc<LiveLedger>,
        settings: ApiSettings,
        closing: CancellationToken,
    ) -> Arc<ApiState> {
        let stranger =
            Principal::new(TenantId::new("default"), "anybody", AccessScopes::new(), Credential::Anonymous {});
        Arc::new(ApiState {
            openapi: openapi::document().clone(),
            live,
            rate_limiter: RequestRateLimiter::new(settings.reads, settings.changes),
            idempotent_replies: IdempotentReplies::default(),
            response_cache: ResponseCache::default(),
            streams: StreamLimiter::new(settings.streams_per_principal, Arc::clone(&app.metrics)),
            closing,
            anonymous: stranger,
            app,
        })
    }

    /// The number of open event streams.
    pub fn streams(&self) -> usize {
        self.streams.open()
    }
}

impl std::fmt::Debug for ApiState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiState").field("rate_limiter", &self.rate_limiter).finish_non_exhaustive()
    }
}

/// Everything under `/api`. Errors of the gate have the same form as all others.
pub fn router(api: Arc<ApiState>, auth: Arc<Authenticator>) -> Router {
    let mut paths: BTreeMap<&'static str, Vec<&'static ApiRoute>> = BTreeMap::new();
    for route in routes::all() {
        paths.entry(route.about.path).or_default().push(route);
    }
    let (mut guarded, mut open) = (Router::new(), Router::new());
    for (path, routes) in paths {
        let (address, methods) = (format!("{BASE}{path}"), methods(&api, &routes));
        match routes.iter().all(|route| route.about.right.is_none()) {
            true => open = open.route(&address, methods),
            false => guarded = guarded.route(&address, methods),
        }
    }
    let guarded = guarded.layer(from_fn_with_state(auth, admit::for_api));
    let ready: Vec<&ApiRoute> = routes::all().iter().filter(|route| route.about.path == "/readyz").collect();
    open.merge(guarded)
        .route("/readyz", methods(&api, &ready))
        .route("/api/docs", get(docs::page))
        .route("/api/docs/errors", get(docs::errors))
        .route("/api/docs/style.css", get(docs::style))
        .route("/api", get(docs::there))
        .route(
            "/api/{*rest}",
            axum::routing::any(|request: Request| async move { answer::no_route(request.uri().path()) }),
        )
}

fn methods(api: &Arc<ApiState>, routes: &[&'static ApiRoute]) -> MethodRouter {
    let names: Vec<&str> = routes.iter().map(|route| route.about.method.as_str()).collect();
    let names = names.join(", ");
    let mut router = MethodRouter::new();
    for route in routes {
        let (api, route) = (Arc::clone(api), *route);
        let run = move |path: Result<RawPathParams, RawPathParamsRejection>, request: Request| {
            let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            let path = path.map(|path| path.iter().map(own).collect()).map_err(|_| answer::unreadable());
            answer::answer(Arc::clone(&api), route, path, request)
        };
        router = router.on(filter(&route.about.method), run);
    }
    router.fallback(move || std::future::ready(answer::other_method(&names)))
}

fn filter(method: &Method) -> MethodFilter {
    MethodFilter::try_from(method.clone()).expect("the table has only HTTP methods")
}
