//! Notifications arrive, once for each key, and an uncertain delivery is reported as such.

use super::bench::{Bench, done, maybe, not_done, send};
use super::receiver::Receiver;
use rutter_core::id::TenantId;
use rutter_core::tool::FailureCategory;
use rutter_tools::config::NotificationChannel;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

fn message(channel: &str) -> serde_json::Value {
    json!({ "channel": channel, "title": "Order 4711", "message": "shipped", "priority": "high" })
}

fn webhook(url: &str) -> NotificationChannel {
    NotificationChannel::Webhook { url: url.to_owned(), allow: Vec::new() }
}

#[tokio::test]
async fn the_log_has_each_notification_once_after_a_restart_too() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    let answer = bench.done(&builtins, "notify.send", "k1", message("log")).await;
    assert_eq!(answer["delivered_at"], "2026-11-16T05:30:00Z");
    bench.pass(60);
    assert_eq!(bench.done(&builtins, "notify.send", "k1", message("log")).await, answer);
    drop(builtins);
    let builtins = bench.open().await;
    assert_eq!(bench.done(&builtins, "notify.send", "k1", message("log")).await, answer);
    bench.done(&builtins, "notify.send", "k2", message("log")).await;
    let lines = bench.notifications();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["title"], &lines[0]["priority"]), (&json!("Order 4711"), &json!("high")));
}

#[tokio::test]
async fn delivered_notifications_are_listed_newest_first() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    for number in 0..25 {
        let message = json!({ "channel": "log", "title": format!("{number}"), "message": "m" });
        bench.done(&builtins, "notify.send", &format!("k{number}"), message).await;
        bench.now.fetch_add(250, std::sync::atomic::Ordering::SeqCst);
    }
    let recent = bench.done(&builtins, "notify.recent", "", json!({ "limit": 2 })).await;
    let titles: Vec<&serde_json::Value> =
        recent["notifications"].as_array().unwrap().iter().map(|found| &found["title"]).collect();
    assert_eq!(titles, ["24", "23"]);
    let mut request = bench.request("recent", "", json!({}));
    request.id.identity.tenant = TenantId::new("other");
    assert_eq!(done(send(&builtins, "notify", request).await), json!({ "notifications": [] }));
}

#[tokio::test]
async fn a_webhook_that_accepted_it_is_not_called_again() {
    let mut bench = Bench::new();
    let receiver = Receiver::new(&[204]).await;
    bench.channels.insert("ops".to_owned(), webhook(&receiver.url));
    let builtins = bench.open().await;
    let answer = bench.done(&builtins, "notify.send", "k1", message("ops")).await;
    assert_eq!(bench.done(&builtins, "notify.send", "k1", message("ops")).await, answer);
    drop(builtins);
    let builtins = bench.open().await;
    assert_eq!(bench.done(&builtins, "notify.send", "k1", message("ops")).await, answer);
    assert_eq!(receiver.count(), 1);
    let heard = receiver.heard.lock().unwrap();
    assert_eq!(
        (&heard[0].0, heard[0].1["message"].as_str()),
        (&answer["id"].as_str().unwrap().to_owned(), Some("shipped"))
    );
}

#[tokio::test]
async fn the_answer_of_a_webhook_decides_the_outcome() {
    let mut bench = Bench::new();
    let receiver = Receiver::new(&[500, 0, 401, 404, 429, 422, 200]).await;
    bench.channels.insert("ops".to_owned(), webhook(&receiver.url));
    bench.channels.insert("gone".to_owned(), webhook("http://127.0.0.1:1/"));
    let builtins = bench.open().await;
    let send = || bench.call(&builtins, "notify.send", "k1", message("ops"));
    assert_eq!(maybe(send().await), FailureCategory::Unavailable);
    assert_eq!(maybe(send().await), FailureCategory::Unavailable);
    let refused = [
        FailureCategory::Unauthorized,
        FailureCategory::NotFound,
        FailureCategory::RateLimited,
        FailureCategory::InvalidInput,
    ];
    for category in refused {
        assert_eq!(not_done(send().await).0, category);
    }
    bench.done(&builtins, "notify.send", "k1", message("ops")).await;
    assert_eq!(receiver.count(), 7);
    let gone = bench.call(&builtins, "notify.send", "k2", message("gone")).await;
    assert_eq!(not_done(gone).0, FailureCategory::Unavailable);
    assert_eq!(bench.notifications().len(), 1, "only what was delivered is on record");
}

#[tokio::test]
async fn a_program_gets_the_notification_and_its_exit_code_counts() {
    let mut bench = Bench::new();
    let script = |name: &str, text: &str| {
        let path = bench.folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        NotificationChannel::Command { argv: vec![path.display().to_string(), "fixed; arg".to_owned()], network: false }
    };
    let good = script("good", "cat >> heard; echo \"$1 $RUTTER_KEY\" >> heard");
    let bad = script("bad", "echo no line >&2; exit 3");
    let missing = NotificationChannel::Command { argv: vec!["/no/such/program".to_owned()], network: false };
    for (name, channel) in [("good", good), ("bad", bad), ("missing", missing)] {
        bench.channels.insert(name.to_owned(), channel);
    }
    let builtins = bench.open().await;
    let answer = bench.done(&builtins, "notify.send", "k1", message("good")).await;
    bench.done(&builtins, "notify.send", "k1", message("good")).await;
    let heard = std::fs::read_to_string(bench.folder.join("builtin/notify/heard")).unwrap();
    assert_eq!(heard.matches("\"shipped\"").count(), 1, "{heard}");
    assert!(heard.ends_with(&format!("fixed; arg {}\n", answer["id"].as_str().unwrap())), "{heard}");
    assert_eq!(maybe(bench.call(&builtins, "notify.send", "k2", message("bad")).await), FailureCategory::ToolError);
    let missing = bench.call(&builtins, "notify.send", "k3", message("missing")).await;
    assert_eq!(not_done(missing).0, FailureCategory::Unavailable);
}

#[tokio::test]
async fn an_unknown_channel_is_refused_with_the_known_ones() {
    let mut bench = Bench::new();
    bench.channels.insert("ops".to_owned(), webhook("http://127.0.0.1:1/"));
    let builtins = bench.open().await;
    let (category, text) = not_done(bench.call(&builtins, "notify.send", "k", message("phone")).await);
    assert_eq!(category, FailureCategory::InvalidInput);
    assert_eq!(text, "there is no channel \"phone\"; there are log, ops");
}

#[test]
fn channels_are_read_from_the_configuration() {
    let toml = "[notify.log]\nlog = {}\n[notify.ops]\nwebhook = { url = 'https://x' }\n\
                [notify.app]\ncommand = { argv = ['/usr/bin/wall'], network = true }";
    let config: rutter_tools::config::Config = toml_edit::de::from_str(toml).unwrap();
    assert_eq!(config.notify.len(), 3);
    let unknown = "[notify.ops]\nwebhook = { url = 'https://x', method = 'PUT' }";
    assert!(toml_edit::de::from_str::<rutter_tools::config::Config>(unknown).is_err());
}
