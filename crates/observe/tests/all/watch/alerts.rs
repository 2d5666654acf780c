//! The life of alerts: which notices are sent, how often, and what a restart changes.

use crate::watch::receiver::Receiver;
use crate::watch::stage::Stage;
use rutter_observe::watch::alert::AlertState::{Firing, Resolved};
use rutter_observe::watch::silence::NewSilence;
use serde_json::{Value, json};

const DAY: i64 = 24 * 3_600;

async fn alerted(stage: &Stage) -> Receiver {
    let receiver = Receiver::new(&[]).await;
    stage.webhook(json!({ "url": receiver.url, "events": ["alert"] })).await;
    receiver
}

#[tokio::test]
async fn a_failed_execution_is_notified_once_and_resolved_after_a_day() {
    let stage = Stage::new().await;
    let receiver = alerted(&stage).await;
    let plan = stage.failing("leaky").await;
    let execution = stage.start(&plan).await;
    let alert = stage.alert("execution_failed", Firing).await;
    assert_eq!((alert.subject.as_str(), alert.notices), (execution.as_str(), 1));
    assert_eq!(alert.plan.unwrap().name, "leaky");
    let answer = receiver.hears_kind("alert").await;
    let data = &answer.body["data"];
    assert_eq!((&data["state"], &data["severity"]), (&json!("firing"), &json!("warning")));
    assert_eq!(data["link"], "http://127.0.0.1:9/alerts");
    assert_eq!(answer.body["subject"], execution);
    let state = &data["execution_state"];
    let cause = state["cause"].as_str().unwrap();
    assert!(cause.contains(" failed ("), "{state}");
    assert!(state["summary"].as_str().unwrap().starts_with(&format!("failed: {cause}, 0 of ")), "{state}");
    assert_eq!(state["failed_steps"].as_array().map(Vec::len), Some(1), "{state}");
    assert_eq!(state["unmet"][0]["kind"], "failed", "{state}");
    assert_eq!(stage.watch.firing(&stage.tenant).len(), 1);
    stage.pass(DAY);
    let over = stage.alert("execution_failed", Resolved).await;
    assert_eq!(over.id, alert.id);
    let report = receiver.hears(|arrival| arrival.body["data"]["state"] == "resolved").await;
    assert_eq!(report.body["data"]["id"], alert.id);
    stage.stop().await;
}

#[tokio::test]
async fn an_alert_survives_a_restart_and_no_notice_is_repeated() {
    let stage = Stage::new().await;
    let receiver = alerted(&stage).await;
    let plan = stage.failing("leaky").await;
    stage.start(&plan).await;
    let before = stage.alert("execution_failed", Firing).await;
    let mut stage = stage;
    for _ in 0..3 {
        stage = stage.restarted().await;
        // An alert that only a working evaluator raises.
        stage.change_rule("disk_low", json!({ "condition": { "kind": "disk_low", "below_bytes": u64::MAX } })).await;
        stage.alert("disk_low", Firing).await;
        stage.change_rule("disk_low", json!({ "condition": { "kind": "disk_low", "below_bytes": 0 } })).await;
        stage.alert_that(|alert| alert.rule == "disk_low" && alert.state == Resolved).await;
    }
    let after = stage.alert("execution_failed", Firing).await;
    assert_eq!(after, before);
    stage.until_counts(|counts| counts.pending == 0).await;
    let about = |arrival: &crate::watch::receiver::Arrival| arrival.body["data"]["rule"] == "execution_failed";
    let values: Vec<Value> = receiver.arrivals().iter().filter(|it| about(it)).map(|it| it.body.clone()).collect();
    assert_eq!(values.len(), 1);
    stage.stop().await;
}

#[tokio::test]
async fn a_notice_is_repeated_every_four_hours_until_acknowledged() {
    let stage = Stage::new().await;
    let plan = stage.failing("leaky").await;
    stage.start(&plan).await;
    let alert = stage.alert("execution_failed", Firing).await;
    stage.pass(4 * 3_600 + 1);
    stage.alert_that(|alert| alert.notices == 2).await;
    let known = stage.watch.acknowledge_alert(&stage.tenant, &stage.operator, &alert.id, "on it").await.unwrap();
    assert_eq!(known.acknowledged.as_ref().unwrap().by, "operator");
    stage.pass(8 * 3_600);
    // The alert of the other rule shows that the evaluator has run since.
    stage.change_rule("disk_low", json!({ "condition": { "kind": "disk_low", "below_bytes": u64::MAX } })).await;
    stage.alert("disk_low", Firing).await;
    let alert = stage.alert("execution_failed", Firing).await;
    assert_eq!(alert.notices, 2);
    let unknown = stage.watch.acknowledge_alert(&stage.tenant, &stage.operator, "al_none", "").await;
    assert_eq!(unknown.unwrap_err().code(), "store.not_found");
    stage.stop().await;
}

#[tokio::test]
async fn a_silenced_alert_fires_and_is_notified_when_the_silence_ends() {
    let stage = Stage::new().await;
    let until = json!(rutter_core::time::calendar::utc(stage.engine.now().plus(rutter_core::time::Millis::hours(1))));
    let silence = |fields: Value| -> NewSilence {
        let mut all = json!({ "until": until, "reason": "the mast is being painted" });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    };
    let make = async |fields: Value| stage.watch.silence(&stage.tenant, &stage.operator, silence(fields)).await;
    assert_eq!(make(json!({})).await.unwrap_err().code(), "store.invalid");
    let made = make(json!({ "rule": "execution_failed", "plan": "leaky" })).await.unwrap();
    let (leaky, other) = (stage.failing("leaky").await, stage.failing("other").await);
    stage.start(&leaky).await;
    stage.start(&other).await;
    let of = |name: &'static str| {
        move |alert: &rutter_observe::watch::alert::AlertRecord| alert.plan.as_ref().is_some_and(|it| it.name == name)
    };
    let quiet = stage.alert_that(of("leaky")).await;
    assert_eq!((quiet.notices, quiet.silenced_by.as_deref()), (0, Some(made.id.as_str())));
    assert_eq!(stage.alert_that(of("other")).await.notices, 1);
    assert_eq!(stage.watch.silences(&stage.tenant).await.unwrap(), [made]);
    stage.pass(3_601);
    stage.alert_that(|alert| of("leaky")(alert) && alert.notices == 1).await;
    assert!(stage.watch.silences(&stage.tenant).await.unwrap().is_empty());
    stage.stop().await;
}

#[tokio::test]
async fn the_command_of_a_rule_runs_when_an_alert_fires_and_when_it_is_resolved() {
    let stage = Stage::new().await;
    stage.change_rule("execution_failed", json!({ "commands": ["pager"] })).await;
    let plan = stage.failing("leaky").await;
    let execution = stage.start(&plan).await;
    stage.alert_that(|alert| alert.notices == 1 && alert.to_ring.is_empty()).await;
    stage.pass(DAY);
    stage.alert_that(|alert| alert.state == Resolved && alert.to_ring.is_empty()).await;
    let rung = stage.bell.0.lock().unwrap().clone();
    let states: Vec<&Value> = rung.iter().map(|it| &it["data"]["state"]).collect();
    assert_eq!(states, ["firing", "resolved"]);
    assert_eq!(rung[0]["data"]["execution"], execution);
    // The same text as in a webhook and in the list of alerts.
    let text = rung[0]["data"]["text"].as_str().unwrap();
    let cause = rung[0]["data"]["execution_state"]["cause"].as_str().unwrap();
    assert!(cause.starts_with("keep failed (") && text.contains(cause), "{text}: {cause}");
    assert_eq!(stage.alert("execution_failed", Resolved).await.text, text);
    let stage = stage.restarted().await;
    stage.change_rule("disk_low", json!({ "condition": { "kind": "disk_low", "below_bytes": u64::MAX } })).await;
    stage.alert("disk_low", Firing).await;
    assert_eq!(stage.bell.0.lock().unwrap().len(), 2, "a command does not run twice");
    stage.stop().await;
}
