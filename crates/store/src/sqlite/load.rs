//! Reading a journal back: every entry is checked against the chain before it is used.

use super::commands;
use super::fault;
use super::plans::PlanCache;
use super::position::EntryPosition;
use super::session::hash_of;
use crate::compress;
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::hash::Hash;
use rutter_core::id::PlanId;
use rutter_core::journal::chain::{ChainHead, Entry, HashChain};
use rutter_core::journal::codec::StoredRecord;
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::payload::{Commitment, PayloadSalt, SealedPayload};
use rutter_core::limits::{ENTRY_BYTES_MAX, PAYLOAD_BYTES_MAX};
use rutter_core::port::Error;
use rutter_core::port::journal::LoadedExecution;

const FIND: &str = "
    select execution.number, execution.seq, execution.head, plan.id
    from execution
    join tenant on tenant.number = execution.tenant
    join plan on plan.number = execution.plan
    where tenant.name = ?1 and execution.id = ?2";
pub(super) const ENTRIES: &str = "
    select place, seq, hash, bytes
    from entry
    where execution = ?1
    order by seq";
const PAYLOAD: &str = "
    select payload.salt, payload.bytes, blob.bytes
    from payload
    left join blob on blob.number = payload.blob
    where payload.number = ?1";

pub(super) fn load(
    connection: &mut Connection,
    identity: &ExecutionIdentity,
    plans: &PlanCache,
) -> Result<LoadedExecution, Error> {
    // One transaction: commands and head must be from the same snapshot.
    let transaction = connection.transaction().map_err(fault::of)?;
    let (tenant, execution) = (identity.tenant.as_str(), identity.execution.as_str());
    let found: Option<(i64, u64, Vec<u8>, String)> = transaction
        .prepare_cached(FIND)
        .and_then(|mut statement| {
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            statement.query_row(params![tenant, execution], row).optional()
        })
        .map_err(fault::of)?;
    let unknown = || Error::NotFound { what: "execution", id: execution.to_owned() };
    let (number, seq, hash, plan) = found.ok_or_else(unknown)?;
    let head = ChainHead { seq, hash: hash_of(&hash)? };
    let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
    let mut records = Vec::new();
    for_each_entry(&transaction, number, &mut |place, entry| {
        let stored = follow(&mut chain, entry)?;
        records.push(open(&transaction, place, stored, plans)?);
        Ok(())
    })?;
    if chain.head() != head {
        return Err(Error::Corrupt(format!("the journal of {execution} does not end at its head")));
    }
    let stored_commands = commands::of(&transaction, number)?;
    Ok(LoadedExecution { head, plan: PlanId::new(&plan), records, commands: stored_commands })
}

/// Checks the next entry. `prev` is not stored: it is the hash of the entry before.
pub(super) fn follow(chain: &mut HashChain, mut entry: Entry) -> Result<StoredRecord, Error> {
    entry.prev = chain.head().hash;
    chain.follow(&entry).map_err(|why| Error::Corrupt(format!("entry {}: {why}", entry.seq)))
}

/// Reads the entries of a journal in order.
pub(super) fn for_each_entry(
    connection: &Connection,
    execution: i64,
    each: &mut dyn FnMut(EntryPosition, Entry) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(ENTRIES).map_err(fault::of)?;
    let mut rows = statement.query([execution]).map_err(fault::of)?;
    while let Some(row) = rows.next().map_err(fault::of)? {
        let (place, entry) = entry_of(row)?;
        each(place, entry)?;
    }
    Ok(())
}

/// Reads position, seq, hash and bytes; [`follow`] sets `prev`.
pub(super) fn entry_of(row: &rusqlite::Row<'_>) -> Result<(EntryPosition, Entry), Error> {
    let get = || -> rusqlite::Result<(i64, u64, Vec<u8>, Vec<u8>)> {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    };
    let (place, seq, hash, packed) = get().map_err(fault::of)?;
    let damaged = |error: compress::DamagedBytes| Error::Corrupt(format!("entry {seq}: {error}"));
    let bytes = compress::unpack_entry(&packed, ENTRY_BYTES_MAX).map_err(damaged)?;
    let entry = Entry { seq, bytes: bytes.into(), prev: Hash::ZERO, hash: hash_of(&hash)? };
    Ok((EntryPosition::from(place), entry))
}

/// Puts payloads and plans back into a stored event.
pub(super) fn open(
    connection: &Connection,
    place: EntryPosition,
    stored: StoredRecord,
    plans: &PlanCache,
) -> Result<EventRecord, Error> {
    let seq = stored.seq;
    let mut payloads = Vec::new();
    for (nth, commitment) in stored.commitments().into_iter().enumerate() {
        payloads.push((commitment, payload(connection, place, nth, commitment)?));
    }
    // The same commitment never occurs twice in an event: every payload has a salt of its own.
    let find = |wanted: Commitment| {
        payloads.iter().find(|(commitment, _)| *commitment == wanted).and_then(|(_, payload)| payload.clone())
    };
    let mut record = stored.open(&find).map_err(|wrong| Error::Corrupt(format!("entry {seq}: {wrong}")))?;
    if let Some(plan) = record.event.plan() {
        let plan = plans.by_hash(connection, plan.hash)?;
        record.event.supply_plan(&|_| Some(std::sync::Arc::clone(&plan)));
    }
    Ok(record)
}

/// Reads one payload; `None` when it was erased.
pub(super) fn payload(
    connection: &Connection,
    place: EntryPosition,
    nth: usize,
    commitment: Commitment,
) -> Result<Option<SealedPayload>, Error> {
    type Row = (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>);
    let found: Option<Row> = connection
        .prepare_cached(PAYLOAD)
        .and_then(|mut statement| {
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            statement.query_row([place.payload(nth)], row).optional()
        })
        .map_err(fault::of)?;
    let Some((salt, inline, blob)) = found else { return Ok(None) };
    let damaged = |what: &str| Error::Corrupt(format!("payload {}: {what}", commitment.hash.short()));
    let salt = PayloadSalt(salt.try_into().map_err(|_| damaged("its salt is not 16 bytes long"))?);
    let packed = inline.or(blob).ok_or_else(|| damaged("its blob is missing"))?;
    let bytes = compress::unpack(&packed, PAYLOAD_BYTES_MAX).map_err(|error| damaged(&error.to_string()))?;
    Ok(Some(SealedPayload { commitment, salt, bytes: bytes.into() }))
}
