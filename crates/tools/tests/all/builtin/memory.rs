//! Stored memories are found by their words until they expire.

use super::bench::{Bench, done, not_done, send};
use rutter_core::id::TenantId;
use rutter_core::tool::FailureCategory;
use serde_json::{Value, json};

fn texts(found: &Value) -> Vec<&str> {
    found["memories"].as_array().unwrap().iter().map(|memory| memory["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn memories_are_found_by_their_words_and_importance() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    for (key, text, importance) in [
        ("1", "Ann prefers tea with milk", 0.9),
        ("2", "Ben prefers coffee", 0.1),
        ("3", "Cleo prefers tea", 0.1),
        ("4", "the harbour office closes at noon", 0.5),
    ] {
        let stored = json!({ "text": text, "type": "preference", "importance": importance, "tags": ["drink"] });
        bench.done(&builtins, "memory.store", key, stored).await;
    }
    let search = |query: &str| json!({ "query": query, "limit": 3 });
    let found = bench.done(&builtins, "memory.search", "", search("who likes TEA?")).await;
    assert_eq!(texts(&found), ["Ann prefers tea with milk", "Cleo prefers tea"]);
    let found = bench.done(&builtins, "memory.search", "", search("harbour")).await;
    assert_eq!(texts(&found), ["the harbour office closes at noon"]);
    assert_eq!(texts(&bench.done(&builtins, "memory.search", "", search("drink")).await).len(), 3);
    assert_eq!(texts(&bench.done(&builtins, "memory.search", "", search("whale")).await).len(), 0);
}

#[tokio::test]
async fn a_repeated_store_keeps_one_and_answers_the_same_after_a_restart_too() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    let stored = json!({ "text": "once", "expires_after": "2h" });
    let answer = bench.done(&builtins, "memory.store", "k", stored.clone()).await;
    assert_eq!(answer["expires_at"], "2026-11-16T07:30:00Z");
    bench.pass(60);
    assert_eq!(bench.done(&builtins, "memory.store", "k", stored.clone()).await, answer);
    drop(builtins);
    let builtins = bench.open().await;
    assert_eq!(bench.done(&builtins, "memory.store", "k", stored).await, answer);
    assert_eq!(texts(&bench.done(&builtins, "memory.recent", "", json!({})).await), ["once"]);
}

#[tokio::test]
async fn expired_memories_are_not_known_any_more() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    bench.done(&builtins, "memory.store", "1", json!({ "text": "short lived", "expires_after": "1h" })).await;
    bench.done(&builtins, "memory.store", "2", json!({ "text": "long lived", "type": "event" })).await;
    assert_eq!(texts(&bench.done(&builtins, "memory.recent", "", json!({})).await), ["long lived", "short lived"]);
    let events = bench.done(&builtins, "memory.recent", "", json!({ "type": "event" })).await;
    assert_eq!(texts(&events), ["long lived"]);
    bench.pass(3_600);
    assert_eq!(texts(&bench.done(&builtins, "memory.recent", "", json!({})).await), ["long lived"]);
    let found = bench.done(&builtins, "memory.search", "", json!({ "query": "lived" })).await;
    assert_eq!(texts(&found), ["long lived"]);
}

#[tokio::test]
async fn tenants_do_not_find_each_others_memories() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    bench.done(&builtins, "memory.store", "k", json!({ "text": "private matter" })).await;
    for (tool, parameters) in [("search", json!({ "query": "private" })), ("recent", json!({}))] {
        let mut request = bench.request(tool, "", parameters);
        request.id.identity.tenant = TenantId::new("other");
        assert_eq!(texts(&done(send(&builtins, "memory", request).await)).len(), 0);
    }
}

#[tokio::test]
async fn invalid_parameters_are_refused() {
    let bench = Bench::new();
    let builtins = bench.open().await;
    for (parameters, word) in [
        (json!({ "text": "" }), "text is empty"),
        (json!({ "text": "x", "importance": 1.5 }), "1.5"),
        (json!({ "text": "x", "expires_after": "later" }), "later"),
        (json!({ "text": "x", "tags": vec!["t"; 21] }), "21 tags"),
        (json!({ "text": "x", "colour": "red" }), "colour"),
    ] {
        let (category, message) = not_done(bench.call(&builtins, "memory.store", "k", parameters).await);
        assert!(category == FailureCategory::InvalidInput && message.contains(word), "{message}");
    }
    let (_, message) = not_done(bench.call(&builtins, "memory.recent", "", json!({ "limit": 101 })).await);
    assert!(message.contains("101"), "{message}");
}
