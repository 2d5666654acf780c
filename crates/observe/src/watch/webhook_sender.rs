//! Delivers the outbox to the receivers: several in parallel, one at a time per receiver, with retries.
//!
//! Deliveries to one webhook are in order as long as none fails; retried ones arrive later.

mod outcome;

use super::signature::signatures;
use super::webhook::StoredWebhook;
use super::{StoreBackoff, WatchService, audit, rfc3339::Rfc3339Timestamp};
use crate::metrics::DeliveryOutcome;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use outcome::{DeliveryVerdict, after};
use rutter_core::actor::Actor;
use rutter_core::port;
use rutter_core::port::outbox::{Delivery, DeliveryAttempt, DeliveryFollowUp, OutgoingRequest};
use rutter_core::port::register::{RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::time::{Millis, Timestamp};
use std::collections::HashMap;
use std::time::Duration;

/// Concurrent deliveries.
const AT_ONCE: usize = 16;
const TIMEOUT: Millis = Millis::seconds(15);
/// How long finished deliveries are retained.
const RETENTION: Millis = Millis::hours(30 * 24);
/// How long failures of a receiver are remembered after its backoff.
const REST_REMEMBERED: Millis = Millis::hours(1);
const PRUNE_EVERY: Millis = Millis::hours(1);

/// Delivers until the store is closed.
pub async fn run(watch: &WatchService) {
    let mut patience = StoreBackoff::default();
    let mut sender = WebhookSender { watch, backoffs: HashMap::new(), pruned_at: Timestamp(i64::MIN) };
    while let Err(error) = sender.send_due(&mut patience).await {
        if !patience.wait("the webhook sender", &error).await {
            return;
        }
    }
}

struct WebhookSender<'a> {
    watch: &'a WatchService,
    /// Webhooks in backoff because their last delivery failed.
    backoffs: HashMap<String, ReceiverBackoff>,
    pruned_at: Timestamp,
}

struct ReceiverBackoff {
    failures: u32,
    until: Timestamp,
}

/// The recorded result of a delivery.
struct SentDelivery {
    webhook: String,
    verdict: DeliveryVerdict,
}

impl WebhookSender<'_> {
    async fn send_due(&mut self, patience: &mut StoreBackoff) -> Result<(), port::Error> {
        let watch = self.watch;
        let mut to_send = watch.outbox_changed.subscribe();
        let mut under_way = FuturesUnordered::new();
        let mut busy: Vec<String> = Vec::new();
        loop {
            to_send.borrow_and_update();
            self.prune().await?;
            let now = watch.now();
            self.backoffs.retain(|_, rest| rest.until.plus(REST_REMEMBERED) > now);
            while under_way.len() < AT_ONCE {
                let resting = self.backoffs.iter().filter(|(_, rest)| rest.until > now).map(|(webhook, _)| webhook);
                let besides: Vec<String> = busy.iter().chain(resting).cloned().collect();
                let Some(delivery) = watch.ports.outbox.due(now, &besides, 1).await?.pop() else { break };
                busy.push(delivery.destination.clone());
                under_way.push(deliver(watch, delivery));
            }
            let pause = self.pause(now).await?;
            tokio::select! {
                Some(sent) = under_way.next() => {
                    let sent: Result<SentDelivery, port::Error> = sent;
                    let sent = sent?;
                    busy.retain(|webhook| *webhook != sent.webhook);
                    self.back_off(sent);
                    patience.reset();
                }
                _ = to_send.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// How long until a delivery can be due, at most one tick.
    async fn pause(&self, now: Timestamp) -> Result<Duration, port::Error> {
        let next = self.watch.ports.outbox.next_due().await?;
        let rests = self.backoffs.values().map(|rest| rest.until).filter(|until| *until > now);
        let next = next.into_iter().filter(|at| *at > now).chain(rests).min();
        let tick = self.watch.options.tick;
        Ok(next.map_or(tick, |at| Duration::from_millis(at.since(now).0).min(tick)))
    }

    /// Backs off from a failing receiver, so that not every waiting delivery is tried against it.
    fn back_off(&mut self, SentDelivery { webhook, verdict: judged }: SentDelivery) {
        if !judged.is_failing {
            self.backoffs.remove(&webhook);
            return;
        }
        let rest = self.backoffs.entry(webhook).or_insert(ReceiverBackoff { failures: 0, until: judged.at });
        rest.until = judged.at.plus(judged.retry_after.unwrap_or_default().max(outcome::backoff_after(rest.failures)));
        rest.failures += 1;
    }

    async fn prune(&mut self) -> Result<(), port::Error> {
        let now = self.watch.now();
        if now < self.pruned_at.plus(PRUNE_EVERY) {
            return Ok(());
        }
        self.pruned_at = now;
        let before = Timestamp(now.0.saturating_sub_unsigned(RETENTION.0));
        for tenant in &self.watch.options.tenants {
            self.watch.ports.outbox.prune(tenant, before).await?;
        }
        Ok(())
    }
}

/// Sends one delivery and records the result.
async fn deliver(watch: &WatchService, delivery: Delivery) -> Result<SentDelivery, port::Error> {
    let found = watch.ports.register.find(&delivery.tenant, RegisterKind::Webhook, &delivery.destination).await?;
    let stored = found.as_ref().and_then(|note| StoredWebhook::read(note).ok());
    let at = watch.now();
    let retained = stored.ok_or("the webhook is gone").and_then(|existing| match existing.webhook.enabled {
        true => Ok(existing),
        false => Err("the webhook is switched off"),
    });
    let judged = match &retained {
        Ok(saved) => {
            let receipt =
                watch.ports.http_sender.send(webhook_request(saved, &delivery.event, &delivery.body, at)).await;
            after(&receipt, delivery.attempts, watch.now())
        }
        Err(why) => DeliveryVerdict::undeliverable(why, at),
    };
    let attempt = judged.attempt(at);
    let DeliveryAttempt { status, outcome, .. } = &attempt;
    tracing::debug!(webhook = delivery.destination, event = delivery.event, status, outcome, "delivery attempted");
    if judged.then == DeliveryFollowUp::Dead {
        tracing::warn!(webhook = delivery.destination, event = delivery.event, outcome, "delivery failed permanently");
    }
    // Removing or disabling a webhook is already recorded, so its dropped deliveries are not.
    let record = match judged.then {
        DeliveryFollowUp::Dead if retained.is_ok() => audit::given_up(&delivery, &attempt),
        DeliveryFollowUp::Dead | DeliveryFollowUp::Delivered | DeliveryFollowUp::Again { .. } => None,
    };
    watch.ports.outbox.record_attempt(delivery.number, attempt, judged.then, record).await?;
    watch.ports.metrics.delivery(match judged.then {
        DeliveryFollowUp::Delivered => DeliveryOutcome::Delivered,
        DeliveryFollowUp::Again { .. } => DeliveryOutcome::Failed,
        DeliveryFollowUp::Dead => DeliveryOutcome::Dead,
    });
    if let (Ok(webhook), true) = (retained, judged.is_gone) {
        disable_webhook(watch, &delivery, webhook).await?;
    }
    Ok(SentDelivery { webhook: delivery.destination, verdict: judged })
}

/// A signed request for one event.
pub fn webhook_request(stored: &StoredWebhook, event: &str, body: &[u8], at: Timestamp) -> OutgoingRequest {
    let seconds = at.0.div_euclid(1_000);
    let signature = signatures(stored.secrets(Rfc3339Timestamp(at)), event, seconds, body);
    let header = |name: &str, value: String| (name.to_owned(), value);
    let headers = vec![
        header("content-type", "application/cloudevents+json; charset=utf-8".to_owned()),
        header("webhook-id", event.to_owned()),
        header("webhook-timestamp", seconds.to_string()),
        header("webhook-signature", signature),
    ];
    OutgoingRequest { url: stored.webhook.url.clone(), headers, body: body.to_vec(), timeout: TIMEOUT }
}

/// Disables a webhook whose receiver answered 410 Gone.
async fn disable_webhook(watch: &WatchService, delivery: &Delivery, stored: StoredWebhook) -> Result<(), port::Error> {
    let (id, version) = (&delivery.destination, stored.webhook.version);
    let mut retained = stored;
    retained.webhook.enabled = false;
    retained.webhook.disabled_because = Some("the receiver answered 410 Gone".to_owned());
    let now = watch.now();
    let record = audit::changed(&Actor::rutter(), now, "webhook", id, "switched off: the receiver is gone");
    let change = RegisterChange::put(RegisterKind::Webhook, id, retained.value()).expecting(version);
    let changes = RegisterWrite { tenant: delivery.tenant.clone(), at: now, changes: vec![change], record };
    match watch.ports.register.write(changes).await {
        // The webhook was changed in the meantime; the next 410 will disable it.
        Err(port::Error::Conflict { .. }) => Ok(()),
        written => {
            tracing::warn!(webhook = id, "webhook disabled: the receiver answered 410 Gone");
            watch.webhooks_changed.send_replace(());
            written
        }
    }
}
