//! Everything over HTTP: MCP at `/mcp`, pages for people, and whether the server lives. Everybody passes the [`door`]
//! first, and every answer tells browsers to be careful with it.

mod authority;
pub mod door;
mod legible;
pub mod listen;

pub use listen::serve;

use crate::api::answer::as_problem;
use crate::api::{self, Api};
use crate::auth::{Auth, Scope, admit, enter, require};
use crate::dashboard;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::guest::Guest;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::live::Live;
use crate::mcp::Surface;
use crate::metrics::{self, Sources};
use axum::Extension;
use axum::Router;
use axum::extract::{Path, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use door::Door;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a session of the older era may stay silent.
const SESSION_SILENCE_MAX: Duration = Duration::from_secs(3600);

/// What an answer is sent with unless it says otherwise. Forms of ours would come without their origin if no page were
/// told where they come from, so that it is told to our own.
const CAUTIONS: [(header::HeaderName, &str); 7] = [
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

/// MCP alone, behind the door.
pub fn router<S>(surface: S, door: Arc<Door>, closing: &CancellationToken) -> Router
where
    S: ServerHandler + Clone,
{
    house([mcp(surface, Arc::clone(&door), closing)], door)
}

/// Everything there is: MCP, the API and the pages.
pub fn everything(
    desk: &Arc<Desk>,
    door: Arc<Door>,
    settings: api::Settings,
    closing: &CancellationToken,
) -> Router {
    let surface = Surface::at_the_door(Arc::clone(desk));
    let live = Live::new(Arc::clone(&desk.feed), closing.child_token());
    let api = Api::new(Arc::clone(desk), live, settings, closing.child_token());
    let rooms = [
        mcp(surface, Arc::clone(&door), closing),
        api::router(api, Arc::clone(&desk.auth)),
        pages(Arc::clone(desk), Arc::clone(&desk.auth)),
        monitoring(Arc::clone(desk)),
    ];
    house(rooms, door)
}

/// What a monitoring system reads, with a token or key that may look.
fn monitoring(desk: Arc<Desk>) -> Router {
    let auth = Arc::clone(&desk.auth);
    let read = move |Extension(guest): Extension<Guest>| {
        let desk = Arc::clone(&desk);
        async move {
            if let Err(fault) = require(&guest, Scope::Read) {
                return admit::refused(StatusCode::FORBIDDEN, &fault);
            }
            let sources = Sources {
                tenant: &guest.tenant,
                engine: &desk.engine,
                query: &*desk.query,
                proof: &*desk.proof,
                outbox: &*desk.outbox,
                tools: &*desk.tools,
                insight: Some(&desk.insight),
            };
            ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], desk.metrics.render(sources).await)
                .into_response()
        }
    };
    Router::new().route("/metrics", get(read)).layer(from_fn_with_state(auth, admit::for_api))
}

/// Several sets of routes behind one door.
pub fn house(rooms: impl IntoIterator<Item = Router>, door: Arc<Door>) -> Router {
    let empty = Router::new().route("/healthz", get(|| async { "ok\n" }));
    rooms
        .into_iter()
        .fold(empty, Router::merge)
        .layer(from_fn_with_state(door, door::look))
        .layer(from_fn(as_problem))
        .layer(from_fn(careful))
}

/// The routes of a server that speaks MCP through `surface`.
pub fn mcp<S>(surface: S, door: Arc<Door>, closing: &CancellationToken) -> Router
where
    S: ServerHandler + Clone,
{
    // The door looks at hosts and origins, for every route alike.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MESSAGE_BYTES_MAX)
        .with_cancellation_token(closing.child_token());
    let mut sessions = SessionConfig::default();
    sessions.keep_alive = Some(SESSION_SILENCE_MAX);
    let mut manager = LocalSessionManager::default();
    manager.session_config = sessions;
    let mcp = StreamableHttpService::new(move || Ok(surface.clone()), Arc::new(manager), config);
    Router::new()
        .route_service("/mcp", mcp)
        .layer(from_fn_with_state(legible::Open::default(), legible::look))
        .layer(from_fn_with_state(door, door::admit))
}

/// The pages for people, and where browsers enter and leave. Whoever asks for what is not there enters first, so that
/// nobody learns from outside what is.
pub fn pages(desk: Arc<Desk>, auth: Arc<Auth>) -> Router {
    let pages = dashboard::routes(desk).route("/ask/{execution}", get(questions));
    let pages = pages.layer(from_fn(admit::readers));
    let pages = pages.layer(from_fn_with_state(Arc::clone(&auth), admit::for_pages));
    pages.merge(dashboard::open_routes()).merge(enter::routes(auth))
}

/// Where the link in an answer leads: to what an execution asks.
async fn questions(Path(execution): Path<String>) -> Response {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match execution.chars().all(is_plain) {
        true => Redirect::to(&format!("/executions/{execution}#questions")).into_response(),
        false => admit::refused(StatusCode::NOT_FOUND, &Fault::missing("execution", &execution)),
    }
}

async fn careful(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in CAUTIONS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
