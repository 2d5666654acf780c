//! Receivers that fail, and a process that is killed during a delivery.

use crate::watch::receiver::{Answer, Receiver};
use crate::watch::stage::Stage;
use rutter_core::actor::Actor;
use rutter_core::port::outbox::DeliveryState;
use rutter_core::port::query::Pagination;
use serde_json::json;

const FAILURES: [Answer; 8] = [Answer::Status(500); 8];

#[tokio::test]
async fn queued_deliveries_arrive_after_the_process_was_killed() {
    let stage = Stage::new().await;
    let receiver = Receiver::new(&[Answer::Silence]).await;
    stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    stage.save("plan").await;
    // The delivery is in flight and unanswered.
    receiver.has_heard(1).await;
    assert_eq!(stage.counts().await.pending, 1);
    let stage = stage.restarted().await;
    let counts = stage.until_counts(|counts| counts.pending == 0).await;
    assert_eq!((counts.delivered, counts.dead), (1, 0));
    let arrivals = receiver.arrivals();
    assert_eq!(arrivals.len(), 2);
    assert_eq!(arrivals[0].id, arrivals[1].id);
    assert_eq!(arrivals[0].bytes, arrivals[1].bytes);
    stage.stop().await;
}

#[tokio::test]
async fn every_event_is_queued_once_across_many_restarts() {
    let mut stage = Stage::new().await;
    let receiver = Receiver::new(&[]).await;
    stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    for round in 0..5 {
        for number in 0..8 {
            stage.save(&format!("plan {round}.{number}")).await;
        }
        stage = stage.restarted().await;
    }
    stage.until_counts(|counts| counts.delivered == 40 && counts.pending == 0).await;
    let mut names: Vec<String> =
        receiver.arrivals().iter().map(|it| it.body["data"]["plan"]["name"].to_string()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 40);
    let page = stage.watch.deliveries(&stage.tenant, None, None, Pagination::first(100)).await.unwrap();
    assert_eq!(page.items.len(), 40, "each event once");
    stage.stop().await;
}

#[tokio::test]
async fn a_failed_delivery_is_retried_with_the_same_id_and_every_attempt_is_recorded() {
    let stage = Stage::new().await;
    let receiver = Receiver::new(&[Answer::Status(500)]).await;
    stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    stage.save("plan").await;
    stage.until_tried(1).await;
    stage.pass(7);
    stage.until_counts(|counts| counts.delivered == 1).await;
    let arrivals = receiver.arrivals();
    assert_eq!(arrivals.len(), 2);
    assert_eq!(arrivals[0].id, arrivals[1].id);
    assert_ne!(arrivals[0].timestamp, arrivals[1].timestamp);
    let page = stage.watch.deliveries(&stage.tenant, None, None, Pagination::first(10)).await.unwrap();
    let detail = stage.watch.delivery(&stage.tenant, page.items[0].number).await.unwrap();
    let statuses: Vec<_> = detail.all_tries.iter().map(|it| it.status).collect();
    assert_eq!(statuses, [Some(500), Some(200)]);
    assert_eq!(detail.body["id"], arrivals[0].id);
    stage.stop().await;
}

#[tokio::test]
async fn a_delivery_is_dead_after_eight_attempts_until_it_is_sent_again() {
    let (stage, receiver) = (Stage::new().await, Receiver::new(&FAILURES).await);
    let hook = stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    stage.save("plan").await;
    for count in 1..=8 {
        stage.until_tried(count).await;
        // Longer than the longest delay.
        stage.pass(17 * 3_600);
    }
    stage.until_counts(|counts| counts.dead == 1).await;
    let dead = DeliveryState::Dead;
    let page = stage.watch.deliveries(&stage.tenant, None, Some(dead), Pagination::first(10)).await.unwrap();
    assert_eq!((page.items[0].tries, page.items[0].due_at), (8, None));
    let listener = Receiver::new(&[]).await;
    stage.webhook(json!({ "url": listener.url, "events": ["setting_changed"] })).await;
    stage.until_counts(|counts| counts.delivered == 1).await;
    let (number, operator) = (page.items[0].number, Actor::person("operator"));
    stage.watch.redeliver(&stage.tenant, &operator, number).await.unwrap();
    stage.until_counts(|counts| counts.delivered == 2).await;
    assert_eq!(receiver.arrivals().len(), 9);
    let missing = stage.watch.redeliver(&stage.tenant, &operator, 999).await.unwrap_err();
    assert_eq!(missing.code(), "store.not_found");

    let items = stage.said_of("delivery", &number.to_string()).await;
    let (event, hook) = (&page.items[0].event, &hook.webhook.id);
    let given_up = format!("event {event} to webhook {hook} given up; try 8 answered 500");
    let expected = [("operator", "sent again"), ("rutter", given_up.as_str())];
    assert_eq!(items, expected.map(|(who, what)| (who.to_owned(), what.to_owned())));
    // Such entries are not sent to webhooks: the listener gets only its own creation and that of the next webhook.
    stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    stage.until_counts(|counts| counts.delivered == 3).await;
    assert_eq!(listener.arrivals().len(), 2);
    stage.stop().await;
}

#[tokio::test]
async fn a_410_response_disables_the_webhook() {
    let stage = Stage::new().await;
    let receiver = Receiver::new(&[Answer::Status(410)]).await;
    let webhook = stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await.webhook;
    stage.save("one").await;
    stage.until_counts(|counts| counts.dead == 1).await;
    for _ in 0..1_000 {
        if !stage.watch.webhook(&stage.tenant, &webhook.id).await.unwrap().enabled {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let found = stage.watch.webhook(&stage.tenant, &webhook.id).await.unwrap();
    assert!(!found.enabled && found.disabled_because.unwrap().contains("410"));
    // Another webhook shows that later events were read.
    let other = Receiver::new(&[]).await;
    stage.webhook(json!({ "url": other.url, "events": ["plan_saved"] })).await;
    stage.save("two").await;
    other.has_heard(1).await;
    assert_eq!(receiver.arrivals().len(), 1);
    stage.stop().await;
}

#[tokio::test]
async fn retry_after_is_respected() {
    let stage = Stage::new().await;
    let receiver = Receiver::new(&[Answer::Later(429, 3_600)]).await;
    stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    stage.save("one").await;
    stage.save("two").await;
    stage.until_tried(1).await;
    stage.pass(3_000);
    // Another receiver shows that the sender has run since.
    let other = Receiver::new(&[]).await;
    stage.webhook(json!({ "url": other.url, "events": ["plan_saved"] })).await;
    stage.save("three").await;
    other.has_heard(1).await;
    assert_eq!(receiver.arrivals().len(), 1);
    stage.pass(700);
    stage.until_counts(|counts| counts.pending == 0).await;
    assert_eq!(receiver.arrivals().len(), 4);
    stage.stop().await;
}

#[tokio::test]
async fn a_receiver_that_never_answers_delays_no_other() {
    let stage = Stage::new().await;
    let (silent, other) = (Receiver::new(&[Answer::Silence; 3]).await, Receiver::new(&[]).await);
    stage.webhook(json!({ "url": silent.url, "events": ["execution_*", "plan_saved"] })).await;
    stage.webhook(json!({ "url": other.url, "events": ["execution_*", "plan_saved"] })).await;
    let plan = stage.save("plan").await;
    stage.start(&plan).await;
    other.hears_kind("execution_ended").await;
    assert_eq!(silent.arrivals().len(), 1, "one at a time");
    stage.stop().await;
}

#[tokio::test]
async fn finished_deliveries_are_removed_after_a_month() {
    let (stage, receiver) = (Stage::new().await, Receiver::new(&[]).await);
    stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    stage.save("plan").await;
    stage.until_counts(|counts| counts.delivered == 1).await;
    stage.pass(29 * 24 * 3_600);
    let look = Receiver::new(&[]).await;
    stage.webhook(json!({ "url": look.url, "events": ["plan_saved"] })).await;
    stage.pass(2 * 24 * 3_600);
    stage.until_counts(|counts| counts.delivered == 0).await;
    stage.stop().await;
}
