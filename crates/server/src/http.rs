//! The HTTP listener: MCP at `/mcp`, the page where people answer at `/ask`, and whether the server lives. Everybody
//! passes the [`door`] first.

pub mod door;
mod legible;
mod page;

use crate::desk::Desk;
use crate::limits::MESSAGE_BYTES_MAX;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use door::Door;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long a session of the older era may stay silent.
const SESSION_SILENCE_MAX: Duration = Duration::from_secs(3600);

/// The routes of a server that speaks MCP through `surface`.
pub fn router<S>(surface: S, door: Arc<Door>, closing: &CancellationToken) -> Router
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
        .layer(from_fn_with_state(Arc::clone(&door), door::admit))
        .route("/healthz", get(|| async { "ok\n" }))
        .layer(from_fn_with_state(door, door::look))
}

/// The same with the pages for people.
pub fn with_pages(router: Router, desk: Arc<Desk>, door: Arc<Door>) -> Router {
    let pages = page::routes(page::Office { desk, door: Arc::clone(&door) });
    router.merge(pages.layer(from_fn_with_state(door, door::look)))
}

/// Serves until it is told to close.
pub async fn serve(listener: TcpListener, router: Router, closing: CancellationToken) -> io::Result<()> {
    let ended = async move { closing.cancelled().await };
    axum::serve(listener, router).with_graceful_shutdown(ended).await
}
