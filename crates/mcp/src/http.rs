//! MCP over streamable HTTP.

mod message_check;

use axum::Router;
use axum::middleware::from_fn_with_state;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rutter_app::limits::MESSAGE_BYTES_MAX;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a legacy session may be idle.
const SESSION_SILENCE_MAX: Duration = Duration::from_secs(3600);

/// The route of a server that speaks MCP through `surface`. The listener checks hosts, origins and credentials for
/// every route.
pub fn routes<S>(surface: S, closing: &CancellationToken) -> Router
where
    S: ServerHandler + Clone,
{
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
        .layer(from_fn_with_state(message_check::OpenRequests::default(), message_check::check_message))
}
