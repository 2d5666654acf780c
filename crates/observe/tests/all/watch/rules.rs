//! Rules: the built-in ones, what operators may change, and what is refused.

use crate::watch::receiver::Receiver;
use crate::watch::stage::Stage;
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use rutter_observe::watch::alert::AlertState::{Firing, Resolved};
use rutter_observe::watch::rule::{AlertRule, AlertRuleChange, NewAlertRule};
use serde_json::{Value, json};

async fn create(stage: &Stage, rule: Value) -> Result<AlertRule, String> {
    let new: NewAlertRule = serde_json::from_value(rule).map_err(|error| error.to_string())?;
    let made = stage.watch.create_rule(&stage.tenant, &stage.operator, new).await;
    made.map_err(|fault| fault.code().to_owned())
}

#[tokio::test]
async fn every_built_in_rule_is_enabled_and_restored_when_removed() {
    let stage = Stage::new().await;
    let rules = stage.watch.rules(&stage.tenant).await.unwrap();
    assert!(rules.len() == 18 && rules.iter().all(|rule| rule.enabled && rule.built_in && rule.version == 0));
    let changed = stage.change_rule("budget", json!({ "enabled": false, "severity": "critical" })).await;
    assert_eq!((changed.enabled, changed.version), (false, 1));
    let stage = stage.restarted().await;
    let find = async || {
        let rules = stage.watch.rules(&stage.tenant).await.unwrap();
        rules.into_iter().find(|rule| rule.id == "budget").unwrap()
    };
    assert!(!find().await.enabled);
    stage.watch.delete_rule(&stage.tenant, &stage.operator, "budget").await.unwrap();
    assert!(find().await.enabled && find().await.version == 0);
    stage.stop().await;
}

#[tokio::test]
async fn invalid_rules_are_refused() {
    let stage = Stage::new().await;
    for (rule, expected) in [
        (json!({ "condition": { "kind": "execution_failed" }, "severity": "loud" }), "unknown variant"),
        (json!({ "condition": { "kind": "thunder" }, "severity": "info" }), "unknown variant"),
        (json!({ "condition": { "kind": "execution_stuck" }, "severity": "info" }), "missing field"),
        (
            json!({ "condition": { "kind": "execution_failed", "program": "/bin/sh" }, "severity": "info" }),
            "unknown field",
        ),
        (
            json!({ "condition": { "kind": "execution_failed" }, "severity": "info", "program": "/bin/sh" }),
            "unknown field",
        ),
        (json!({ "condition": { "kind": "dead_letters", "at_least": 0 }, "severity": "info" }), "store.invalid"),
        (
            json!({ "condition": { "kind": "in_doubt", "after_seconds": u64::MAX }, "severity": "info" }),
            "store.invalid",
        ),
        (json!({ "condition": { "kind": "budget" }, "severity": "info", "commands": ["/bin/sh"] }), "store.invalid"),
        (json!({ "condition": { "kind": "budget" }, "severity": "info", "plans": vec!["p"; 101] }), "store.limit"),
    ] {
        let refused = create(&stage, rule.clone()).await.unwrap_err();
        assert!(refused.contains(expected), "{rule}: {refused}");
    }
    let other: AlertRuleChange = serde_json::from_value(json!({ "condition": { "kind": "budget" } })).unwrap();
    let refused = stage.watch.update_rule(&stage.tenant, &stage.operator, "in_doubt", other, None).await;
    assert_eq!(refused.unwrap_err().code(), "store.invalid");
    let missing = stage.watch.delete_rule(&stage.tenant, &stage.operator, "rule_none").await;
    assert_eq!(missing.unwrap_err().code(), "store.not_found");
    assert_eq!(stage.watch.rules(&stage.tenant).await.unwrap().len(), 18);
    stage.stop().await;
}

#[tokio::test]
async fn a_rule_for_one_plan_and_one_webhook_notifies_of_that_plan_only() {
    let stage = Stage::new().await;
    let (named, every) = (Receiver::new(&[]).await, Receiver::new(&[]).await);
    let webhook = stage.webhook(json!({ "url": named.url, "events": ["paused"] })).await.webhook;
    stage.webhook(json!({ "url": every.url, "events": ["alert"] })).await;
    let made = json!({ "condition": { "kind": "execution_failed" }, "severity": "critical", "plans": ["precious"],
        "webhooks": [webhook.id], "commands": ["pager"] });
    let made = create(&stage, made).await.unwrap();
    for name in ["common", "precious"] {
        let plan = stage.failing(name).await;
        stage.start(&plan).await;
    }
    every.has_heard(2).await;
    named.has_heard(1).await;
    stage.until_counts(|counts| counts.pending == 0).await;
    assert_eq!((named.arrivals().len(), every.arrivals().len()), (1, 2));
    let data = &named.arrivals()[0].body["data"];
    assert_eq!((&data["rule"], &data["severity"]), (&json!(made.id), &json!("critical")));
    assert_eq!(data["plan"]["name"], "precious");
    let change = async |webhooks: Value| stage.change_rule(&made.id, webhooks).await.webhooks;
    assert_eq!(change(json!({ "severity": "info" })).await, Some(vec![webhook.id]));
    assert_eq!(change(json!({ "webhooks": [] })).await, Some(Vec::new()));
    assert_eq!(change(json!({ "webhooks": null })).await, None);
    // Without its rule an alert is resolved.
    stage.watch.delete_rule(&stage.tenant, &stage.operator, &made.id).await.unwrap();
    stage.alert(&made.id, Resolved).await;
    stage.alert("execution_failed", Firing).await;
    stage.stop().await;
}

/// Alerts that fire at the same time, at most.
const FIRING_MAX: usize = 1_000;

#[tokio::test]
async fn a_critical_rule_is_judged_first_when_more_want_alerts_than_may_fire() {
    let stage = Stage::new().await;
    stage.change_rule("in_doubt", json!({ "enabled": false })).await;
    for _ in 0..80 {
        create(&stage, json!({ "condition": { "kind": "budget" }, "severity": "warning" })).await.unwrap();
    }
    let doubt = json!({ "condition": { "kind": "in_doubt", "after_seconds": 0 }, "severity": "critical" });
    let doubt = create(&stage, doubt).await.unwrap();
    // The conditions as an earlier process has left them: 20 for 81 rules, and one doubt after them.
    let condition = |kind: &str, at: u32| {
        json!({ "concern": kind, "subject": format!("exec_{at}"), "since": format!("2026-01-01T00:00:{at:02}Z"),
            "execution": format!("exec_{at}"), "text": "it needs attention" })
    };
    let mut conditions: Vec<Value> = (0..20).map(|at| condition("budget", at)).collect();
    conditions.push(condition("in_doubt", 20));
    let stored = json!({ "place": 0, "matters": conditions });
    let write = RegisterWrite {
        tenant: stage.tenant.clone(),
        at: stage.engine.now(),
        changes: vec![RegisterChange::put(RegisterKind::Mark, "lookout", stored)],
        record: None,
    };
    stage.store.write(write).await.unwrap();
    let stage = stage.restarted().await;
    let alert = stage.alert(&doubt.id, Firing).await;
    assert_eq!((alert.subject.as_str(), alert.notices), ("exec_20", 1));
    // 1,620 alerts of the other rules are wanted, and two of 1,000 places are taken.
    let summary = stage.alert("too_many_alerts", Firing).await;
    assert!(summary.text.contains("622 more are left out"), "{}", summary.text);
    stage.alert_that(|_| stage.watch.firing(&stage.tenant).len() == FIRING_MAX).await;
    stage.stop().await;
}

#[tokio::test]
async fn changes_of_rules_silences_and_alerts_are_in_the_ledger() {
    let stage = Stage::new().await;
    let receiver = Receiver::new(&[]).await;
    stage.webhook(json!({ "url": receiver.url, "events": ["setting_changed"] })).await;
    stage.change_rule("budget", json!({ "enabled": false })).await;
    let plan = stage.failing("leaky").await;
    stage.start(&plan).await;
    let alert = stage.alert("execution_failed", Firing).await;
    stage.watch.acknowledge_alert(&stage.tenant, &stage.operator, &alert.id, "").await.unwrap();
    let arrivals = receiver.has_heard(3).await;
    let answer = |at: usize| {
        let event = &arrivals[at].body["data"]["event"];
        format!("{} {} {}", event["setting"], event["id"], event["change"]).replace('"', "")
    };
    assert_eq!(answer(1), "rule budget switched off");
    assert_eq!(answer(2), format!("alert {} acknowledged", alert.id));
    stage.stop().await;
}
