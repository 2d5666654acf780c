//! What arrives at a receiver: which events, in which form, with which signature.

use crate::watch::receiver::{Answer, Arrival, Receiver};
use crate::watch::stage::Stage;
use rutter_observe::watch::webhook::WebhookChange;
use serde_json::json;
use std::io::Write;
use std::process::{Command, Stdio};

#[tokio::test]
async fn every_event_of_an_execution_arrives_once_in_order_and_in_the_documented_form() {
    let (stage, receiver) = (Stage::new().await, Receiver::new(&[]).await);
    stage.webhook(json!({ "url": receiver.url, "events": ["execution_*", "attempt_*", "plan_saved"] })).await;
    let plan = stage.save("tide table").await;
    let execution = stage.start(&plan).await;
    receiver.hears_kind("execution_ended").await;
    stage.until_counts(|counts| counts.pending == 0).await;

    let kinds: Vec<String> = receiver.kinds();
    let expected = ["plan_saved", "execution_opened", "execution_started", "attempt_started", "attempt_succeeded"];
    let expected = expected.into_iter().chain(["execution_ended"]);
    assert_eq!(kinds, expected.map(|kind| format!("dev.rutter.{kind}.v1")).collect::<Vec<_>>());
    let arrivals = receiver.arrivals();
    let places: Vec<u64> = arrivals.iter().map(|it| it.body["place"].as_str().unwrap().parse().unwrap()).collect();
    assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");

    let started = &arrivals[3];
    assert_eq!(started.content_type, "application/cloudevents+json; charset=utf-8");
    let body = &started.body;
    assert_eq!(body["specversion"], "1.0");
    assert_eq!(body["id"], format!("default/{}", places[3]));
    assert_eq!(body["id"], started.id);
    assert_eq!(body["source"], format!("/tenants/default/executions/{execution}"));
    assert_eq!(body["subject"], "keep");
    assert_eq!(body["datacontenttype"], "application/json");
    assert_eq!(body["data"]["execution"], execution);
    assert_eq!(body["data"]["plan"], json!({ "id": plan, "name": "tide table" }));
    assert_eq!(body["data"]["event"]["tool"], "memory.store");
    assert_eq!(body["data"]["link"], format!("http://127.0.0.1:9/executions/{execution}"));
    let text = String::from_utf8_lossy(&started.bytes).into_owned();
    assert!(!text.contains("the tide turns"), "payloads are not sent: {text}");
    assert_eq!(arrivals[0].body["source"], "/tenants/default/ledger");
    assert_eq!(body["data"].get("execution_state"), None, "it neither ended nor asks");
    assert_eq!(arrivals[5].body["data"]["execution_state"]["summary"], "completed, 1 of 1 step");
    stage.stop().await;
}

#[tokio::test]
async fn a_webhook_receives_only_events_it_subscribes_to() {
    let stage = Stage::new().await;
    let (by_kind, by_plan) = (Receiver::new(&[]).await, Receiver::new(&[]).await);
    stage.webhook(json!({ "url": by_kind.url, "events": ["execution_ended"] })).await;
    stage.webhook(json!({ "url": by_plan.url, "plans": ["second"] })).await;
    for name in ["first", "second"] {
        let plan = stage.save(name).await;
        stage.start(&plan).await;
    }
    by_kind.has_heard(2).await;
    by_plan.hears_kind("execution_ended").await;
    stage.until_counts(|counts| counts.pending == 0).await;
    assert_eq!(by_kind.kinds(), ["dev.rutter.execution_ended.v1"; 2]);
    assert!(by_plan.arrivals().iter().all(|arrival| arrival.body["data"]["plan"]["name"] == "second"));
    assert_eq!(by_plan.arrivals().len(), 6);
    stage.stop().await;
}

#[tokio::test]
async fn a_webhook_receives_events_from_its_creation_or_reenabling_on() {
    let (stage, receiver) = (Stage::new().await, Receiver::new(&[]).await);
    stage.save("before").await;
    let webhook = stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await.webhook;
    stage.save("between").await;
    receiver.has_heard(1).await;
    let switch = async |enabled: bool| {
        let change = WebhookChange { enabled: Some(enabled), ..WebhookChange::default() };
        stage.watch.update_webhook(&stage.tenant, &stage.operator, &webhook.id, change, None).await.unwrap()
    };
    switch(false).await;
    stage.save("meanwhile").await;
    switch(true).await;
    stage.save("after").await;
    receiver.has_heard(2).await;
    let names: Vec<_> = receiver.arrivals().iter().map(|it| it.body["data"]["plan"]["name"].clone()).collect();
    assert_eq!(names, ["between", "after"]);
    stage.stop().await;
}

#[tokio::test]
async fn another_implementation_verifies_the_signatures() {
    let (stage, receiver) = (Stage::new().await, Receiver::new(&[]).await);
    let made = stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    stage.save("one").await;
    receiver.has_heard(1).await;
    let rotated = stage.watch.rotate_webhook(&stage.tenant, &stage.operator, &made.webhook.id).await.unwrap();
    stage.save("two").await;
    receiver.has_heard(2).await;
    stage.pass(25 * 3_600);
    stage.save("three").await;
    let arrivals = receiver.has_heard(3).await;

    let found = |arrival: &Arrival| {
        let is_signed = |secret: &str| arrival.signature.split(' ').any(|it| it == independent(secret, arrival));
        (is_signed(&made.secret), is_signed(&rotated.secret))
    };
    assert_eq!(found(&arrivals[0]), (true, false));
    assert_eq!(found(&arrivals[1]), (true, true));
    assert_eq!(found(&arrivals[2]), (false, true));
    stage.stop().await;
}

/// The signature computed by Python's `hmac`.
fn independent(secret: &str, arrival: &Arrival) -> String {
    const PROGRAM: &str = "import base64, hashlib, hmac, sys\n\
        key = base64.b64decode(sys.argv[1].removeprefix('whsec_'))\n\
        signed = f'{sys.argv[2]}.{sys.argv[3]}.'.encode() + sys.stdin.buffer.read()\n\
        print('v1,' + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode(), end='')";
    let python = std::env::var("RUTTER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut child = Command::new(python)
        .args(["-c", PROGRAM, secret, &arrival.id, &arrival.timestamp])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&arrival.bytes).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[tokio::test]
async fn a_test_is_sent_at_once_and_returns_the_result() {
    let stage = Stage::new().await;
    let receiver = Receiver::new(&[Answer::Status(204), Answer::Status(500)]).await;
    let webhook = stage.webhook(json!({ "url": receiver.url, "events": ["alert"] })).await.webhook;
    let tested = stage.watch.test_webhook(&stage.tenant, &webhook.id).await.unwrap();
    assert_eq!((tested.delivered, tested.status), (true, Some(204)));
    let tested = stage.watch.test_webhook(&stage.tenant, &webhook.id).await.unwrap();
    assert_eq!((tested.delivered, tested.status), (false, Some(500)));
    assert_eq!(receiver.kinds(), ["dev.rutter.test.v1"; 2]);
    assert_eq!(stage.counts().await.pending, 0);
    stage.stop().await;
}
