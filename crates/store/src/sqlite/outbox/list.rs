//! Listing deliveries: first the numbers, along one index in its order, then each row.

use super::super::fault;
use super::super::query::ListPaging;
use super::super::session::one;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use rutter_core::id::TenantId;
use rutter_core::port::Error;
use rutter_core::port::outbox::{Delivery, DeliveryAttempt, DeliveryCounts, DeliveryFilter, DeliveryState};
use rutter_core::port::query::ListPage;
use rutter_core::time::Timestamp;

pub(in crate::sqlite) const DUE: &str = "
    select number
    from delivery indexed by delivery_due
    where state = 'pending' and due_at <= ? and destination not in (select value from json_each(?))
    order by due_at, number
    limit ?";
pub(in crate::sqlite) const NEXT_DUE: &str = "
    select min(due_at)
    from delivery indexed by delivery_due
    where state = 'pending'";
pub(in crate::sqlite) const ALL: &str = "
    select number
    from delivery indexed by delivery_tenant
    where tenant = ? and number < ?
    order by number desc
    limit ?";
pub(in crate::sqlite) const BY_STATE: &str = "
    select number
    from delivery indexed by delivery_state
    where tenant = ? and state = ? and number < ?
    order by number desc
    limit ?";
pub(in crate::sqlite) const BY_DESTINATION: &str = "
    select number
    from delivery indexed by delivery_destination
    where tenant = ? and destination = ? and number < ?
    order by number desc
    limit ?";
pub(in crate::sqlite) const BY_BOTH: &str = "
    select number
    from delivery indexed by delivery_destination_state
    where tenant = ? and destination = ? and state = ? and number < ?
    order by number desc
    limit ?";
pub(in crate::sqlite) const COUNTS: &str = "
    select state, count(*)
    from delivery indexed by delivery_state
    where tenant = ?
    group by state";
pub(in crate::sqlite) const COUNTS_OF_ONE: &str = "
    select state, count(*)
    from delivery indexed by delivery_destination_state
    where tenant = ? and destination = ?
    group by state";
pub(in crate::sqlite) const ONE: &str = "
    select delivery.number, tenant.name, delivery.destination, delivery.event, delivery.kind, delivery.body,
        delivery.state, delivery.attempts, delivery.created_at, delivery.due_at,
        last.at, last.took_ms, last.status, last.outcome
    from delivery
    join tenant on tenant.number = delivery.tenant
    left join delivery_attempt as last on last.delivery = delivery.number and last.nth = delivery.attempts
    where delivery.number = ?1";
const TENANT: &str = "select tenant from delivery where number = ?1";
pub(in crate::sqlite) const ATTEMPTS: &str = "
    select at, took_ms, status, outcome
    from delivery_attempt
    where delivery = ?1
    order by nth";

/// `besides` is a JSON list of destinations to leave out.
pub(super) fn due(
    connection: &mut Connection,
    now: Timestamp,
    besides: String,
    limit: usize,
) -> Result<Vec<Delivery>, Error> {
    // One transaction: what was found due is still there when it is read.
    let connection = connection.transaction().map_err(fault::of)?;
    let numbers = numbers(&connection, DUE, &[now.0.into(), besides.into(), (limit as i64).into()])?;
    numbers.into_iter().map(|number| read(&connection, number)).collect()
}

pub(super) fn next_due(connection: &Connection) -> Result<Option<Timestamp>, Error> {
    Ok(one::<Option<i64>>(connection, NEXT_DUE, [])?.flatten().map(Timestamp))
}

pub(super) fn deliveries(
    connection: &mut Connection,
    tenant: i64,
    filter: &DeliveryFilter,
    paging: ListPaging,
) -> Result<ListPage<Delivery>, Error> {
    let connection = connection.transaction().map_err(fault::of)?;
    let state = filter.state.map(|state| Value::from(state.as_str().to_owned()));
    let destination = filter.destination.clone().map(Value::from);
    let sql = match (&destination, &state) {
        (None, None) => ALL,
        (None, Some(_)) => BY_STATE,
        (Some(_), None) => BY_DESTINATION,
        (Some(_), Some(_)) => BY_BOTH,
    };
    let before = paging.after.map_or(i64::MAX, |(number, _)| number);
    let mut values = vec![Value::from(tenant)];
    values.extend(destination.into_iter().chain(state));
    values.extend([before.into(), paging.look_for().into()]);
    let mut keys = numbers(&connection, sql, &values)?.into_iter().map(|number| (number, 0)).collect();
    let next = paging.cut(&mut keys);
    let items = keys.into_iter().map(|(number, _)| read(&connection, number));
    Ok(ListPage { items: items.collect::<Result<_, _>>()?, next })
}

pub(super) fn delivery(
    connection: &mut Connection,
    tenant: i64,
    number: u64,
) -> Result<Option<(Delivery, Vec<DeliveryAttempt>)>, Error> {
    let connection = connection.transaction().map_err(fault::of)?;
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    if one::<i64>(&connection, TENANT, [number])? != Some(tenant) {
        return Ok(None);
    }
    let attempts = || -> rusqlite::Result<Vec<DeliveryAttempt>> {
        let mut statement = connection.prepare_cached(ATTEMPTS)?;
        statement.query_map([number], |row| attempt_of(row, 0))?.collect()
    };
    Ok(Some((read(&connection, number)?, attempts().map_err(fault::of)?)))
}

pub(super) fn counts(connection: &Connection, tenant: i64, destination: Option<&str>) -> Result<DeliveryCounts, Error> {
    let counted = || -> rusqlite::Result<Vec<(String, u64)>> {
        let count = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        match destination {
            None => connection.prepare_cached(COUNTS)?.query_map([tenant], count)?.collect(),
            Some(destination) => {
                let of_one = params![tenant, destination];
                connection.prepare_cached(COUNTS_OF_ONE)?.query_map(of_one, count)?.collect()
            }
        }
    };
    let mut counts = DeliveryCounts::default();
    for (state, count) in counted().map_err(fault::of)? {
        match state_of(&state)? {
            DeliveryState::Pending => counts.pending = count,
            DeliveryState::Delivered => counts.delivered = count,
            DeliveryState::Dead => counts.dead = count,
        }
    }
    Ok(counts)
}

fn numbers(connection: &Connection, sql: &str, values: &[Value]) -> Result<Vec<i64>, Error> {
    let numbers = || -> rusqlite::Result<Vec<i64>> {
        let mut statement = connection.prepare_cached(sql)?;
        statement.query_map(params_from_iter(values), |row| row.get(0))?.collect()
    };
    numbers().map_err(fault::of)
}

fn read(connection: &Connection, number: i64) -> Result<Delivery, Error> {
    let mut statement = connection.prepare_cached(ONE).map_err(fault::of)?;
    let found = statement.query_row([number], |row| Ok((delivery_of(row)?, row.get(6)?))).optional();
    let missing = || Error::Corrupt(format!("delivery {number} is in an index but not stored"));
    let (delivery, state): (Delivery, String) = found.map_err(fault::of)?.ok_or_else(missing)?;
    Ok(Delivery { state: state_of(&state)?, ..delivery })
}

/// Everything but the state, which may be unknown.
fn delivery_of(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let last: Option<i64> = row.get(10)?;
    Ok(Delivery {
        number: row.get(0)?,
        tenant: TenantId::new(&row.get::<_, String>(1)?),
        destination: row.get(2)?,
        event: row.get(3)?,
        kind: row.get(4)?,
        body: row.get(5)?,
        state: DeliveryState::Pending,
        attempts: row.get(7)?,
        created_at: Timestamp(row.get(8)?),
        due_at: row.get::<_, Option<i64>>(9)?.map(Timestamp),
        last: last.map(|_| attempt_of(row, 10)).transpose()?,
    })
}

fn attempt_of(row: &Row<'_>, first: usize) -> rusqlite::Result<DeliveryAttempt> {
    Ok(DeliveryAttempt {
        at: Timestamp(row.get(first)?),
        took_ms: row.get(first + 1)?,
        status: row.get(first + 2)?,
        outcome: row.get(first + 3)?,
    })
}

fn state_of(state: &str) -> Result<DeliveryState, Error> {
    let known = DeliveryState::ALL.into_iter().find(|known| known.as_str() == state);
    known.ok_or_else(|| Error::Corrupt(format!("unknown delivery state {state:?}")))
}
