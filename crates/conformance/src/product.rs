//! The real surface over a real database in a temporary directory, with the built-in tools.

use anyhow::Context;
use rutter_app::runtime::{Runtime, RuntimeOptions};
use rutter_mcp::McpSurface;
use std::path::Path;
use std::sync::Arc;

/// The runtime must outlive the surface.
pub async fn surface(folder: &Path) -> anyhow::Result<(Runtime, McpSurface)> {
    let options = RuntimeOptions {
        environment: std::env::vars().collect(),
        reserve_bytes: Some(0),
        ..RuntimeOptions::new(folder)
    };
    let runtime = Runtime::open(options).await.context("the server did not open")?;
    let surface = McpSurface::behind_gate(Arc::clone(&runtime.app));
    Ok((runtime, surface))
}
