//! Follows a ledger and puts what webhooks want of it into the outbox, each event once.
//!
//! What goes into the outbox and how far was read are written in one piece. Where no webhook wants anything, nothing is
//! written: entries that were passed over may be read again after a crash.

use super::cloud_event::CloudEvent;
use super::plans::Plans;
use super::webhook::Webhook;
use super::{Patience, Watch, trail};
use rutter_core::id::TenantId;
use rutter_core::limits::DELIVERIES_MAX;
use rutter_core::port;
use rutter_core::port::feed::Placed;
use rutter_core::port::outbox::{Moved, NewDelivery};
use std::sync::Arc;

const READER: &str = "webhooks";
/// Entries read at once.
const STRETCH: u32 = 500;
/// So many entries may be passed over before that is written down.
const PASSED_MAX: u64 = 5_000;

pub(super) async fn run(watch: &Watch, tenant: &TenantId) {
    let mut patience = Patience::default();
    loop {
        match Reader::new(watch, tenant).follow(&mut patience).await {
            Ok(never) => match never {},
            // Somebody else has moved the mark: go on from where it is.
            Err(port::Error::Conflict { .. }) => {}
            Err(error) => {
                if !patience.wait("the reader for webhooks", &error).await {
                    return;
                }
            }
        }
    }
}

enum Never {}

struct Reader<'a> {
    watch: &'a Watch,
    tenant: &'a TenantId,
    plans: Plans,
    /// What is written down, and what was read.
    mark: u64,
    place: u64,
}

impl<'a> Reader<'a> {
    fn new(watch: &'a Watch, tenant: &'a TenantId) -> Reader<'a> {
        let plans = Plans::new(Arc::clone(&watch.ports.query), tenant.clone());
        Reader { watch, tenant, plans, mark: 0, place: 0 }
    }

    async fn follow(mut self, patience: &mut Patience) -> Result<Never, port::Error> {
        let (ports, options) = (&self.watch.ports, &self.watch.options);
        let mut changed = self.watch.webhooks_changed.subscribe();
        self.mark = ports.outbox.mark(self.tenant, READER).await?;
        self.place = self.mark;
        loop {
            changed.borrow_and_update();
            // The size before the webhooks: one that is made later begins after it.
            let size = ports.feed.size(self.tenant).await?;
            if self.enabled_webhooks().await?.is_empty() {
                self.place = self.place.max(size);
                self.settle(Vec::new(), PASSED_MAX).await?;
                let _ = tokio::time::timeout(options.tick, changed.changed()).await;
                continue;
            }
            ports.feed.beyond(self.tenant, self.place).await?;
            let is_full = self.read().await?;
            patience.calm();
            if !is_full {
                tokio::time::sleep(options.gather).await;
            }
        }
    }

    /// Reads the next stretch; true when there may be more at once.
    async fn read(&mut self) -> Result<bool, port::Error> {
        let stretch = self.watch.ports.feed.after(self.tenant, self.place, STRETCH).await?;
        // Asked after reading, so that it has every webhook that was there when the entries were written.
        let webhooks = self.enabled_webhooks().await?;
        let mut deliveries = Vec::new();
        for placed in &stretch.items {
            let takers = takers(&webhooks, placed);
            if !takers.is_empty() {
                let plan = self.plans.of(&placed.stored).await?;
                let event = CloudEvent::of(placed, plan.as_ref(), self.watch);
                let takers = takers.into_iter().filter(|webhook| webhook.wants_plan(plan.as_ref()));
                deliveries.extend(takers.map(|webhook| event.to(&webhook.id, self.watch.now())));
            }
            self.place = placed.place;
            if deliveries.len() + webhooks.len() > DELIVERIES_MAX {
                self.settle(std::mem::take(&mut deliveries), 0).await?;
            }
        }
        let is_full = stretch.items.len() >= STRETCH as usize;
        self.place = self.place.max(stretch.until);
        self.settle(deliveries, PASSED_MAX).await?;
        Ok(is_full)
    }

    /// Writes deliveries and the mark in one piece; the mark alone only when it is far behind.
    async fn settle(&mut self, deliveries: Vec<NewDelivery>, passed_max: u64) -> Result<(), port::Error> {
        if deliveries.is_empty() && self.place - self.mark <= passed_max {
            return Ok(());
        }
        let moved = Moved { reader: READER.to_owned(), from: self.mark, to: self.place };
        let is_to_send = !deliveries.is_empty();
        self.watch.ports.outbox.put(self.tenant, Some(moved), deliveries).await?;
        self.mark = self.place;
        if is_to_send {
            self.watch.to_send.send_replace(());
        }
        Ok(())
    }

    async fn enabled_webhooks(&self) -> Result<Vec<Webhook>, port::Error> {
        let kept = self.watch.kept_webhooks(self.tenant).await?;
        Ok(kept.into_iter().map(|kept| kept.webhook).filter(|webhook| webhook.enabled).collect())
    }
}

/// Who wants events of this kind and was there when it happened.
fn takers<'a>(webhooks: &'a [Webhook], placed: &Placed) -> Vec<&'a Webhook> {
    if trail::is_of_delivery(&placed.stored.event) {
        return Vec::new();
    }
    let kind = placed.stored.event.kind();
    webhooks.iter().filter(|webhook| webhook.since < placed.place && webhook.wants(kind)).collect()
}
