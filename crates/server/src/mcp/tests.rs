//! A tool that panics, called over the protocol: whoever asked is told, and the next one is served.

#[path = "../../tests/mcp/ground.rs"]
mod ground;

use crate::desk::{Desk, Parts, Settings};
use crate::guest::{Guest, Toolset};
use crate::mcp::Surface;
use crate::mcp::tool::{About, Nature, Tool};
use ground::Ground;
use rmcp::ServiceExt;
use rutter_core::id::TenantId;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_panics_is_answered_with_an_error_and_its_place_is_free_again() {
    let folder = tempfile::tempdir().unwrap();
    let desk = desk(folder.path()).await;
    let places = desk.places.available_permits();
    let about = About {
        name: "stumble",
        title: "Stumble",
        description: "Panics.",
        nature: Nature::Reads,
        toolsets: &[Toolset::Default],
    };
    let tool = Tool::new::<Value, Value, _>(about, |_, _| async { panic!("as it was told to") });
    let guest = Guest::local(TenantId::new("default"), "operator", [Toolset::Default].into());
    let tools = Box::leak(Box::new([tool]));
    let surface = Surface { tools, ..Surface::of(Arc::clone(&desk), guest) };
    let (near, far) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move { surface.serve(far).await.unwrap().waiting().await });
    let (reader, mut writer) = tokio::io::split(near);
    let mut lines = BufReader::new(reader).lines();
    for id in 1..=3 {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
        });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "stumble", "arguments": {}, "_meta": meta } });
        writer.write_all(format!("{call}\n").as_bytes()).await.unwrap();
        let line = tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await;
        let line = line.expect("there is an answer").unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().starts_with("server.internal"), "{answer}");
    }
    assert_eq!(desk.places.available_permits(), places);
}

async fn desk(folder: &Path) -> Arc<Desk> {
    let Ground { clock, store, tooling, engine, post } = Ground::lay(folder, "").await;
    Desk::open(Parts {
        engine,
        store,
        tools: tooling.registry,
        post,
        bell: tooling.bells,
        collector: None,
        clock,
        tokens: Vec::new(),
        settings: Settings { ask_at_client: true },
        seal: [7; 32],
    })
    .await
    .unwrap()
}
