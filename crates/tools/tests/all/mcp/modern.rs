//! A server that speaks only the protocol of 2026-07-28: questions in rounds, work elsewhere under a ticket, changes.

use crate::mcp::fixture::*;
use rutter_core::tool::FailureCategory;
use rutter_tools::connector::Connector;
use serde_json::json;
use std::time::{Duration, Instant};

fn yes() -> RecordingReporter {
    RecordingReporter { answer: Some(json!({"yes": true})), ..RecordingReporter::default() }
}

#[tokio::test]
async fn a_modern_server_is_listed_and_called() {
    let modern = scripted("modern");
    assert_eq!(modern.server.list().await.unwrap().len(), 2);
    assert_eq!(text_of(&done(modern.call("work", json!({"text": "new"})).await)), "worked");
    assert_eq!(modern.traces("effects"), ["new"]);
    assert_eq!(modern.traces("starts").len(), 1);
}

#[tokio::test]
async fn changes_of_a_modern_server_are_noticed() {
    let modern = scripted("modern-changes");
    modern.server.list().await.unwrap();
    modern.trace_appears("listening").await;
    let mut changes = modern.server.changes();
    done(modern.call("work", json!({})).await);
    tokio::time::timeout(SOON, changes.changed()).await.unwrap().unwrap();
}

#[tokio::test]
async fn questions_in_rounds_are_answered_up_to_a_limit() {
    let modern = scripted("modern");
    let (request, ear, _) = request_with("rounds", json!({"rounds": 3}), yes());
    let result = done(modern.server.call(request).await);
    assert_eq!(result["rounds"], 3);
    assert_eq!(result["last"]["sure"], json!({"action": "accept", "content": {"yes": true}}));
    assert_eq!(ear.asked.lock().unwrap().len(), 3);
    assert_eq!(modern.traces("effects"), ["rounds"]);

    let (request, ear, _) = request_with("rounds", json!({"rounds": 4}), yes());
    maybe(modern.server.call(request).await, FailureCategory::Protocol);
    assert_eq!(ear.asked.lock().unwrap().len(), 3);
    assert_eq!(modern.traces("effects").len(), 1);
}

#[tokio::test]
async fn a_question_is_continued_by_another_process() {
    let modern = scripted("modern");
    let (request, ear, _) = request_with("rounds", json!({"rounds": 2}), yes());
    done(modern.server.call(request).await);
    let kept = ear.asked.lock().unwrap()[1].continuation.clone();
    assert!(kept.is_some());

    let other = scripted("modern");
    let (mut resumed, ear, _) = request_with("rounds", json!({"rounds": 2}), yes());
    resumed.continuation = kept.clone();
    let result = done(other.server.call(resumed).await);
    assert_eq!(result, json!({"rounds": 2, "last": {"sure": {"action": "accept", "content": {"yes": true}}}}));
    let asked = ear.asked.lock().unwrap().clone();
    let [question] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((question.message.as_str(), &question.continuation), ("round 1", &kept));
    assert_eq!(other.traces("effects"), ["rounds"]);

    let (mut unreadable, ear, _) = request_with("rounds", json!({"rounds": 2}), yes());
    unreadable.continuation = Some(std::sync::Arc::new(json!("what?")));
    maybe(other.server.call(unreadable).await, FailureCategory::Protocol);
    assert!(ear.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_refusal_after_a_question_is_maybe() {
    let modern = scripted("modern");
    let (refused, ..) = request_with("rounds", json!({"rounds": 2, "code": -32602}), yes());
    maybe(modern.server.call(refused).await, FailureCategory::InvalidInput);
}

#[tokio::test]
async fn a_ticket_is_recorded_before_it_is_followed() {
    let modern = scripted("modern");
    let (request, ear, _) = request("elsewhere", json!({"kind": "works"}));
    let result = done(modern.server.call(request).await);
    assert_eq!(text_of(&result), "done elsewhere");
    assert_eq!(*ear.accepted.lock().unwrap(), ["ticket-works"]);
    assert_eq!(modern.traces("effects"), ["elsewhere"]);
}

#[tokio::test]
async fn a_call_with_a_ticket_is_only_asked_about() {
    let modern = scripted("modern");
    let (mut request, ear, _) = request("elsewhere", json!({"kind": "works"}));
    request.ticket = Some("ticket-works".to_owned());
    assert_eq!(text_of(&done(modern.server.call(request).await)), "done elsewhere");
    assert!(ear.accepted.lock().unwrap().is_empty());
    assert!(modern.traces("effects").is_empty(), "the call was sent again");

    let (mut unknown, ..) = crate::mcp::fixture::request("elsewhere", json!({"kind": "works"}));
    unknown.ticket = Some("ticket-lost".to_owned());
    maybe(modern.server.call(unknown).await, FailureCategory::NotFound);
    assert!(modern.traces("effects").is_empty());
}

#[tokio::test]
async fn work_elsewhere_outlives_the_connection() {
    let modern = scripted("modern");
    let (request, ..) = request("elsewhere", json!({"kind": "dies"}));
    assert_eq!(text_of(&done(modern.server.call(request).await)), "survived");
    assert_eq!(modern.traces("starts").len(), 2);
    assert_eq!(modern.traces("effects").len(), 1);
}

#[tokio::test]
async fn work_elsewhere_can_ask_and_can_fail() {
    let modern = scripted("modern");
    let (asking, ear, _) = request_with("elsewhere", json!({"kind": "asks"}), yes());
    done(modern.server.call(asking).await);
    assert_eq!(ear.asked.lock().unwrap()[0].message, "go on?");
    let (failing, ..) = request("elsewhere", json!({"kind": "fails"}));
    maybe(modern.server.call(failing).await, FailureCategory::Internal);
}

#[tokio::test]
async fn work_elsewhere_is_called_off_with_the_call() {
    let modern = scripted("modern");
    let (mut slow, ..) = request("elsewhere", json!({"kind": "endless"}));
    slow.timeout = Duration::from_secs(3);
    maybe(modern.server.call(slow).await, FailureCategory::Timeout);
    assert_eq!(modern.traces("stopped"), ["ticket-endless"]);

    let modern = scripted("modern");
    let (request, ear, cancel) = request("elsewhere", json!({"kind": "endless"}));
    let began = Instant::now();
    let (outcome, ()) = tokio::join!(modern.server.call(request), async {
        until(|| !ear.accepted.lock().unwrap().is_empty()).await;
        cancel.cancel();
    });
    maybe(outcome, FailureCategory::Cancelled);
    assert_eq!(modern.traces("stopped"), ["ticket-endless"]);
    assert!(began.elapsed() < Duration::from_secs(20));
}
