//! Serves a surface on a free port of this machine, without tokens, until whoever started it goes away.

use anyhow::Context;
use rmcp::ServerHandler;
use rutter_core::id::TenantId;
use rutter_server::guest::{Guest, Toolset};
use rutter_server::http;
use rutter_server::http::door::Door;
use serde_json::json;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Prints `{"url": …}` on one line, and ends when standard input does.
pub async fn serve<S: ServerHandler + Clone>(surface: S) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free")?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let guest = Guest::local(TenantId::new("default"), "operator", Toolset::ALL.into());
    let closing = CancellationToken::new();
    let router = http::router(surface, Arc::new(Door::open_for(guest)), &closing);
    println!("{}", json!({ "url": url }));
    tokio::select! {
        served = http::serve(listener, router, closing.clone()) => served.context("the listener failed"),
        () = input_ends() => Ok(()),
    }
}

async fn input_ends() {
    let mut input = tokio::io::stdin();
    let mut bytes = [0; 1024];
    while matches!(input.read(&mut bytes).await, Ok(1..)) {}
}
