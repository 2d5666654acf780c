//! The outbox: deliveries, their attempts, and the ledger positions of the readers that create them.

pub(super) mod list;

use super::query::{ListKind, ListPaging, number_of, size_of_page};
use super::register::check_id;
use super::session::{WriteSession, one};
use super::{SqliteStore, own, refused};
use rusqlite::params;
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

pub(super) const MARK: &str = "select place from mark where tenant = ?1 and reader = ?2";
const MOVE: &str = "
    insert into mark (tenant, reader, place)
    values (?1, ?2, ?3)
    on conflict (tenant, reader)
    do update set place = excluded.place";
const PUT: &str = "
    insert into delivery (tenant, destination, event, kind, body, state, created_at, touched_at, due_at)
    values (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?6, ?7)
    on conflict (tenant, destination, event) do nothing";
const ATTEMPTS: &str = "select attempts from delivery where number = ?1 and state = 'pending'";
const WHOSE: &str = "select name from tenant where number = (select tenant from delivery where number = ?1)";
const TRIED: &str = "
    insert into delivery_attempt (delivery, nth, at, took_ms, status, outcome)
    values (?1, ?2, ?3, ?4, ?5, ?6)";
const THEN: &str = "
    update delivery
    set attempts = ?2, state = ?3, due_at = ?4, touched_at = ?5
    where number = ?1";
const IS_THERE: &str = "select 1 from delivery where tenant = ?1 and number = ?2";
const AGAIN: &str = "
    update delivery
    set state = 'pending', due_at = ?3, touched_at = ?3
    where tenant = ?1 and number = ?2 and state <> 'pending'";
/// Deliveries pruned in one write: few, so that other writes run in between.
const PRUNE_AT_ONCE: u64 = 500;
pub(super) const OLD: &str = "
    select number
    from delivery
    where tenant = ?1 and touched_at < ?2 and state <> 'pending'
    order by touched_at
    limit ?3";
pub(super) const FORGET_ATTEMPTS: &str = "delete from delivery_attempt where delivery = ?1";
const FORGET: &str = "delete from delivery where number = ?1";

impl DeliveryOutbox for SqliteStore {
    fn reader_position(&self, tenant: &TenantId, reader: &str) -> StoreFuture<'_, u64> {
        let (tenant, reader) = (tenant.clone(), reader.to_owned());
        self.read(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => Ok(one(connection, MARK, params![tenant, reader])?.unwrap_or(0)),
            None => Ok(0),
        })
    }

    fn put(
        &self,
        tenant: &TenantId,
        moved: Option<ReaderAdvance>,
        deliveries: Vec<NewDelivery>,
    ) -> StoreFuture<'_, ()> {
        if let Err(error) = check(moved.as_ref(), &deliveries) {
            return refused(error);
        }
        let (tenant, now, mut is_again) = (tenant.clone(), (self.clock)(), false);
        self.write(true, move |session| {
            let is_again = std::mem::replace(&mut is_again, true);
            put(session, &tenant, moved.as_ref(), &deliveries, now, is_again)
        })
    }

    fn due(&self, now: Timestamp, besides: &[String], limit: u32) -> StoreFuture<'_, Vec<Delivery>> {
        let besides = serde_json::json!(besides).to_string();
        match size_of_page(limit) {
            Ok(limit) => self.read(move |connection| list::due(connection, now, besides, limit)),
            Err(error) => refused(error),
        }
    }

    fn next_due(&self) -> StoreFuture<'_, Option<Timestamp>> {
        self.read(|connection| list::next_due(connection))
    }

    fn record_attempt(
        &self,
        number: u64,
        attempt: DeliveryAttempt,
        then: DeliveryFollowUp,
        record: Option<EventRecord>,
    ) -> StoreFuture<'_, ()> {
        let mut before = None;
        self.write(true, move |session| tried(session, number, &attempt, then, record.as_ref(), &mut before))
    }

    fn deliveries(
        &self,
        tenant: &TenantId,
        filter: DeliveryFilter,
        page: Pagination,
    ) -> StoreFuture<'_, ListPage<Delivery>> {
        let tenant = tenant.clone();
        match ListPaging::read(ListKind::Deliveries, &page) {
            Ok(paging) => self.read(move |connection| match number_of(connection, &tenant)? {
                Some(tenant) => list::deliveries(connection, tenant, &filter, paging),
                None => Ok(super::query::nothing()),
            }),
            Err(error) => refused(error),
        }
    }

    fn delivery(&self, tenant: &TenantId, number: u64) -> StoreFuture<'_, Option<(Delivery, Vec<DeliveryAttempt>)>> {
        let tenant = tenant.clone();
        self.read(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => list::delivery(connection, tenant, number),
            None => Ok(None),
        })
    }

    fn resend(
        &self,
        tenant: &TenantId,
        number: u64,
        at: Timestamp,
        record: Option<EventRecord>,
    ) -> StoreFuture<'_, bool> {
        let name = tenant.clone();
        self.write(true, move |session| {
            let Some(tenant) = session.find_tenant(&name)? else { return Ok(false) };
            let is_changed = session.execute(AGAIN, params![tenant, number, at.0])? > 0;
            if let Some(record) = record.as_ref().filter(|_| is_changed) {
                own::record(session, tenant, &name, record)?;
            }
            Ok(session.one::<i64>(IS_THERE, params![tenant, number])?.is_some())
        })
    }

    fn counts(&self, tenant: &TenantId, destination: Option<&str>) -> StoreFuture<'_, DeliveryCounts> {
        let (tenant, destination) = (tenant.clone(), destination.map(str::to_owned));
        self.read(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => list::counts(connection, tenant, destination.as_deref()),
            None => Ok(DeliveryCounts::default()),
        })
    }

    /// A loop of short writes: other writes run in between, and dropping the future stops it.
    fn prune(&self, tenant: &TenantId, before: Timestamp) -> StoreFuture<'_, u64> {
        let tenant = tenant.clone();
        Box::pin(async move {
            let mut sum = 0;
            loop {
                let tenant = tenant.clone();
                let pruned = self.write(true, move |session| prune(session, &tenant, before)).await?;
                sum += pruned;
                if pruned < PRUNE_AT_ONCE {
                    return Ok(sum);
                }
            }
        })
    }
}

fn check(moved: Option<&ReaderAdvance>, deliveries: &[NewDelivery]) -> Result<(), Error> {
    if let Some(ReaderAdvance { reader, from, to }) = moved {
        check_id(reader)?;
        if to < from {
            return Err(Error::Invalid(format!("a reader cannot move back from {from} to {to}")));
        }
    }
    let (max, found) = (DELIVERIES_MAX as u64, deliveries.len() as u64);
    if found > max {
        return Err(Error::Limit { limit: "deliveries_max", max, found });
    }
    for NewDelivery { destination, event, kind, body, .. } in deliveries {
        [destination, event, kind].into_iter().try_for_each(|id| check_id(id))?;
        let (max, found) = (DELIVERY_BYTES_MAX as u64, body.len() as u64);
        if found > max {
            return Err(Error::Limit { limit: "delivery_bytes_max", max, found });
        }
    }
    Ok(())
}

/// Adds deliveries. If this is a retry and the reader's position has moved, the first commit took effect.
fn put(
    session: &mut WriteSession,
    tenant: &TenantId,
    moved: Option<&ReaderAdvance>,
    deliveries: &[NewDelivery],
    now: Timestamp,
    is_again: bool,
) -> Result<(), Error> {
    let tenant = session.tenant(tenant)?;
    if let Some(ReaderAdvance { reader, from, to }) = moved {
        let found: u64 = session.one(MARK, params![tenant, reader])?.unwrap_or(0);
        if is_again && from < to && found >= *to {
            return Ok(());
        }
        if found != *from {
            return Err(Error::Conflict { what: format!("reader {reader}"), expected: *from, found });
        }
        session.execute(MOVE, params![tenant, reader, to])?;
    }
    for NewDelivery { destination, event, kind, body, due_at } in deliveries {
        session.execute(PUT, params![tenant, destination, event, kind, body, now.0, due_at.0])?;
    }
    Ok(())
}

/// Records an attempt. `before` is the number of attempts that an earlier try, whose commit is uncertain, found.
fn tried(
    session: &mut WriteSession,
    number: u64,
    attempt: &DeliveryAttempt,
    then: DeliveryFollowUp,
    record: Option<&EventRecord>,
    before: &mut Option<u64>,
) -> Result<(), Error> {
    let Some(attempts) = session.one::<u64>(ATTEMPTS, [number])? else { return Ok(()) };
    if before.is_some_and(|before| attempts > before) {
        return Ok(());
    }
    *before = Some(attempts);
    let DeliveryAttempt { at, took_ms, status, outcome } = attempt;
    let outcome = &outcome[..outcome.floor_char_boundary(REASON_BYTES_MAX)];
    session.execute(TRIED, params![number, attempts + 1, at.0, took_ms, status, outcome])?;
    let (state, due_at) = match then {
        DeliveryFollowUp::Delivered => (DeliveryState::Delivered, None),
        DeliveryFollowUp::Again { at } => (DeliveryState::Pending, Some(at.0)),
        DeliveryFollowUp::Dead => (DeliveryState::Dead, None),
    };
    session.execute(THEN, params![number, attempts + 1, state.as_str(), due_at, at.0])?;
    if let Some(record) = record
        && let Some(name) = session.one::<String>(WHOSE, [number])?
    {
        let name = TenantId::new(&name);
        let tenant = session.tenant(&name)?;
        own::record(session, tenant, &name, record)?;
    }
    Ok(())
}

fn prune(session: &mut WriteSession, tenant: &TenantId, before: Timestamp) -> Result<u64, Error> {
    let Some(tenant) = session.find_tenant(tenant)? else { return Ok(0) };
    let old = || -> rusqlite::Result<Vec<i64>> {
        let mut statement = session.connection.prepare_cached(OLD)?;
        statement.query_map(params![tenant, before.0, PRUNE_AT_ONCE], |row| row.get(0))?.collect()
    };
    let old = old().map_err(super::fault::of)?;
    for number in &old {
        session.execute(FORGET_ATTEMPTS, [number])?;
        session.execute(FORGET, [number])?;
    }
    Ok(old.len() as u64)
}

#[cfg(test)]
mod tests;
