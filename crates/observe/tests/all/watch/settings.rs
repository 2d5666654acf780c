//! Creating, changing and removing webhooks: what is refused, and which values stay secret.

use crate::watch::receiver::Receiver;
use crate::watch::stage::Stage;
use rutter_observe::watch::webhook::{NewWebhook, WebhookChange};
use serde_json::{Value, json};

#[tokio::test]
async fn an_invalid_webhook_is_refused_and_not_stored() {
    let stage = Stage::new().await;
    let url = "https://example.com/hook";
    for (new, code) in [
        (json!({ "url": "https://10.0.0.1/" }), "store.invalid"),
        (json!({ "url": "http://169.254.169.254/latest" }), "store.invalid"),
        (json!({ "url": "https://127.2/" }), "store.invalid"),
        (json!({ "url": "https://user:password@example.com/" }), "store.invalid"),
        (json!({ "url": "ftp://example.com/" }), "store.invalid"),
        (json!({ "url": "nonsense" }), "store.invalid"),
        (json!({ "url": url, "events": [] }), "store.invalid"),
        (json!({ "url": url, "events": ["atempt_failed"] }), "store.invalid"),
        (json!({ "url": url, "events": ["nothing_*"] }), "store.invalid"),
        (json!({ "url": url, "events": ["*_failed"] }), "store.invalid"),
        (json!({ "url": url, "events": vec!["paused"; 51] }), "store.limit"),
        (json!({ "url": url, "plans": vec!["plan"; 101] }), "store.limit"),
        (json!({ "url": url, "description": "x".repeat(301) }), "store.invalid"),
        (json!({ "url": url, "description": "two\nlines" }), "store.invalid"),
    ] {
        let read: NewWebhook = serde_json::from_value(new.clone()).unwrap();
        let fault = stage.watch.create_webhook(&stage.tenant, &stage.operator, read).await.unwrap_err();
        assert_eq!(fault.code(), code, "{new}: {}", fault);
    }
    assert!(stage.watch.webhooks(&stage.tenant).await.unwrap().is_empty());
    stage.stop().await;
}

#[tokio::test]
async fn there_are_at_most_a_hundred_webhooks() {
    let stage = Stage::new().await;
    for number in 0..100 {
        stage.webhook(json!({ "url": format!("https://example.com/{number}"), "events": ["alert"] })).await;
    }
    let new: NewWebhook = serde_json::from_value(json!({ "url": "https://example.com/" })).unwrap();
    let fault = stage.watch.create_webhook(&stage.tenant, &stage.operator, new).await.unwrap_err();
    assert_eq!(fault.code(), "store.limit");
    stage.stop().await;
}

#[tokio::test]
async fn a_change_of_an_older_version_is_refused() {
    let stage = Stage::new().await;
    let webhook = stage.webhook(json!({ "url": "https://example.com/" })).await.webhook;
    let change = |text: &str| WebhookChange { description: Some(text.to_owned()), ..WebhookChange::default() };
    let update = async |text: &str, expected| {
        stage.watch.update_webhook(&stage.tenant, &stage.operator, &webhook.id, change(text), expected).await
    };
    assert_eq!(update("first", Some(1)).await.unwrap().version, 2);
    assert_eq!(update("late", Some(1)).await.unwrap_err().code(), "store.conflict");
    assert_eq!(update("third", None).await.unwrap().version, 3);
    let found = stage.watch.webhook(&stage.tenant, &webhook.id).await.unwrap();
    assert_eq!((found.description.as_str(), found.version), ("third", 3));
    stage.stop().await;
}

#[tokio::test]
async fn secrets_are_returned_once_and_never_again() {
    let (stage, receiver) = (Stage::new().await, Receiver::new(&[]).await);
    let made = stage.webhook(json!({ "url": receiver.url })).await;
    assert!(made.secret.starts_with("whsec_"));
    let rotated = stage.watch.rotate_webhook(&stage.tenant, &stage.operator, &made.webhook.id).await.unwrap();
    assert_ne!(made.secret, rotated.secret);
    let text = serde_json::to_string(&stage.watch.webhooks(&stage.tenant).await.unwrap()).unwrap();
    assert!(!text.contains("whsec_"), "{text}");
    stage.save("plan").await;
    let arrival = receiver.hears_kind("plan_saved").await;
    assert!(!String::from_utf8_lossy(&arrival.bytes).contains("whsec_"));
    stage.stop().await;
}

#[tokio::test]
async fn a_removed_webhook_gets_nothing_more_and_cannot_be_removed_twice() {
    let (stage, receiver) = (Stage::new().await, Receiver::new(&[]).await);
    let webhook = stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await.webhook;
    let remove = async || stage.watch.delete_webhook(&stage.tenant, &stage.operator, &webhook.id).await;
    remove().await.unwrap();
    assert_eq!(remove().await.unwrap_err().code(), "store.not_found");
    let other = Receiver::new(&[]).await;
    stage.webhook(json!({ "url": other.url, "events": ["plan_saved"] })).await;
    stage.save("plan").await;
    other.has_heard(1).await;
    assert!(receiver.arrivals().is_empty());
    stage.stop().await;
}

#[tokio::test]
async fn every_change_of_a_webhook_is_in_the_ledger() {
    let (stage, receiver) = (Stage::new().await, Receiver::new(&[]).await);
    stage.webhook(json!({ "url": receiver.url, "events": ["setting_changed"] })).await;
    let webhook = stage.webhook(json!({ "url": "https://example.com/" })).await.webhook;
    let off = WebhookChange { enabled: Some(false), ..WebhookChange::default() };
    stage.watch.update_webhook(&stage.tenant, &stage.operator, &webhook.id, off, None).await.unwrap();
    stage.watch.rotate_webhook(&stage.tenant, &stage.operator, &webhook.id).await.unwrap();
    stage.watch.delete_webhook(&stage.tenant, &stage.operator, &webhook.id).await.unwrap();
    let arrivals = receiver.has_heard(5).await;
    let values: Vec<Value> = arrivals.iter().map(|arrival| arrival.body["data"]["event"]["change"].clone()).collect();
    assert_eq!(values, ["created", "created", "switched off", "given a new secret", "removed"]);
    assert_eq!(arrivals[4].body["data"]["event"]["id"], webhook.id);
    assert_eq!(arrivals[4].body["data"]["actor"]["name"], "operator");
    stage.stop().await;
}
