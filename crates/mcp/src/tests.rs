//! A tool that panics, called over the protocol: the caller gets an error, and the next call works.

use crate::McpSurface;
use crate::tool::{McpToolDefinition, ToolBehavior, ToolSpec};
use rmcp::ServiceExt;
use rutter_app::principal::{McpToolset, Principal};
use rutter_app::runtime::Runtime;
use rutter_core::id::TenantId;
use rutter_testkit::server::installation::options;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_panics_is_answered_with_an_error_and_its_permit_is_free_again() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::open(options(folder.path(), "")).await.unwrap();
    let app = Arc::clone(&runtime.app);
    let places = app.request_permits.available_permits();
    let about = ToolSpec {
        name: "stumble",
        title: "Stumble",
        description: "Panics.",
        behavior: ToolBehavior::Reads,
        toolsets: &[McpToolset::Default],
    };
    let tool = McpToolDefinition::new::<Value, Value, _>(about, |_, _| async { panic!("on purpose") });
    let principal = Principal::local(TenantId::new("default"), "operator", [McpToolset::Default].into());
    let tools = Box::leak(Box::new([tool]));
    let surface = McpSurface { tools, ..McpSurface::of(Arc::clone(&app), principal) };
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
    assert_eq!(app.request_permits.available_permits(), places);
}
