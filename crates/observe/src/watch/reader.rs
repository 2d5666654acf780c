//! Follows a ledger and puts the events webhooks subscribe to into the outbox, each event once.
//!
//! Deliveries and the position are saved in one write. When no webhook matches, nothing is written: skipped entries may
//! be read again after a crash.

use super::cloud_event::CloudEvent;
use super::execution_state::{ExecutionState, ends_or_asks};
use super::plans::PlanNameCache;
use super::webhook::WebhookView;
use super::{StoreBackoff, WatchService, audit};
use rutter_core::id::TenantId;
use rutter_core::limits::DELIVERIES_MAX;
use rutter_core::port;
use rutter_core::port::feed::FeedEntry;
use rutter_core::port::outbox::{NewDelivery, ReaderAdvance};
use std::sync::Arc;

const READER: &str = "webhooks";
/// Entries read at once.
const STRETCH: u32 = 500;
/// Entries that may be skipped before the position is saved.
const PASSED_MAX: u64 = 5_000;

pub async fn run(watch: &WatchService, tenant: &TenantId) {
    let mut patience = StoreBackoff::default();
    loop {
        match WebhookFeedReader::new(watch, tenant).follow(&mut patience).await {
            Ok(never) => match never {},
            // Another process moved the position: continue from there.
            Err(port::Error::Conflict { .. }) => {}
            Err(error) => {
                if !patience.wait("the webhook reader", &error).await {
                    return;
                }
            }
        }
    }
}

enum ReaderNever {}

struct WebhookFeedReader<'a> {
    watch: &'a WatchService,
    tenant: &'a TenantId,
    plans: PlanNameCache,
    /// The saved position, and the one read up to.
    mark: u64,
    position: u64,
}

impl<'a> WebhookFeedReader<'a> {
    fn new(watch: &'a WatchService, tenant: &'a TenantId) -> WebhookFeedReader<'a> {
        let plans = PlanNameCache::new(Arc::clone(&watch.ports.query), tenant.clone());
        WebhookFeedReader { watch, tenant, plans, mark: 0, position: 0 }
    }

    async fn follow(mut self, patience: &mut StoreBackoff) -> Result<ReaderNever, port::Error> {
        let (ports, options) = (&self.watch.ports, &self.watch.options);
        let mut changed = self.watch.webhooks_changed.subscribe();
        self.mark = ports.outbox.reader_position(self.tenant, READER).await?;
        self.position = self.mark;
        loop {
            changed.borrow_and_update();
            // Read the size before the webhooks: a webhook created later starts after it.
            let size = ports.feed.size(self.tenant).await?;
            if self.enabled_webhooks().await?.is_empty() {
                self.position = self.position.max(size);
                self.settle(Vec::new(), PASSED_MAX).await?;
                let _ = tokio::time::timeout(options.tick, changed.changed()).await;
                continue;
            }
            ports.feed.wait_beyond(self.tenant, self.position).await?;
            let is_full = self.read().await?;
            patience.reset();
            if !is_full {
                tokio::time::sleep(options.gather).await;
            }
        }
    }

    /// Reads the next entries; true when there may be more.
    async fn read(&mut self) -> Result<bool, port::Error> {
        let stretch = self.watch.ports.feed.entries_after(self.tenant, self.position, STRETCH).await?;
        // Read after the entries, so that no webhook that existed when they were written is missed.
        let webhooks = self.enabled_webhooks().await?;
        let mut deliveries = Vec::new();
        for placed in &stretch.items {
            let takers = subscribers(&webhooks, placed);
            if !takers.is_empty() {
                let plan = self.plans.of(&placed.stored).await?;
                let takers = takers.into_iter().filter(|webhook| webhook.wants_plan(plan.as_ref()));
                let takers: Vec<&WebhookView> = takers.collect();
                let state = match !takers.is_empty() && ends_or_asks(&placed.stored.event) {
                    true => self.state_after(placed).await?,
                    false => None,
                };
                let event = CloudEvent::of(placed, plan.as_ref(), state.as_ref(), self.watch);
                deliveries.extend(takers.into_iter().map(|webhook| event.to(&webhook.id, self.watch.now())));
            }
            self.position = placed.position;
            if deliveries.len() + webhooks.len() > DELIVERIES_MAX {
                self.settle(std::mem::take(&mut deliveries), 0).await?;
            }
        }
        let is_full = stretch.items.len() >= STRETCH as usize;
        self.position = self.position.max(stretch.until);
        self.settle(deliveries, PASSED_MAX).await?;
        Ok(is_full)
    }

    /// Saves deliveries and the position in one write; the position alone only when it is far behind.
    async fn settle(&mut self, deliveries: Vec<NewDelivery>, passed_max: u64) -> Result<(), port::Error> {
        if deliveries.is_empty() && self.position - self.mark <= passed_max {
            return Ok(());
        }
        let moved = ReaderAdvance { reader: READER.to_owned(), from: self.mark, to: self.position };
        let is_to_send = !deliveries.is_empty();
        self.watch.ports.outbox.put(self.tenant, Some(moved), deliveries).await?;
        self.mark = self.position;
        if is_to_send {
            self.watch.outbox_changed.send_replace(());
        }
        Ok(())
    }

    async fn state_after(&self, placed: &FeedEntry) -> Result<Option<ExecutionState>, port::Error> {
        let stored = &placed.stored;
        ExecutionState::after(self.watch, self.tenant, &stored.execution, Some(stored.seq)).await
    }

    async fn enabled_webhooks(&self) -> Result<Vec<WebhookView>, port::Error> {
        let stored = self.watch.stored_webhooks(self.tenant).await?;
        Ok(stored.into_iter().map(|retained| retained.webhook).filter(|webhook| webhook.enabled).collect())
    }
}

/// Enabled webhooks that subscribe to this kind of event and existed when it happened.
fn subscribers<'a>(webhooks: &'a [WebhookView], placed: &FeedEntry) -> Vec<&'a WebhookView> {
    if audit::is_of_delivery(&placed.stored.event) {
        return Vec::new();
    }
    let kind = placed.stored.event.kind();
    webhooks.iter().filter(|webhook| webhook.since < placed.position && webhook.wants(kind)).collect()
}
