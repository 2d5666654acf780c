//! Takes what is in the outbox to the receivers: several at once, one at a time to each, again and again if need be.
//!
//! What is sent to one webhook is in order as long as nothing fails; what has to be tried again comes later.

mod outcome;

use super::signature::signatures;
use super::webhook::Kept;
use super::{Patience, Watch, moment::Moment, trail};
use crate::metrics::Delivered;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use outcome::{Judged, after};
use rutter_core::actor::Actor;
use rutter_core::port;
use rutter_core::port::outbox::{Delivery, DeliveryAttempt, Parcel, Then};
use rutter_core::port::register::{Change, Changes, Kind};
use rutter_core::time::{Millis, Timestamp};
use std::collections::HashMap;
use std::time::Duration;

/// Deliveries under way at the same time.
const AT_ONCE: usize = 16;
const TIMEOUT: Millis = Millis::seconds(15);
/// How long what was delivered or given up can be looked at.
const KEPT: Millis = Millis::hours(30 * 24);
/// How long after its rest a receiver is remembered to have been unwell.
const REST_REMEMBERED: Millis = Millis::hours(1);
const PRUNE_EVERY: Millis = Millis::hours(1);

/// Sends until the store is closed.
pub(super) async fn run(watch: &Watch) {
    let mut patience = Patience::default();
    let mut courier = Courier { watch, rests: HashMap::new(), pruned_at: Timestamp(i64::MIN) };
    while let Err(error) = courier.work(&mut patience).await {
        if !patience.wait("the courier for webhooks", &error).await {
            return;
        }
    }
}

struct Courier<'a> {
    watch: &'a Watch,
    /// Webhooks that are left alone for a while, because their last delivery failed.
    rests: HashMap<String, Rest>,
    pruned_at: Timestamp,
}

struct Rest {
    failures: u32,
    until: Timestamp,
}

/// What became of a delivery, once that is on record.
struct Sent {
    webhook: String,
    judged: Judged,
}

impl Courier<'_> {
    async fn work(&mut self, patience: &mut Patience) -> Result<(), port::Error> {
        let watch = self.watch;
        let mut to_send = watch.to_send.subscribe();
        let mut under_way = FuturesUnordered::new();
        let mut busy: Vec<String> = Vec::new();
        loop {
            to_send.borrow_and_update();
            self.prune().await?;
            let now = watch.now();
            self.rests.retain(|_, rest| rest.until.plus(REST_REMEMBERED) > now);
            while under_way.len() < AT_ONCE {
                let resting =
                    self.rests.iter().filter(|(_, rest)| rest.until > now).map(|(webhook, _)| webhook);
                let besides: Vec<String> = busy.iter().chain(resting).cloned().collect();
                let Some(delivery) = watch.ports.outbox.due(now, &besides, 1).await?.pop() else { break };
                busy.push(delivery.destination.clone());
                under_way.push(deliver(watch, delivery));
            }
            let pause = self.pause(now).await?;
            tokio::select! {
                Some(sent) = under_way.next() => {
                    let sent: Result<Sent, port::Error> = sent;
                    let sent = sent?;
                    busy.retain(|webhook| *webhook != sent.webhook);
                    self.rest(sent);
                    patience.calm();
                }
                _ = to_send.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// How long nothing can be due, at most until the next look.
    async fn pause(&self, now: Timestamp) -> Result<Duration, port::Error> {
        let next = self.watch.ports.outbox.next_due().await?;
        let rests = self.rests.values().map(|rest| rest.until).filter(|until| *until > now);
        let next = next.into_iter().filter(|at| *at > now).chain(rests).min();
        let tick = self.watch.options.tick;
        Ok(next.map_or(tick, |at| Duration::from_millis(at.since(now).0).min(tick)))
    }

    /// A receiver that is not well is not asked again for everything that waits for it.
    fn rest(&mut self, Sent { webhook, judged }: Sent) {
        if !judged.is_unwell {
            self.rests.remove(&webhook);
            return;
        }
        let rest = self.rests.entry(webhook).or_insert(Rest { failures: 0, until: judged.at });
        rest.until = judged.at.plus(judged.retry_after.unwrap_or_default().max(outcome::rest(rest.failures)));
        rest.failures += 1;
    }

    async fn prune(&mut self) -> Result<(), port::Error> {
        let now = self.watch.now();
        if now < self.pruned_at.plus(PRUNE_EVERY) {
            return Ok(());
        }
        self.pruned_at = now;
        let before = Timestamp(now.0.saturating_sub_unsigned(KEPT.0));
        for tenant in &self.watch.options.tenants {
            self.watch.ports.outbox.prune(tenant, before).await?;
        }
        Ok(())
    }
}

/// Sends one and records what became of it.
async fn deliver(watch: &Watch, delivery: Delivery) -> Result<Sent, port::Error> {
    let found = watch.ports.register.find(&delivery.tenant, Kind::Webhook, &delivery.destination).await?;
    let kept = found.as_ref().and_then(|note| Kept::read(note).ok());
    let at = watch.now();
    let kept = kept.ok_or("the webhook is gone").and_then(|kept| match kept.webhook.enabled {
        true => Ok(kept),
        false => Err("the webhook is switched off"),
    });
    let judged = match &kept {
        Ok(kept) => {
            let receipt = watch.ports.post.send(parcel(kept, &delivery.event, &delivery.body, at)).await;
            after(&receipt, delivery.attempts, watch.now())
        }
        Err(why) => Judged::pointless(why, at),
    };
    let attempt = judged.attempt(at);
    let DeliveryAttempt { status, outcome, .. } = &attempt;
    tracing::debug!(
        webhook = delivery.destination,
        event = delivery.event,
        status,
        outcome,
        "delivery tried"
    );
    if judged.then == Then::Dead {
        tracing::warn!(webhook = delivery.destination, event = delivery.event, outcome, "delivery given up");
    }
    // What is not sent because a webhook was removed or switched off stands there already, once.
    let record = match judged.then {
        Then::Dead if kept.is_ok() => trail::given_up(&delivery, &attempt),
        Then::Dead | Then::Delivered | Then::Again { .. } => None,
    };
    watch.ports.outbox.tried(delivery.number, attempt, judged.then, record).await?;
    watch.ports.metrics.delivery(match judged.then {
        Then::Delivered => Delivered::Delivered,
        Then::Again { .. } => Delivered::Failed,
        Then::Dead => Delivered::Dead,
    });
    if let (Ok(kept), true) = (kept, judged.is_gone) {
        switch_off(watch, &delivery, kept).await?;
    }
    Ok(Sent { webhook: delivery.destination, judged })
}

/// A request for one event, signed.
pub(super) fn parcel(kept: &Kept, event: &str, body: &[u8], at: Timestamp) -> Parcel {
    let seconds = at.0.div_euclid(1_000);
    let signature = signatures(kept.secrets(Moment(at)), event, seconds, body);
    let header = |name: &str, value: String| (name.to_owned(), value);
    let headers = vec![
        header("content-type", "application/cloudevents+json; charset=utf-8".to_owned()),
        header("webhook-id", event.to_owned()),
        header("webhook-timestamp", seconds.to_string()),
        header("webhook-signature", signature),
    ];
    Parcel { url: kept.webhook.url.clone(), headers, body: body.to_vec(), timeout: TIMEOUT }
}

/// Whoever answers 410 does not want to hear of us again.
async fn switch_off(watch: &Watch, delivery: &Delivery, kept: Kept) -> Result<(), port::Error> {
    let (id, version) = (&delivery.destination, kept.webhook.version);
    let mut kept = kept;
    kept.webhook.enabled = false;
    kept.webhook.disabled_because = Some("the receiver answered 410 Gone".to_owned());
    let now = watch.now();
    let record = trail::changed(&Actor::rutter(), now, "webhook", id, "switched off: the receiver is gone");
    let change = Change::put(Kind::Webhook, id, kept.value()).expecting(version);
    let changes = Changes { tenant: delivery.tenant.clone(), at: now, changes: vec![change], record };
    match watch.ports.register.write(changes).await {
        // Somebody has changed it in the meantime; the next answer will tell.
        Err(port::Error::Conflict { .. }) => Ok(()),
        written => {
            tracing::warn!(webhook = id, "switched off: the receiver answered 410 Gone");
            watch.webhooks_changed.send_replace(());
            written
        }
    }
}
