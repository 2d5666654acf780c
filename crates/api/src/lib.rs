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
mod state;
mod streams;
mod templates;
mod tools;
mod webhooks;

pub use state::{ApiSettings, ApiState};

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, get};
use route::{ApiRoute, BASE};
use rutter_app::auth::Authenticator;
use std::collections::BTreeMap;
use std::sync::Arc;

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
