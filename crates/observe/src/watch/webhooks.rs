//! Operations on webhooks and deliveries. Every change of a webhook is recorded in the ledger's own journal.

use super::cloud_event::CloudEvent;
use super::rfc3339::Rfc3339Timestamp;
use super::signature::fresh_secret;
use super::webhook::{NewWebhook, SecretWebhook, StoredWebhook, WebhookChange, WebhookView, check_count, invalid};
use super::webhook_sender::webhook_request;
use super::{WatchService, audit};
use crate::Error;
use crate::limits::WEBHOOKS_MAX;
use rutter_core::actor::Actor;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::outbox::{
    Delivery, DeliveryAttempt, DeliveryCounts, DeliveryFilter, DeliveryState, SendOutcome,
};
use rutter_core::port::query::{ListPage, Pagination};
use rutter_core::port::register::{RegisterChange, RegisterKind};
use rutter_core::time::Millis;
use rutter_engine::name;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// How long deliveries are also signed with the previous secret, so that receivers can switch over.
const OVERLAP: Millis = Millis::hours(24);

/// The result of a webhook test.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WebhookTest {
    pub delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The beginning of the response, or why there is none.
    pub outcome: String,
    pub took_ms: u64,
}

/// A delivery in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeliveryListItem {
    pub number: u64,
    pub webhook: String,
    /// The id by which the receiver detects duplicates.
    pub event: String,
    pub kind: String,
    /// `pending`, `delivered` or `dead`.
    pub state: String,
    pub tries: u32,
    pub created_at: Rfc3339Timestamp,
    /// When the next attempt is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Rfc3339Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_try: Option<DeliveryTry>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeliveryDetail {
    #[serde(flatten)]
    pub line: DeliveryListItem,
    /// The body that was, or will be, sent.
    pub body: Value,
    pub all_tries: Vec<DeliveryTry>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeliveryTry {
    pub at: Rfc3339Timestamp,
    pub took_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The beginning of the response, or why there is none.
    pub outcome: String,
}

impl WatchService {
    /// All webhooks, oldest first.
    pub async fn webhooks(&self, tenant: &TenantId) -> Result<Vec<WebhookView>, Error> {
        let stored = self.stored_webhooks(tenant).await?;
        Ok(stored.into_iter().map(|retained| retained.webhook).collect())
    }

    pub async fn webhook(&self, tenant: &TenantId, id: &str) -> Result<WebhookView, Error> {
        Ok(self.stored_webhook(tenant, id).await?.webhook)
    }

    /// Creates a webhook, which receives events from now on.
    pub async fn create_webhook(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        new: NewWebhook,
    ) -> Result<SecretWebhook, Error> {
        let NewWebhook { url, description, events, plans } = new;
        let now = self.now();
        let webhook = WebhookView {
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
        let there = self.stored_webhooks(tenant).await?.len();
        check_count("the number of webhooks", there + 1, WEBHOOKS_MAX)?;
        let stored = StoredWebhook { webhook, secret: fresh_secret(), previous_secret: None };
        self.write_webhook(tenant, actor, &stored, 0, "created").await?;
        Ok(SecretWebhook { webhook: stored.webhook, secret: stored.secret })
    }

    /// `expected` is the version the caller read, if any.
    pub async fn update_webhook(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        id: &str,
        change: WebhookChange,
        expected: Option<u64>,
    ) -> Result<WebhookView, Error> {
        let mut stored = self.stored_webhook(tenant, id).await?;
        let seen = expected.unwrap_or(stored.webhook.version);
        let webhook = &mut stored.webhook;
        let WebhookChange { url, description, events, plans, enabled } = change;
        webhook.url = url.unwrap_or_else(|| std::mem::take(&mut webhook.url));
        webhook.description = description.unwrap_or_else(|| std::mem::take(&mut webhook.description));
        webhook.events = events.unwrap_or_else(|| std::mem::take(&mut webhook.events));
        webhook.plans = plans.unwrap_or_else(|| std::mem::take(&mut webhook.plans));
        let answer = match (webhook.enabled, enabled.unwrap_or(webhook.enabled)) {
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
        self.write_webhook(tenant, actor, &stored, seen, answer).await?;
        Ok(WebhookView { version: seen + 1, ..stored.webhook })
    }

    /// Removes a webhook; its pending deliveries are dropped. Fails if there is none.
    pub async fn delete_webhook(&self, tenant: &TenantId, actor: &Actor, id: &str) -> Result<(), Error> {
        let stored = self.stored_webhook(tenant, id).await?;
        let change = RegisterChange::remove(RegisterKind::Webhook, id).expecting(stored.webhook.version);
        self.write_setting(tenant, actor, change, "removed").await
    }

    /// Creates a new secret. For a day deliveries are also signed with the previous one.
    pub async fn rotate_webhook(&self, tenant: &TenantId, actor: &Actor, id: &str) -> Result<SecretWebhook, Error> {
        let mut stored = self.stored_webhook(tenant, id).await?;
        let version = stored.webhook.version;
        stored.previous_secret = Some(std::mem::replace(&mut stored.secret, fresh_secret()));
        stored.webhook.previous_secret_until = Some(Rfc3339Timestamp(self.now().plus(OVERLAP)));
        self.write_webhook(tenant, actor, &stored, version, "given a new secret").await?;
        let webhook = WebhookView { version: version + 1, ..stored.webhook };
        Ok(SecretWebhook { webhook, secret: stored.secret })
    }

    /// Sends a test event at once, without the outbox, and returns the result.
    pub async fn test_webhook(&self, tenant: &TenantId, id: &str) -> Result<WebhookTest, Error> {
        let stored = self.stored_webhook(tenant, id).await?;
        let at = self.now();
        let event = CloudEvent::test(tenant.as_str(), id, &name::fresh("test", at), at);
        let receipt = self.ports.http_sender.send(webhook_request(&stored, &event.id, &event.body, at)).await;
        let took_ms = self.now().since(at).0;
        Ok(match receipt {
            SendOutcome::Answered { status, text, .. } => {
                WebhookTest { delivered: (200..300).contains(&status), status: Some(status), outcome: text, took_ms }
            }
            SendOutcome::Failed { why } | SendOutcome::Refused { why } => {
                WebhookTest { delivered: false, status: None, outcome: why, took_ms }
            }
        })
    }

    /// Newest first.
    pub async fn deliveries(
        &self,
        tenant: &TenantId,
        webhook: Option<&str>,
        state: Option<DeliveryState>,
        page: Pagination,
    ) -> Result<ListPage<DeliveryListItem>, Error> {
        let filter = DeliveryFilter { destination: webhook.map(str::to_owned), state };
        let found = self.ports.outbox.deliveries(tenant, filter, page).await?;
        Ok(ListPage { items: found.items.iter().map(line).collect(), next: found.next })
    }

    pub async fn delivery(&self, tenant: &TenantId, number: u64) -> Result<DeliveryDetail, Error> {
        let found = self.ports.outbox.delivery(tenant, number).await?;
        let (delivery, attempts) = found.ok_or_else(|| missing_delivery(number))?;
        let body = serde_json::from_slice(&delivery.body).unwrap_or_default();
        Ok(DeliveryDetail { line: line(&delivery), body, all_tries: attempts.iter().map(delivery_try).collect() })
    }

    /// Sends a finished delivery again, with the same id.
    pub async fn redeliver(&self, tenant: &TenantId, actor: &Actor, number: u64) -> Result<(), Error> {
        let at = self.now();
        let record = audit::sent_again(actor, at, number);
        if !self.ports.outbox.resend(tenant, number, at, record).await? {
            return Err(missing_delivery(number));
        }
        self.outbox_changed.send_replace(());
        Ok(())
    }

    pub async fn delivery_counts(&self, tenant: &TenantId, webhook: Option<&str>) -> Result<DeliveryCounts, Error> {
        Ok(self.ports.outbox.counts(tenant, webhook).await?)
    }

    pub async fn stored_webhooks(&self, tenant: &TenantId) -> Result<Vec<StoredWebhook>, port::Error> {
        let page = Pagination::first(rutter_core::limits::PAGE_MAX);
        let notes = self.ports.register.list(tenant, RegisterKind::Webhook, page).await?;
        notes.items.iter().map(StoredWebhook::read).collect()
    }

    async fn stored_webhook(&self, tenant: &TenantId, id: &str) -> Result<StoredWebhook, Error> {
        let note = self.ports.register.find(tenant, RegisterKind::Webhook, id).await?;
        Ok(StoredWebhook::read(&note.ok_or_else(|| Error::missing("webhook", id))?)?)
    }

    fn check_webhook(&self, webhook: &WebhookView) -> Result<(), Error> {
        self.ports.http_sender.check(&webhook.url).map_err(|why| invalid(format!("the URL cannot be used: {why}")))?;
        webhook.check()
    }

    async fn write_webhook(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        stored: &StoredWebhook,
        expected: u64,
        answer: &str,
    ) -> Result<(), Error> {
        let change = RegisterChange::put(RegisterKind::Webhook, &stored.webhook.id, stored.value()).expecting(expected);
        self.write_setting(tenant, actor, change, answer).await
    }
}

fn missing_delivery(number: u64) -> Error {
    Error::missing("delivery", &number.to_string())
}

fn line(delivery: &Delivery) -> DeliveryListItem {
    DeliveryListItem {
        number: delivery.number,
        webhook: delivery.destination.clone(),
        event: delivery.event.clone(),
        kind: delivery.kind.clone(),
        state: delivery.state.as_str().to_owned(),
        tries: delivery.attempts,
        created_at: delivery.created_at.into(),
        due_at: delivery.due_at.map(Rfc3339Timestamp),
        last_try: delivery.last.as_ref().map(delivery_try),
    }
}

fn delivery_try(attempt: &DeliveryAttempt) -> DeliveryTry {
    let DeliveryAttempt { at, took_ms, status, outcome } = attempt.clone();
    DeliveryTry { at: at.into(), took_ms, status, outcome }
}
