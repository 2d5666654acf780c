//! Receivers that do not answer well, and a process that ends in the middle.

use crate::receiver::{Answer, Receiver};
use crate::stage::Stage;
use rutter_core::actor::Actor;
use rutter_core::port::outbox::DeliveryState;
use rutter_core::port::query::Page;
use serde_json::json;

const FAILURES: [Answer; 8] = [Answer::Status(500); 8];

#[tokio::test]
async fn what_was_put_into_the_outbox_arrives_after_the_process_was_killed() {
    let stage = Stage::new().await;
    let receiver = Receiver::new(&[Answer::Silence]).await;
    stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    stage.save("plan").await;
    // It is on its way and nobody has answered yet.
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
async fn nothing_is_missing_and_nothing_is_put_twice_over_many_restarts() {
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
    let page = stage.watch.deliveries(&stage.tenant, None, None, Page::first(100)).await.unwrap();
    assert_eq!(page.items.len(), 40, "each event once");
    stage.stop().await;
}

#[tokio::test]
async fn a_delivery_that_failed_is_tried_again_under_the_same_id_and_every_try_is_on_record() {
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
    let page = stage.watch.deliveries(&stage.tenant, None, None, Page::first(10)).await.unwrap();
    let detail = stage.watch.delivery(&stage.tenant, page.items[0].number).await.unwrap();
    let statuses: Vec<_> = detail.all_tries.iter().map(|it| it.status).collect();
    assert_eq!(statuses, [Some(500), Some(200)]);
    assert_eq!(detail.body["id"], arrivals[0].id);
    stage.stop().await;
}

#[tokio::test]
async fn what_fails_eight_times_is_given_up_until_somebody_sends_it_again() {
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
    let page = stage.watch.deliveries(&stage.tenant, None, Some(dead), Page::first(10)).await.unwrap();
    assert_eq!((page.items[0].tries, page.items[0].due_at), (8, None));
    let listener = Receiver::new(&[]).await;
    stage.webhook(json!({ "url": listener.url, "events": ["setting_changed"] })).await;
    stage.until_counts(|counts| counts.delivered == 1).await;
    let (number, operator) = (page.items[0].number, Actor::person("operator"));
    stage.watch.redeliver(&stage.tenant, &operator, number).await.unwrap();
    stage.until_counts(|counts| counts.delivered == 2).await;
    assert_eq!(receiver.arrivals().len(), 9);
    let missing = stage.watch.redeliver(&stage.tenant, &operator, 999).await.unwrap_err();
    assert_eq!(missing.code, "store.not_found");

    let told = stage.said_of("delivery", &number.to_string()).await;
    let (event, hook) = (&page.items[0].event, &hook.webhook.id);
    let given_up = format!("event {event} to webhook {hook} given up; try 8 answered 500");
    let expected = [("operator", "sent again"), ("rutter", given_up.as_str())];
    assert_eq!(told, expected.map(|(who, what)| (who.to_owned(), what.to_owned())));
    // That is no news for webhooks: the listener hears of itself and of the next one.
    stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    stage.until_counts(|counts| counts.delivered == 3).await;
    assert_eq!(listener.arrivals().len(), 2);
    stage.stop().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_switches_the_webhook_off() {
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
    // Another webhook shows that what was saved later was read.
    let other = Receiver::new(&[]).await;
    stage.webhook(json!({ "url": other.url, "events": ["plan_saved"] })).await;
    stage.save("two").await;
    other.has_heard(1).await;
    assert_eq!(receiver.arrivals().len(), 1);
    stage.stop().await;
}

#[tokio::test]
async fn a_receiver_that_asks_for_time_gets_it() {
    let stage = Stage::new().await;
    let receiver = Receiver::new(&[Answer::Later(429, 3_600)]).await;
    stage.webhook(json!({ "url": receiver.url, "events": ["plan_saved"] })).await;
    stage.save("one").await;
    stage.save("two").await;
    stage.until_tried(1).await;
    stage.pass(3_000);
    // Another receiver shows that the courier has looked since.
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
async fn a_receiver_that_never_answers_holds_up_nobody_else() {
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
async fn what_was_delivered_is_forgotten_after_a_month() {
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
