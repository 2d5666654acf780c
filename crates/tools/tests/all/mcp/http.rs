//! Servers over HTTP that refuse, forget, hang up, or send too much.

use crate::mcp::fixture::*;
use rutter_core::time::Millis;
use rutter_core::tool::{CallOutcome, FailureCategory};
use rutter_tools::config::mcp::{McpHttpConfig, McpServerConfig, McpTransport};
use rutter_tools::connector::Connector;
use rutter_tools::mcp::McpServer;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Far {
    server: McpServer,
    folder: tempfile::TempDir,
    child: Child,
}

impl Drop for Far {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

async fn far(mode: &str) -> Far {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/http_server.py");
    let child = Command::new("python3").arg(script).arg(mode).arg(folder.path()).spawn().unwrap();
    let file = folder.path().join("port");
    until(|| file.exists()).await;
    let url = format!("http://127.0.0.1:{}/mcp", std::fs::read_to_string(&file).unwrap());
    let headers = [("Authorization".to_owned(), "Bearer token".to_owned())].into();
    let server = McpServerConfig::new(McpTransport::Http(McpHttpConfig { url: url.parse().unwrap(), headers }));
    let launcher = launcher(Arc::new(Pids::default()));
    Far { server: McpServer::with_limits("far", &server, launcher, patience()), folder, child }
}

impl Far {
    async fn call(&self, tool: &str, parameters: Value) -> CallOutcome {
        self.server.call(request(tool, parameters).0).await
    }

    fn traces(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn servers_of_both_eras_are_called_with_the_configured_headers() {
    for mode in ["modern", "legacy"] {
        let far = far(mode).await;
        assert_eq!(far.server.list().await.unwrap().len(), 2);
        assert_eq!(text_of(&done(far.call("work", json!({})).await)), "worked");
        assert_eq!(far.traces("effects").len(), 1);
        assert_eq!(far.traces("authorization"), ["Bearer token"]);
        far.server.close().await;
        assert_eq!(far.traces("deleted").len(), usize::from(mode == "legacy"));
    }
}

#[tokio::test]
async fn a_refusal_says_whether_anything_can_have_happened() {
    let far = far("modern").await;
    let status = |status: u16, headers: Value| far.call("status", json!({"status": status, "headers": headers}));
    let limited = not_done(status(429, json!({"Retry_After": "7"})).await, FailureCategory::RateLimited);
    assert_eq!(limited.retry_after, Some(Millis(7_000)));
    let busy = not_done(status(503, json!({"Retry_After": "2"})).await, FailureCategory::Unavailable);
    assert_eq!(busy.retry_after, Some(Millis(2_000)));
    not_done(status(401, json!({})).await, FailureCategory::Unauthorized);
    not_done(status(403, json!({})).await, FailureCategory::Unauthorized);
    not_done(status(404, json!({})).await, FailureCategory::NotFound);
    not_done(status(413, json!({})).await, FailureCategory::Protocol);
    not_done(status(307, json!({"Location": "/elsewhere"})).await, FailureCategory::Protocol);
    maybe(status(503, json!({})).await, FailureCategory::Unavailable);
    let broken = maybe(status(500, json!({})).await, FailureCategory::Unavailable);
    assert!(!broken.message.contains("not now"), "the body was repeated: {broken}");
    maybe(status(400, json!({})).await, FailureCategory::Protocol);
    done(far.call("work", json!({})).await);
}

#[tokio::test]
async fn credentials_that_are_not_accepted_are_named() {
    let far = far("locked").await;
    let failure = not_done(far.call("work", json!({})).await, FailureCategory::Unauthorized);
    assert!(failure.message.contains("check `headers`"), "{failure}");
}

#[tokio::test]
async fn a_server_that_forbids_the_modern_handshake_gets_no_legacy_one() {
    let far = far("forbidden").await;
    not_done(far.call("work", json!({})).await, FailureCategory::Unauthorized);
    assert_eq!(far.traces("methods"), ["server/discover"]);
}

#[tokio::test]
async fn arguments_that_travel_as_headers_do_so_in_the_first_call() {
    let far = far("modern").await;
    assert_eq!(text_of(&done(far.call("route", json!({"region": "north"})).await)), "routed");
}

#[tokio::test]
async fn missing_fields_of_an_answer_get_the_defaults_of_the_form() {
    let far = far("legacy").await;
    std::fs::write(far.folder.path().join("go"), "").unwrap();
    let ear = RecordingReporter { answer: Some(json!({"who": "operator"})), ..RecordingReporter::default() };
    let (asking, _, _) = request_with("ask", json!({"who": "who?"}), ear);
    let json = done(far.server.call(asking).await);
    assert_eq!(json["content"], json!({"who": "operator", "how": "well"}));
}

#[tokio::test]
async fn a_stream_that_ends_early_is_maybe() {
    let far = far("modern").await;
    maybe(far.call("cut", json!({})).await, FailureCategory::Unavailable);
    assert_eq!(far.traces("effects"), ["cut"]);
    done(far.call("work", json!({})).await);
}

#[tokio::test]
async fn cancelling_closes_the_stream_of_a_modern_server() {
    let far = far("modern").await;
    let (request, _, cancel) = request("wait", json!({}));
    let (outcome, ()) = tokio::join!(far.server.call(request), async {
        until(|| !far.traces("waiting").is_empty()).await;
        cancel.cancel();
    });
    maybe(outcome, FailureCategory::Cancelled);
    until(|| !far.traces("closed").is_empty()).await;
}

#[tokio::test]
async fn a_legacy_server_is_notified_of_a_call_that_takes_too_long() {
    let far = far("legacy").await;
    far.server.list().await.unwrap();
    let (mut request, ..) = request("wait", json!({}));
    request.timeout = Duration::from_millis(500);
    maybe(far.server.call(request).await, FailureCategory::Timeout);
    until(|| far.traces("notified").contains(&"notifications/cancelled".to_owned())).await;
    done(far.call("work", json!({})).await);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_maybe_and_costs_only_its_call() {
    for tool in ["huge", "huge-stream"] {
        let far = far("modern").await;
        let began = Instant::now();
        let outcome = far.call(tool, json!({})).await;
        assert!(matches!(outcome, CallOutcome::Maybe(_)), "{outcome:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!(far.traces("effects").len(), 1);
        done(far.call("work", json!({})).await);
    }
}

#[tokio::test]
async fn an_expired_session_is_not_done_and_a_new_one_is_made_for_the_next_call() {
    let far = far("legacy").await;
    done(far.call("forget", json!({})).await);
    let failure = not_done(far.call("work", json!({})).await, FailureCategory::Unavailable);
    assert!(failure.message.contains("session has expired"), "{failure}");
    assert!(far.traces("effects").is_empty());
    let deadline = Instant::now() + SOON;
    while !matches!(far.call("work", json!({})).await, CallOutcome::Done { .. }) {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(far.traces("effects").len(), 1);
}

#[tokio::test]
async fn a_server_that_is_gone_is_not_done() {
    let mut far = far("modern").await;
    done(far.call("work", json!({})).await);
    far.child.kill().unwrap();
    far.child.wait().unwrap();
    not_done(far.call("work", json!({})).await, FailureCategory::Unavailable);
    assert_eq!(far.traces("effects").len(), 1);
}

#[tokio::test]
async fn questions_of_two_calls_at_once_go_to_their_own_callers() {
    let far = far("legacy").await;
    far.server.list().await.unwrap();
    let ear = |name: &str| RecordingReporter { answer: Some(json!({"who": name})), ..RecordingReporter::default() };
    let (first, first_ear, _) = request_with("ask", json!({"who": "first"}), ear("first"));
    let (second, second_ear, _) = request_with("ask", json!({"who": "second"}), ear("second"));
    let (first, second, ()) = tokio::join!(far.server.call(first), far.server.call(second), async {
        until(|| far.traces("asking").len() == 2).await;
        std::fs::write(far.folder.path().join("go"), "").unwrap();
    });
    assert_eq!(done(first)["content"]["who"], "first");
    assert_eq!(done(second)["content"]["who"], "second");
    assert_eq!(first_ear.asked.lock().unwrap()[0].message, "first");
    assert_eq!(second_ear.asked.lock().unwrap()[0].message, "second");
}
