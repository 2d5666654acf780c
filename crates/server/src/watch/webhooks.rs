//! What can be done with webhooks and deliveries. Every change of a webhook stands in the ledger's own journal.

use super::cloud_event::CloudEvent;
use super::courier::parcel;
use super::moment::Moment;
use super::signature::fresh_secret;
use super::webhook::{Kept, NewWebhook, SecretWebhook, Webhook, WebhookChange, check_count, invalid};
use super::{Watch, trail};
use crate::fault::Fault;
use crate::limits::WEBHOOKS_MAX;
use rutter_core::actor::Actor;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::outbox::{
    Delivery, DeliveryAttempt, DeliveryCounts, DeliveryFilter, DeliveryState, Receipt,
};
use rutter_core::port::query::{Listing, Page};
use rutter_core::port::register::{Change, Changes, Kind};
use rutter_core::time::Millis;
use rutter_engine::name;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

const SETTING: &str = "webhook";
/// How long deliveries are signed with the secret before the new one too, so that receivers can change over.
const OVERLAP: Millis = Millis::hours(24);

/// What a test of a webhook showed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tested {
    pub delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The beginning of the answer, or why there is none.
    pub outcome: String,
    pub took_ms: u64,
}

/// A delivery in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeliveryLine {
    pub number: u64,
    pub webhook: String,
    /// What the receiver tells doubles by.
    pub event: String,
    pub kind: String,
    /// `pending`, `delivered` or `dead`.
    pub state: String,
    pub tries: u32,
    pub created_at: Moment,
    /// When it is tried next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_try: Option<Try>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeliveryDetail {
    #[serde(flatten)]
    pub line: DeliveryLine,
    /// What was, or is to be, sent.
    pub body: Value,
    pub all_tries: Vec<Try>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Try {
    pub at: Moment,
    pub took_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The beginning of the answer, or why there is none.
    pub outcome: String,
}

impl Watch {
    /// All of them, the oldest first.
    pub async fn webhooks(&self, tenant: &TenantId) -> Result<Vec<Webhook>, Fault> {
        let kept = self.kept_webhooks(tenant).await?;
        Ok(kept.into_iter().map(|kept| kept.webhook).collect())
    }

    pub async fn webhook(&self, tenant: &TenantId, id: &str) -> Result<Webhook, Fault> {
        Ok(self.kept_webhook(tenant, id).await?.webhook)
    }

    /// The new webhook gets what happens from now on.
    pub async fn create_webhook(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        new: NewWebhook,
    ) -> Result<SecretWebhook, Fault> {
        let NewWebhook { url, description, events, plans } = new;
        let now = self.now();
        let webhook = Webhook {
            id: name::fresh("wh", now),
            url,
            description,
            events,
            plans,
            enabled: true,
            disabled_because: None,
            created_at: now.into(),
            created_by: actor.to_string(),
            since: self.ports.feed.size(tenant).await?,
            previous_secret_until: None,
            version: 1,
        };
        self.check_webhook(&webhook)?;
        let there = self.kept_webhooks(tenant).await?.len();
        check_count("the number of webhooks", there + 1, WEBHOOKS_MAX)?;
        let kept = Kept { webhook, secret: fresh_secret(), previous_secret: None };
        self.write_webhook(tenant, actor, &kept, 0, "created").await?;
        Ok(SecretWebhook { webhook: kept.webhook, secret: kept.secret })
    }

    /// `expected` is the version that was seen, if it matters.
    pub async fn update_webhook(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        id: &str,
        change: WebhookChange,
        expected: Option<u64>,
    ) -> Result<Webhook, Fault> {
        let mut kept = self.kept_webhook(tenant, id).await?;
        let seen = expected.unwrap_or(kept.webhook.version);
        let webhook = &mut kept.webhook;
        let WebhookChange { url, description, events, plans, enabled } = change;
        webhook.url = url.unwrap_or_else(|| std::mem::take(&mut webhook.url));
        webhook.description = description.unwrap_or_else(|| std::mem::take(&mut webhook.description));
        webhook.events = events.unwrap_or_else(|| std::mem::take(&mut webhook.events));
        webhook.plans = plans.unwrap_or_else(|| std::mem::take(&mut webhook.plans));
        let told = match (webhook.enabled, enabled.unwrap_or(webhook.enabled)) {
            (false, true) => {
                webhook.since = self.ports.feed.size(tenant).await?;
                webhook.disabled_because = None;
                "switched on"
            }
            (true, false) => "switched off",
            (true, true) | (false, false) => "changed",
        };
        webhook.enabled = enabled.unwrap_or(webhook.enabled);
        self.check_webhook(webhook)?;
        self.write_webhook(tenant, actor, &kept, seen, told).await?;
        Ok(Webhook { version: seen + 1, ..kept.webhook })
    }

    /// What is still to be sent to it is given up. Removing what is not there is a fault.
    pub async fn delete_webhook(&self, tenant: &TenantId, actor: &Actor, id: &str) -> Result<(), Fault> {
        let kept = self.kept_webhook(tenant, id).await?;
        let change = Change::remove(Kind::Webhook, id).expecting(kept.webhook.version);
        self.write_change(tenant, actor, change, "removed").await
    }

    /// Makes a new secret. For a day deliveries are signed with the one before too.
    pub async fn rotate_webhook(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        id: &str,
    ) -> Result<SecretWebhook, Fault> {
        let mut kept = self.kept_webhook(tenant, id).await?;
        let version = kept.webhook.version;
        kept.previous_secret = Some(std::mem::replace(&mut kept.secret, fresh_secret()));
        kept.webhook.previous_secret_until = Some(Moment(self.now().plus(OVERLAP)));
        self.write_webhook(tenant, actor, &kept, version, "given a new secret").await?;
        let webhook = Webhook { version: version + 1, ..kept.webhook };
        Ok(SecretWebhook { webhook, secret: kept.secret })
    }

    /// Sends an event at once that says it is a test, past the outbox, and tells what came of it.
    pub async fn test_webhook(&self, tenant: &TenantId, id: &str) -> Result<Tested, Fault> {
        let kept = self.kept_webhook(tenant, id).await?;
        let at = self.now();
        let event = CloudEvent::test(tenant.as_str(), id, &name::fresh("test", at), at);
        let receipt = self.ports.post.send(parcel(&kept, &event.id, &event.body, at)).await;
        let took_ms = self.now().since(at).0;
        Ok(match receipt {
            Receipt::Answered { status, text, .. } => Tested {
                delivered: (200..300).contains(&status),
                status: Some(status),
                outcome: text,
                took_ms,
            },
            Receipt::Failed { why } | Receipt::Refused { why } => {
                Tested { delivered: false, status: None, outcome: why, took_ms }
            }
        })
    }

    /// Newest first.
    pub async fn deliveries(
        &self,
        tenant: &TenantId,
        webhook: Option<&str>,
        state: Option<DeliveryState>,
        page: Page,
    ) -> Result<Listing<DeliveryLine>, Fault> {
        let filter = DeliveryFilter { destination: webhook.map(str::to_owned), state };
        let found = self.ports.outbox.deliveries(tenant, filter, page).await?;
        Ok(Listing { items: found.items.iter().map(line).collect(), next: found.next })
    }

    pub async fn delivery(&self, tenant: &TenantId, number: u64) -> Result<DeliveryDetail, Fault> {
        let found = self.ports.outbox.delivery(tenant, number).await?;
        let (delivery, attempts) = found.ok_or_else(|| missing_delivery(number))?;
        let body = serde_json::from_slice(&delivery.body).unwrap_or_default();
        Ok(DeliveryDetail { line: line(&delivery), body, all_tries: attempts.iter().map(tried).collect() })
    }

    /// Sends one again that was delivered or given up, under the same id.
    pub async fn redeliver(&self, tenant: &TenantId, actor: &Actor, number: u64) -> Result<(), Fault> {
        let at = self.now();
        let record = trail::sent_again(actor, at, number);
        if !self.ports.outbox.again(tenant, number, at, record).await? {
            return Err(missing_delivery(number));
        }
        self.to_send.send_replace(());
        Ok(())
    }

    pub async fn delivery_counts(
        &self,
        tenant: &TenantId,
        webhook: Option<&str>,
    ) -> Result<DeliveryCounts, Fault> {
        Ok(self.ports.outbox.counts(tenant, webhook).await?)
    }

    pub(super) async fn kept_webhooks(&self, tenant: &TenantId) -> Result<Vec<Kept>, port::Error> {
        let page = Page::first(rutter_core::limits::PAGE_MAX);
        let notes = self.ports.register.list(tenant, Kind::Webhook, page).await?;
        notes.items.iter().map(Kept::read).collect()
    }

    async fn kept_webhook(&self, tenant: &TenantId, id: &str) -> Result<Kept, Fault> {
        let note = self.ports.register.find(tenant, Kind::Webhook, id).await?;
        Ok(Kept::read(&note.ok_or_else(|| Fault::missing("webhook", id))?)?)
    }

    fn check_webhook(&self, webhook: &Webhook) -> Result<(), Fault> {
        self.ports
            .post
            .check(&webhook.url)
            .map_err(|why| invalid(format!("the URL cannot be used: {why}")))?;
        webhook.check()
    }

    async fn write_webhook(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        kept: &Kept,
        expected: u64,
        told: &str,
    ) -> Result<(), Fault> {
        let change = Change::put(Kind::Webhook, &kept.webhook.id, kept.value()).expecting(expected);
        self.write_change(tenant, actor, change, told).await
    }

    async fn write_change(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        change: Change,
        told: &str,
    ) -> Result<(), Fault> {
        let at = self.now();
        let record = trail::changed(actor, at, SETTING, &change.id, told);
        let changes = Changes { tenant: tenant.clone(), at, changes: vec![change], record };
        self.ports.register.write(changes).await?;
        self.webhooks_changed.send_replace(());
        Ok(())
    }
}

fn missing_delivery(number: u64) -> Fault {
    Fault::missing("delivery", &number.to_string())
}

fn line(delivery: &Delivery) -> DeliveryLine {
    DeliveryLine {
        number: delivery.number,
        webhook: delivery.destination.clone(),
        event: delivery.event.clone(),
        kind: delivery.kind.clone(),
        state: delivery.state.as_str().to_owned(),
        tries: delivery.attempts,
        created_at: delivery.created_at.into(),
        due_at: delivery.due_at.map(Moment),
        last_try: delivery.last.as_ref().map(tried),
    }
}

fn tried(attempt: &DeliveryAttempt) -> Try {
    let DeliveryAttempt { at, took_ms, status, outcome } = attempt.clone();
    Try { at: at.into(), took_ms, status, outcome }
}
