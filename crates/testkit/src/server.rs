//! A running server for the tests of every surface: database, tools, engine, application, clients.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

pub mod fixture;
pub mod installation;
pub mod mcp_client;
pub mod shop;
pub mod tamper;

use rutter_api::http::Beside;
use rutter_app::app::App;
use rutter_mcp::McpSurface;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The surfaces that the program serves besides the API.
pub fn beside(app: &Arc<App>, closing: &CancellationToken) -> Beside {
    let mcp = rutter_mcp::http::routes(McpSurface::behind_gate(Arc::clone(app)), closing);
    Beside { mcp, pages: rutter_web::router(app, Arc::clone(&app.auth)) }
}
