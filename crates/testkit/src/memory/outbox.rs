//! Deliveries and their results. Values that the real store takes from its clock are 0 here.

use super::find::{cut, descending, page_size};
use super::register::{check_id, check_limit};
use super::state::{MemoryDelivery, MemoryState, StoreResult};
use super::{MemoryStore, answer};
use rutter_core::id::TenantId;
use rutter_core::journal::event::EventRecord;
use rutter_core::limits::{DELIVERIES_MAX, DELIVERY_BYTES_MAX, REASON_BYTES_MAX};
use rutter_core::port::outbox::{
    Delivery, DeliveryAttempt, DeliveryCounts, DeliveryFilter, DeliveryFollowUp, DeliveryOutbox, DeliveryState,
    NewDelivery, ReaderAdvance,
};
use rutter_core::port::query::{ListPage, Pagination};
use rutter_core::port::{Error, StoreFuture};
use rutter_core::time::Timestamp;

impl DeliveryOutbox for MemoryStore {
    fn reader_position(&self, tenant: &TenantId, reader: &str) -> StoreFuture<'_, u64> {
        answer(Ok(self.state().mark(tenant, reader)))
    }

    fn put(
        &self,
        tenant: &TenantId,
        moved: Option<ReaderAdvance>,
        deliveries: Vec<NewDelivery>,
    ) -> StoreFuture<'_, ()> {
        answer(self.state().put(tenant, moved, deliveries))
    }

    fn due(&self, now: Timestamp, besides: &[String], limit: u32) -> StoreFuture<'_, Vec<Delivery>> {
        answer(self.state().due(now, besides, limit))
    }

    fn next_due(&self) -> StoreFuture<'_, Option<Timestamp>> {
        let due = self.state().deliveries.values().filter_map(|sent| sent.delivery.due_at).min();
        answer(Ok(due))
    }

    fn record_attempt(
        &self,
        number: u64,
        attempt: DeliveryAttempt,
        then: DeliveryFollowUp,
        record: Option<EventRecord>,
    ) -> StoreFuture<'_, ()> {
        self.state().tried(number, attempt, then, record);
        answer(Ok(()))
    }

    fn deliveries(
        &self,
        tenant: &TenantId,
        filter: DeliveryFilter,
        page: Pagination,
    ) -> StoreFuture<'_, ListPage<Delivery>> {
        answer(self.state().list(tenant, &filter, &page))
    }

    fn delivery(&self, tenant: &TenantId, number: u64) -> StoreFuture<'_, Option<(Delivery, Vec<DeliveryAttempt>)>> {
        let state = self.state();
        let sent = state.deliveries.get(&number).filter(|sent| sent.delivery.tenant == *tenant);
        answer(Ok(sent.map(|sent| (sent.delivery.clone(), sent.attempts.clone()))))
    }

    fn resend(
        &self,
        tenant: &TenantId,
        number: u64,
        at: Timestamp,
        record: Option<EventRecord>,
    ) -> StoreFuture<'_, bool> {
        answer(Ok(self.state().again(tenant, number, at, record)))
    }

    fn counts(&self, tenant: &TenantId, destination: Option<&str>) -> StoreFuture<'_, DeliveryCounts> {
        let destination = destination.map(str::to_owned);
        let (state, filter) = (self.state(), DeliveryFilter { destination, state: None });
        let mut counts = DeliveryCounts::default();
        for delivery in state.of(tenant, &filter) {
            match delivery.state {
                DeliveryState::Pending => counts.pending += 1,
                DeliveryState::Delivered => counts.delivered += 1,
                DeliveryState::Dead => counts.dead += 1,
            }
        }
        answer(Ok(counts))
    }

    fn prune(&self, tenant: &TenantId, before: Timestamp) -> StoreFuture<'_, u64> {
        let deliveries = &mut self.state().deliveries;
        let there = deliveries.len();
        deliveries.retain(|_, sent| {
            sent.delivery.tenant != *tenant
                || sent.delivery.state == DeliveryState::Pending
                || sent.touched_at >= before
        });
        answer(Ok((there - deliveries.len()) as u64))
    }
}

impl MemoryState {
    fn mark(&self, tenant: &TenantId, reader: &str) -> u64 {
        self.tenants.get(tenant).and_then(|ledger| ledger.marks.get(reader)).copied().unwrap_or(0)
    }

    fn put(
        &mut self,
        tenant: &TenantId,
        moved: Option<ReaderAdvance>,
        deliveries: Vec<NewDelivery>,
    ) -> StoreResult<()> {
        check(&deliveries)?;
        if let Some(ReaderAdvance { reader, from, to }) = moved {
            check_id(&reader)?;
            let found = self.mark(tenant, &reader);
            if to < from {
                return Err(Error::Invalid(format!("a reader cannot move back from {from} to {to}")));
            }
            if found != from {
                return Err(Error::Conflict { what: format!("reader {reader}"), expected: from, found });
            }
            self.ledger_mut(tenant).marks.insert(reader, to);
        }
        for NewDelivery { destination, event, kind, body, due_at } in deliveries {
            let filter = DeliveryFilter { destination: Some(destination.clone()), state: None };
            if self.of(tenant, &filter).any(|known| known.event == event) {
                continue;
            }
            self.put += 1;
            let delivery = Delivery {
                number: self.put,
                tenant: tenant.clone(),
                destination,
                event,
                kind,
                body,
                state: DeliveryState::Pending,
                attempts: 0,
                created_at: Timestamp(0),
                due_at: Some(due_at),
                last: None,
            };
            let sent = MemoryDelivery { delivery, attempts: Vec::new(), touched_at: Timestamp(0) };
            self.deliveries.insert(self.put, sent);
        }
        Ok(())
    }

    fn due(&self, now: Timestamp, besides: &[String], limit: u32) -> StoreResult<Vec<Delivery>> {
        let limit = page_size(limit)?;
        let all = self.deliveries.values().map(|sent| &sent.delivery);
        let all = all.filter(|delivery| !besides.contains(&delivery.destination));
        let due = all.filter_map(|delivery| Some((delivery.due_at.filter(|due| *due <= now)?, delivery)));
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|(due_at, delivery)| (*due_at, delivery.number));
        Ok(due.into_iter().take(limit).map(|(_, delivery)| delivery.clone()).collect())
    }

    fn tried(
        &mut self,
        number: u64,
        mut attempt: DeliveryAttempt,
        then: DeliveryFollowUp,
        record: Option<EventRecord>,
    ) {
        let Some(MemoryDelivery { delivery, attempts, touched_at }) = self.deliveries.get_mut(&number) else {
            return;
        };
        if delivery.state != DeliveryState::Pending {
            return;
        }
        attempt.outcome.truncate(attempt.outcome.floor_char_boundary(REASON_BYTES_MAX));
        (delivery.state, delivery.due_at) = match then {
            DeliveryFollowUp::Delivered => (DeliveryState::Delivered, None),
            DeliveryFollowUp::Again { at } => (DeliveryState::Pending, Some(at)),
            DeliveryFollowUp::Dead => (DeliveryState::Dead, None),
        };
        delivery.attempts += 1;
        *touched_at = attempt.at;
        delivery.last = Some(attempt.clone());
        attempts.push(attempt);
        let tenant = delivery.tenant.clone();
        if let Some(record) = record {
            self.ledger_mut(&tenant).note(&tenant, &record);
        }
    }

    fn of(&self, tenant: &TenantId, filter: &DeliveryFilter) -> impl Iterator<Item = &Delivery> {
        let all = self.deliveries.values().map(|sent| &sent.delivery);
        all.filter(move |delivery| {
            delivery.tenant == *tenant
                && filter.destination.as_ref().is_none_or(|wanted| delivery.destination == *wanted)
                && filter.state.is_none_or(|wanted| delivery.state == wanted)
        })
    }

    fn list(&self, tenant: &TenantId, filter: &DeliveryFilter, page: &Pagination) -> StoreResult<ListPage<Delivery>> {
        let found = self.of(tenant, filter).map(|delivery| ((descending(delivery.number), 0), delivery));
        let ListPage { items, next } = cut(found.collect(), page)?;
        Ok(ListPage { items: items.into_iter().cloned().collect(), next })
    }

    fn again(&mut self, tenant: &TenantId, number: u64, at: Timestamp, record: Option<EventRecord>) -> bool {
        let sent = self.deliveries.get_mut(&number).filter(|sent| sent.delivery.tenant == *tenant);
        let Some(MemoryDelivery { delivery, touched_at, .. }) = sent else { return false };
        if delivery.state != DeliveryState::Pending {
            (delivery.state, delivery.due_at, *touched_at) = (DeliveryState::Pending, Some(at), at);
            if let Some(record) = record {
                self.ledger_mut(tenant).note(tenant, &record);
            }
        }
        true
    }
}

fn check(deliveries: &[NewDelivery]) -> StoreResult<()> {
    check_limit("deliveries_max", DELIVERIES_MAX, deliveries.len())?;
    for NewDelivery { destination, event, kind, body, .. } in deliveries {
        [destination, event, kind].into_iter().try_for_each(|id| check_id(id))?;
        check_limit("delivery_bytes_max", DELIVERY_BYTES_MAX, body.len())?;
    }
    Ok(())
}
