//! The report of servers and tools, and the search for tools.

use crate::registry::fixture::{Puppet, RegistryFixture, done, not_done, plain, served};
use rutter_core::port::tools::ToolGateway;
use rutter_core::tool::FailureCategory;
use rutter_tools::connector::ConnectorState;
use serde_json::{Value, json};

#[tokio::test]
async fn the_report_counts_what_happened() {
    let puppet = Puppet::new(vec![plain("x"), served("bad", json!({"inputSchema": 1}))]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    *puppet.state.lock().unwrap() = ConnectorState::Idle;
    let report = serde_json::to_value(fixture.registry.report()).unwrap();
    assert_eq!(report[0]["connector"], json!({"state": "idle"}));
    assert_eq!(report[0]["tools"], json!([]));
    fixture.call("s.x", json!({})).await;
    puppet.on_call(|_| async { not_done(FailureCategory::Timeout) });
    fixture.call("s.x", json!({})).await;
    fixture.call("s.x", json!([])).await;
    *puppet.state.lock().unwrap() =
        ConnectorState::Down { reason: "exited".to_owned(), stderr: vec!["bye".to_owned()] };
    let report: Value = serde_json::to_value(fixture.registry.report()).unwrap();
    let server = &report[0];
    assert_eq!(server["connector"], json!({"state": "down", "reason": "exited", "last_words": ["bye"]}));
    assert_eq!(server["breaker"], json!({"state": "closed", "failures": 1}));
    assert_eq!(server["left_out"][0]["name"], "bad");
    let stats = &server["tools"][0]["stats"];
    assert_eq!(
        [&stats["calls"], &stats["done"], &stats["not_done"], &stats["maybe"], &stats["in_flight"]],
        [3, 1, 2, 0, 0]
    );
    assert_eq!(stats["errors"], json!({"timeout": 1, "invalid_input": 1}));
    assert_eq!(stats["last_error"]["failure"]["category"], "invalid_input");
    assert!(stats["latency"]["p99_ms"].is_u64());
}

#[tokio::test]
async fn tools_are_found_by_words_as_soon_as_their_server_has_been_asked() {
    let git = Puppet::new(vec![
        served("commit", json!({"description": "Record changes to the repository"})),
        served("createBranch", json!({"title": "New branch", "description": "Starts a line of work"})),
    ]);
    let files = Puppet::new(vec![served("read_file", json!({"description": "Reads a file"}))]);
    let fixture = RegistryFixture::new(&[("git", &git), ("files", &files)]);
    assert!(fixture.registry.search("commit", 5).is_empty(), "nothing is known so far");
    fixture.catalog().await;
    let first = |query: &str| fixture.registry.search(query, 1).first().map(|hit| hit.name.to_string());
    assert_eq!(first("record my changes").as_deref(), Some("git.commit"));
    assert_eq!(first("create branch").as_deref(), Some("git.createBranch"));
    assert_eq!(first("files").as_deref(), Some("files.read_file"));
    assert_eq!(first("weather"), None);
    git.serve(vec![plain("weather")]);
    fixture.catalog().await;
    assert_eq!(first("weather").as_deref(), Some("git.weather"));
    assert_eq!(first("commit"), None, "it is gone");
}

#[tokio::test]
async fn a_listed_tool_stays_callable_over_a_refresh() {
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    fixture.catalog().await;
    let before = fixture.registry.definition(&rutter_core::id::ToolName::new("s.x"));
    puppet.serve(vec![plain("x"), plain("y")]);
    assert_eq!(fixture.call("s.x", json!({})).await, done(json!({"ok": true})));
    assert_eq!(fixture.registry.definition(&rutter_core::id::ToolName::new("s.x")), before);
}
