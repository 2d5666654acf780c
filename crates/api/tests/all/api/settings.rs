//! Webhooks, keys, alerts and analytics over HTTP.

use crate::api::harbour::{Client, Harbour, PATIENCE, heard, notes};
use reqwest::Method;
use rutter_app::auth::AccessScope;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A receiver that accepts everything, and returns the bodies.
async fn receiver() -> (String, mpsc::UnboundedReceiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
                loop {
                    let text = String::from_utf8_lossy(&bytes).to_lowercase();
                    if let Some((head, body)) = text.split_once("\r\n\r\n") {
                        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                            break;
                        }
                    }
                    match stream.read(&mut piece).await {
                        Ok(0) | Err(_) => return,
                        Ok(count) => bytes.extend_from_slice(&piece[..count]),
                    }
                }
                let body = String::from_utf8(bytes).unwrap();
                let body = body.split_once("\r\n\r\n").unwrap().1;
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
                let _ = stream.write_all(answer).await;
                let _ = sender.send(serde_json::from_str(body).unwrap());
            });
        }
    });
    (url, receiver)
}

async fn patch(client: &Client, path: &str, tag: &str, body: Value) -> crate::api::harbour::Answer {
    heard(client.request(Method::PATCH, path).header("if-match", tag).json(&body)).await
}

#[tokio::test]
async fn a_webhook_is_created_tested_changed_and_removed() {
    let harbour = Harbour::new().await;
    let operator = harbour.operator();
    let (url, mut received) = receiver().await;
    let new = json!({ "url": url, "events": ["execution_ended"] });
    let made = operator.post_with("/webhooks", "idempotency-key", "w-1", new.clone()).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert!(made.body["secret"].as_str().unwrap().starts_with("whsec_"));
    let again = operator.post_with("/webhooks", "idempotency-key", "w-1", new).await;
    assert_eq!((again.status, &again.body["id"]), (201, &made.body["id"]));
    assert!(again.body.get("secret").is_none(), "a secret is returned once");
    assert_eq!(operator.get("/webhooks").await.good()["items"].as_array().unwrap().len(), 1);
    let path = format!("/webhooks/{}", made.body["id"].as_str().unwrap());

    let tested = operator.post(&format!("{path}/test"), json!({})).await.good();
    assert_eq!((&tested["delivered"], &tested["status"]), (&json!(true), &json!(200)), "{tested}");
    assert_eq!(received.recv().await.unwrap()["type"], "dev.rutter.test.v1");
    operator.execute(&notes("a", 1)).await;
    let json = tokio::time::timeout(PATIENCE, received.recv()).await.unwrap().unwrap();
    assert!(json["type"].as_str().unwrap().contains("execution"), "{json}");
    let deadline = Instant::now() + PATIENCE;
    let delivered = loop {
        let found = operator.get("/deliveries?state=delivered").await.good();
        if let Some(delivery) = found["items"].get(0) {
            break delivery.clone();
        }
        assert!(Instant::now() < deadline, "the delivery is recorded");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let number = delivered["number"].as_u64().unwrap();
    let detail = operator.get(&format!("/deliveries/{number}")).await.good();
    assert_eq!(detail["all_tries"].as_array().unwrap().len(), 1);
    operator.post(&format!("/deliveries/{number}/redeliver"), json!({})).await.good();
    let twice = tokio::time::timeout(PATIENCE, received.recv()).await.unwrap().unwrap();
    assert_eq!(twice["id"], json["id"], "with the same id");

    let tag = operator.get(&path).await.header("etag").to_owned();
    patch(&operator, &path, "\"99\"", json!({ "enabled": false })).await.refused(412, "server.precondition");
    let changed = patch(&operator, &path, &tag, json!({ "enabled": false })).await;
    assert_eq!(changed.good()["enabled"], false);
    let rotated = operator.post(&format!("{path}/rotate"), json!({})).await.good();
    assert_ne!(rotated["secret"], made.body["secret"]);
    assert_eq!(heard(operator.request(Method::DELETE, &path)).await.status, 204);
    operator.get(&path).await.refused(404, "store.not_found");
    operator.get("/deliveries/18446744073709551615").await.refused(404, "store.not_found");
    operator.get("/deliveries?state=lost").await.refused(400, "server.arguments");
    let inside = json!({ "url": "http://169.254.169.254/latest" });
    assert_eq!(operator.post("/webhooks", inside).await.status, 400, "internal addresses are refused");
    harbour.agent().get("/webhooks").await.refused(403, "server.not_allowed");
}

#[tokio::test]
async fn a_key_is_created_shown_once_and_revoked() {
    let harbour = Harbour::new().await;
    let operator = harbour.operator();
    let new = json!({ "name": "crane", "scopes": ["read"], "expires_in": "30d" });
    let made = operator.post_with("/keys", "idempotency-key", "key-1", new.clone()).await;
    assert_eq!((made.status, &made.body["status"]), (201, &json!("active")), "{}", made.text);
    let again = operator.post_with("/keys", "idempotency-key", "key-1", new).await;
    assert_eq!((again.status, again.body.get("secret")), (201, None), "{}", again.text);
    let crane = harbour.holding(made.body["secret"].as_str().unwrap());
    crane.get("/plans").await.good();
    let listed = operator.get("/keys").await.good();
    assert_eq!((&listed["items"][0]["name"], listed["items"][0].get("secret")), (&json!("crane"), None));
    let path = format!("/keys/{}", made.body["id"].as_str().unwrap());
    let revoked = heard(operator.request(Method::DELETE, &path)).await.good();
    assert_eq!(revoked["status"], "revoked");
    crane.get("/plans").await.refused(401, "server.unauthorized");
    let wrong = json!({ "name": "x", "scopes": ["read"], "expires_in": "soon" });
    operator.post("/keys", wrong).await.refused(400, "server.arguments");
    let admin = harbour.with_key("admin", &[AccessScope::Admin]).await;
    let more = json!({ "name": "y", "scopes": ["approve"] });
    admin.post("/keys", more).await.refused(403, "server.not_allowed");
    harbour.agent().get("/keys").await.refused(403, "server.not_allowed");
}

#[tokio::test]
async fn analytics_are_returned_as_json_and_csv() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    client.execute(&notes("a", 2)).await;
    let size = client.get("/ledger").await.good()["size"].as_u64().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while harbour.app.insight.position() < size {
        assert!(Instant::now() < deadline, "everything is counted");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let report = client.get("/analytics?by=plan").await.good();
    assert_eq!((&report["rows"][0]["key"], &report["rows"][0]["ended"]["completed"]), (&json!("a"), &json!(1)));
    assert_eq!(report["total"]["calls"], 2);
    let table = client.get("/analytics.csv?by=tool").await;
    assert!(table.header("content-type").starts_with("text/csv") && table.text.contains("memory.store"));
    assert_eq!(client.get("/analytics/hours").await.good()["items"].as_array().unwrap().len(), 24);
    client.get("/analytics?from=today").await.refused(400, "server.arguments");
    client.get("/analytics?by=mood").await.refused(400, "server.arguments");
    client.get("/analytics?from=1980-01-01").await.refused(422, "store.limit");
    client.get("/analytics?from=2026-11-16&until=2026-11-15").await.refused(400, "store.invalid");
    client.get("/analytics/hours?count=0").await.refused(400, "server.arguments");
}

#[tokio::test]
async fn rules_and_silences_are_stored_and_alerts_fire() {
    let harbour = Harbour::new().await;
    let (agent, operator) = (harbour.agent(), harbour.operator());
    let rules = agent.get("/rules").await.good();
    assert!(rules["items"].as_array().unwrap().iter().any(|rule| rule["id"] == "in_doubt"));
    let new = json!({ "condition": { "kind": "execution_failed" }, "severity": "critical", "plans": ["fails"] });
    agent.post("/rules", new.clone()).await.refused(403, "server.not_allowed");
    let rule = operator.post("/rules", new).await;
    assert_eq!(rule.status, 201, "{}", rule.text);
    let path = format!("/rules/{}", rule.body["id"].as_str().unwrap());
    patch(&operator, &path, "\"7\"", json!({ "enabled": false })).await.refused(412, "server.precondition");
    let changed = patch(&operator, &path, "\"1\"", json!({ "severity": "warning" })).await.good();
    assert_eq!((&changed["severity"], &changed["version"]), (&json!("warning"), &json!(2)));
    patch(&operator, "/rules/nowhere", "*", json!({})).await.refused(404, "store.not_found");

    let silence = json!({ "rule": "execution_stuck", "until": "2099-01-01T00:00:00Z", "reason": "at anchor" });
    assert_eq!(agent.post("/silences", silence).await.status, 400, "the silence is too long");
    let plan = json!({ "name": "fails", "on_failure": "cancel_all", "steps": [ { "id": "get", "tool": "memory.store",
        "cancellable": "irreversible", "parameters": { "text": "y", "expires_after": "a while" } } ] });
    assert_eq!(agent.execute(&plan).await["status"], "failed");
    let deadline = Instant::now() + PATIENCE;
    let alert = loop {
        let found = agent.get("/alerts?state=firing").await.good();
        if let Some(alert) = found["items"].get(0) {
            break alert.clone();
        }
        assert!(Instant::now() < deadline, "the alert fires");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let known = format!("/alerts/{}/acknowledge", alert["id"].as_str().unwrap());
    let known = operator.post(&known, json!({ "note": "on it" })).await.good();
    assert_eq!(known["acknowledged"]["note"], "on it");
    agent.get("/alerts?state=loud").await.refused(400, "server.arguments");
    assert_eq!(heard(operator.request(Method::DELETE, &path)).await.status, 204);
    heard(operator.request(Method::DELETE, &path)).await.refused(404, "store.not_found");
    heard(operator.request(Method::DELETE, "/silences/nowhere")).await.refused(404, "store.not_found");
}
