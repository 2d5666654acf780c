//! Stored payloads: finding, measuring and deleting them.

use super::fault;
use super::position::{EntryPosition, PAYLOADS_PER_ENTRY};
use super::session::WriteSession;
use crate::compress;
use rusqlite::{Connection, params};
use rutter_core::port::Error;
use std::collections::BTreeSet;

/// A payload that was not erased.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredPayload {
    number: i64,
    blob: Option<i64>,
    /// The unpacked length.
    pub bytes: u64,
}

const OF_ENTRY: &str = "
    select payload.number, payload.blob, coalesce(payload.bytes, blob.bytes)
    from payload
    left join blob on blob.number = payload.blob
    where payload.number between ?1 * ?2 and ?1 * ?2 + ?2 - 1";
const OF_EXECUTION: &str = "
    select payload.number, payload.blob, coalesce(payload.bytes, blob.bytes)
    from entry indexed by entry_seq
    cross join payload on payload.number between entry.place * ?2 and entry.place * ?2 + ?2 - 1
    left join blob on blob.number = payload.blob
    where entry.execution = ?1";
const OF_EXECUTIONS_ENTRY: &str = "
    select payload.number, payload.blob, coalesce(payload.bytes, blob.bytes)
    from entry indexed by entry_seq
    cross join payload on payload.number between entry.place * ?2 and entry.place * ?2 + ?2 - 1
    left join blob on blob.number = payload.blob
    where entry.execution = ?1 and entry.seq = ?3";

/// Every statement that finds payloads, for a test of their query plans.
#[cfg(test)]
pub(super) const SELECTS: &[&str] = &[OF_ENTRY, OF_EXECUTION, OF_EXECUTIONS_ENTRY];

pub(super) fn of_entry(connection: &Connection, place: EntryPosition) -> Result<Vec<StoredPayload>, Error> {
    read(connection, OF_ENTRY, params![place.number(), PAYLOADS_PER_ENTRY])
}

/// The payloads of all entries of an execution, or of the entries with these sequence numbers.
pub(super) fn of_execution(
    connection: &Connection,
    execution: i64,
    seqs: Option<&[u64]>,
) -> Result<Vec<StoredPayload>, Error> {
    let Some(seqs) = seqs else {
        return read(connection, OF_EXECUTION, params![execution, PAYLOADS_PER_ENTRY]);
    };
    let mut found = Vec::new();
    for seq in seqs.iter().collect::<BTreeSet<_>>() {
        // A number out of range belongs to no entry.
        let Ok(seq) = i64::try_from(*seq) else { continue };
        found.extend(read(connection, OF_EXECUTIONS_ENTRY, params![execution, PAYLOADS_PER_ENTRY, seq])?);
    }
    Ok(found)
}

fn read(connection: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<Vec<StoredPayload>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(fault::of)?;
    let rows = statement.query_map(params, |row| {
        let bytes = row.get_ref(2)?.as_blob_or_null()?.map_or(0, compress::length) as u64;
        Ok(StoredPayload { number: row.get(0)?, blob: row.get(1)?, bytes })
    });
    rows.and_then(Iterator::collect).map_err(fault::of)
}

const FORGET: &str = "delete from payload where number = ?1";
pub(super) const FORGET_BLOB: &str = "
    delete from blob
    where number = ?1 and not exists (select 1 from payload where payload.blob = ?1)";

/// Deletes payloads with their salts, and blobs that nothing uses any more.
pub(super) fn forget(session: &mut WriteSession, payloads: &[StoredPayload]) -> Result<(), Error> {
    for stored in payloads {
        session.execute(FORGET, [stored.number])?;
    }
    for blob in payloads.iter().filter_map(|retained| retained.blob).collect::<BTreeSet<_>>() {
        session.execute(FORGET_BLOB, [blob])?;
    }
    Ok(())
}
