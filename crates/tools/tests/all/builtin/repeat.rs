//! Calls that are repeated with their key, because an answer was lost or two came at once: one effect, one answer.

use super::bench::{Bench, maybe, not_done};
use super::receiver::Receiver;
use rutter_core::port::register::RegisterKind;
use rutter_core::tool::FailureCategory;
use rutter_tools::config::NotificationChannel;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// Each tool that stores something, what it is called with, and of which kind it then has one note.
fn calls() -> Vec<(&'static str, Value, RegisterKind)> {
    vec![
        ("timer.set", json!({ "name": "tea", "message": "m", "after": "3m" }), RegisterKind::Timer),
        ("memory.store", json!({ "text": "once", "expires_after": "2h" }), RegisterKind::Memory),
        ("notify.send", json!({ "channel": "log", "title": "t", "message": "m" }), RegisterKind::Notification),
        ("timer.cancel", json!({ "name": "never set" }), RegisterKind::ToolReply),
    ]
}

#[tokio::test]
async fn a_call_whose_answer_was_lost_gets_it_when_it_is_repeated() {
    for (tool, parameters, kind) in calls() {
        let expected = {
            let bench = Bench::new();
            let builtins = bench.open().await;
            bench.done(&builtins, tool, "k", parameters.clone()).await
        };
        let bench = Bench::new();
        let builtins = bench.open().await;
        bench.register().answers_lost.store(1, Ordering::SeqCst);
        let outcome = bench.call(&builtins, tool, "k", parameters.clone()).await;
        assert_eq!(maybe(outcome), FailureCategory::Unavailable, "{tool}");
        bench.pass(60);
        assert_eq!(bench.done(&builtins, tool, "k", parameters.clone()).await, expected, "{tool}");
        assert_eq!(bench.done(&builtins, tool, "k", parameters).await, expected, "{tool}");
        assert_eq!(bench.notes(kind).len(), 1, "{tool}");
    }
}

#[tokio::test]
async fn what_could_not_be_stored_did_not_happen() {
    for (tool, parameters, kind) in calls() {
        let bench = Bench::new();
        let builtins = bench.open().await;
        *bench.register().writes_left.lock().unwrap() = Some(0);
        let outcome = bench.call(&builtins, tool, "k", parameters.clone()).await;
        assert_eq!(not_done(outcome).0, FailureCategory::Unavailable, "{tool}");
        assert_eq!(bench.notes(kind), [], "{tool}");
        *bench.register().writes_left.lock().unwrap() = None;
        bench.done(&builtins, tool, "k", parameters).await;
        assert_eq!(bench.notes(kind).len(), 1, "{tool}");
    }
}

#[tokio::test]
async fn two_calls_with_one_key_at_once_have_one_effect() {
    for (tool, parameters, kind) in calls() {
        let bench = Bench::new();
        let builtins = bench.open().await;
        let call = || bench.done(&builtins, tool, "k", parameters.clone());
        let (one, other, third) = tokio::join!(call(), call(), call());
        assert!(one == other && other == third, "{tool}: {one} {other} {third}");
        assert_eq!(bench.notes(kind).len(), 1, "{tool}");
    }
}

#[tokio::test]
async fn a_delivery_that_could_not_be_stored_may_have_happened() {
    let mut bench = Bench::new();
    let receiver = Receiver::new(&[200]).await;
    let webhook = NotificationChannel::Webhook { url: receiver.url.clone(), allow: Vec::new() };
    bench.channels.insert("ops".to_owned(), webhook);
    let builtins = bench.open().await;
    let message = json!({ "channel": "ops", "title": "t", "message": "m" });
    *bench.register().writes_left.lock().unwrap() = Some(0);
    let outcome = bench.call(&builtins, "notify.send", "k", message.clone()).await;
    assert_eq!(maybe(outcome), FailureCategory::Unavailable);
    *bench.register().writes_left.lock().unwrap() = None;
    bench.done(&builtins, "notify.send", "k", message).await;
    let heard = receiver.heard.lock().unwrap();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0].0, heard[1].0, "the receiver can recognize the repetition");
}
