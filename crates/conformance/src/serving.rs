//! Serves a surface on a free local port, without tokens, until the starting process is gone.

use anyhow::Context;
use axum::Extension;
use rmcp::ServerHandler;
use rutter_api::http;
use rutter_api::http::gate::RequestGate;
use rutter_app::auth::Authenticator;
use rutter_app::principal::{McpToolset, Principal};
use rutter_core::id::TenantId;
use serde_json::json;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Prints `{"url": …}` on one line, and ends when standard input does.
pub async fn serve<S: ServerHandler + Clone>(surface: S, auth: &Arc<Authenticator>) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free")?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let principal = Principal::local(TenantId::new("default"), "operator", McpToolset::ALL.into());
    let closing = CancellationToken::new();
    let routes = rutter_mcp::http::routes(surface, &closing).layer(Extension(principal));
    let router = http::guarded_router([routes], Arc::new(RequestGate::new(Vec::new(), Arc::clone(auth))));
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
