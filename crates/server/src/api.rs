//! The HTTP API: plans, executions, questions, journal, ledger, tools and what happens, as JSON under `/api/v1`.
//!
//! [`routes`] is the one table; each group of routes has a file of its own. The router, the [`openapi`] document, the
//! page of [`docs`] and the checks of rights all follow from it; [`answer`] is the way every request goes.

mod alerts;
mod analytics;
pub(crate) mod answer;
mod call;
mod docs;
mod events;
mod execution;
mod executions;
mod journal;
mod keys;
mod ledger;
pub mod openapi;
pub mod pace;
mod plans;
mod preview;
pub(crate) mod problem;
mod questions;
mod records;
mod replan;
mod replies;
mod reply;
mod route;
mod routes;
mod service;
mod shelf;
mod signals;
mod streams;
mod tools;
mod webhooks;

pub(crate) use problem::told;

use crate::auth::{Auth, Scopes, admit};
use crate::desk::Desk;
use crate::guest::Guest;
use crate::limits::STREAMS_PER_GUEST;
use crate::live::Live;
use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, get};
use pace::{Pace, Rate};
use replies::Replies;
use route::Route;
use rutter_core::id::TenantId;
use shelf::Shelf;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use streams::Streams;
use tokio_util::sync::CancellationToken;

/// Where the routes of the table stand.
pub const BASE: &str = "/api/v1";

#[derive(Clone, Debug)]
pub struct Settings {
    pub look: Rate,
    pub change: Rate,
    /// Streams of events one guest may have open.
    pub streams_per_guest: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            look: Rate { per_second: 100, burst: 200 },
            change: Rate { per_second: 20, burst: 40 },
            streams_per_guest: STREAMS_PER_GUEST,
        }
    }
}

pub struct Api {
    desk: Arc<Desk>,
    live: Arc<Live>,
    pace: Pace,
    replies: Replies,
    shelf: Shelf,
    streams: Streams,
    /// Ends the streams, which would never end by themselves.
    closing: CancellationToken,
    /// Whoever asks what anybody may know.
    stranger: Guest,
}

impl Api {
    pub fn new(desk: Arc<Desk>, live: Arc<Live>, settings: Settings, closing: CancellationToken) -> Arc<Api> {
        let stranger = Guest {
            tenant: TenantId::new("default"),
            id: "anybody".to_owned(),
            name: "anybody".to_owned(),
            scopes: Scopes::new(),
            person: "anybody".to_owned(),
            toolsets: BTreeSet::new(),
            is_local: false,
        };
        Arc::new(Api {
            live,
            pace: Pace::new(settings.look, settings.change),
            replies: Replies::default(),
            shelf: Shelf::default(),
            streams: Streams::new(settings.streams_per_guest, Arc::clone(&desk.metrics)),
            closing,
            stranger,
            desk,
        })
    }

    /// Streams of events that are open now.
    pub fn streams(&self) -> usize {
        self.streams.open()
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("pace", &self.pace).finish_non_exhaustive()
    }
}

/// Everything under `/api`. Whoever is not let in hears of it in the same form as of everything else.
pub fn router(api: Arc<Api>, auth: Arc<Auth>) -> Router {
    let mut paths: BTreeMap<&'static str, Vec<&'static Route>> = BTreeMap::new();
    for route in routes::all() {
        paths.entry(route.about.path).or_default().push(route);
    }
    let (mut guarded, mut open) = (Router::new(), Router::new());
    for (path, routes) in paths {
        let (address, methods) = (format!("{BASE}{path}"), methods(&api, &routes));
        match routes.iter().all(|route| route.about.scope.is_none()) {
            true => open = open.route(&address, methods),
            false => guarded = guarded.route(&address, methods),
        }
    }
    let guarded = guarded.layer(from_fn_with_state(auth, admit::for_api));
    let ready: Vec<&Route> = routes::all().iter().filter(|route| route.about.path == "/readyz").collect();
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

fn methods(api: &Arc<Api>, routes: &[&'static Route]) -> MethodRouter {
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
    MethodFilter::try_from(method.clone()).expect("the table has methods of HTTP only")
}
