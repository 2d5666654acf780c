//! Writing sealed entries and their payloads. Packing runs on the caller's thread, writing on the writer's.

use super::position::EntryPosition;
use super::session::WriteSession;
use crate::compress;
use rusqlite::params;
use rutter_core::hash::Hash;
use rutter_core::journal::chain::ChainHead;
use rutter_core::limits::{APPEND_ENTRIES_MAX, ENTRY_BYTES_MAX, PAYLOAD_BYTES_MAX, PAYLOAD_INLINE_MAX};
use rutter_core::port::Error;
use rutter_core::port::journal::SealedEntry;

/// An entry ready to be written.
#[derive(Debug)]
pub(super) struct PackedEntry {
    pub sealed: SealedEntry,
    bytes: Vec<u8>,
    payloads: Vec<PackedPayload>,
}

#[derive(Debug)]
struct PackedPayload {
    salt: [u8; 16],
    bytes: Vec<u8>,
    /// The content hash of a large payload: equal content is stored once.
    blob: Option<Hash>,
}

/// Checks that the entries follow each other from `head`, and compresses them.
pub(super) fn pack(head: ChainHead, entries: Vec<SealedEntry>) -> Result<Vec<PackedEntry>, Error> {
    let (max, found) = (APPEND_ENTRIES_MAX as u64, entries.len() as u64);
    if found > max {
        return Err(Error::Limit { limit: "append_entries_max", max, found });
    }
    let mut head = head;
    entries
        .into_iter()
        .map(|sealed| {
            let entry = &sealed.entry;
            let (max, found) = (ENTRY_BYTES_MAX as u64, entry.bytes.len() as u64);
            if found > max {
                return Err(Error::Limit { limit: "entry_bytes_max", max, found });
            }
            if entry.seq != head.seq.saturating_add(1) || entry.prev != head.hash || !entry.is_linked() {
                let (seq, after) = (entry.seq, head.seq);
                return Err(Error::Invalid(format!("entry {seq} does not follow from entry {after}")));
            }
            head = ChainHead { seq: entry.seq, hash: entry.hash };
            let payloads = sealed.payloads.iter().map(pack_payload).collect::<Result<_, _>>()?;
            Ok(PackedEntry { bytes: compress::pack_entry(&sealed.entry.bytes), payloads, sealed })
        })
        .collect()
}

fn pack_payload(payload: &rutter_core::journal::payload::SealedPayload) -> Result<PackedPayload, Error> {
    let (max, found) = (PAYLOAD_BYTES_MAX as u64, payload.bytes.len() as u64);
    if found > max {
        return Err(Error::Limit { limit: "payload_bytes_max", max, found });
    }
    let large = payload.bytes.len() > PAYLOAD_INLINE_MAX;
    Ok(PackedPayload {
        salt: payload.salt.0,
        bytes: compress::pack(&payload.bytes),
        blob: large.then(|| Hash::of(&[&payload.bytes])),
    })
}

const ENTRY: &str = "
    insert into entry (place, execution, seq, tenant, at, kind, actor, hash, bytes)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const WORDS: &str = "insert into entry_text (rowid, words) values (?1, ?2)";
const PAYLOAD: &str = "insert into payload (number, salt, bytes) values (?1, ?2, ?3)";
const LARGE_PAYLOAD: &str = "
    insert into payload (number, salt, blob)
    values (?1, ?2, (select number from blob where hash = ?3))";
const BLOB: &str = "insert into blob (hash, bytes) values (?1, ?2) on conflict (hash) do nothing";

/// Writes entries at the end of the tenant's ledger. `execution` is the number in the table's column.
pub(super) fn write(
    session: &mut WriteSession,
    tenant: i64,
    execution: i64,
    entries: &[PackedEntry],
) -> Result<(), Error> {
    for packed in entries {
        let PackedEntry { sealed, bytes, payloads } = packed;
        let (kind, actor) = (session.kind(sealed.kind)?, session.actor(&sealed.actor)?);
        let place = session.next_position(tenant)?;
        let (seq, hash) = (sealed.entry.seq, sealed.entry.hash.0);
        let row = params![place.number(), execution, seq, tenant, sealed.at.0, kind, actor, hash, bytes];
        session.execute(ENTRY, row)?;
        if let Some(words) = &sealed.words {
            session.execute(WORDS, params![place.number(), words])?;
        }
        for (nth, payload) in payloads.iter().enumerate() {
            write_payload(session, place, nth, payload)?;
        }
    }
    Ok(())
}

fn write_payload(
    session: &WriteSession,
    place: EntryPosition,
    nth: usize,
    payload: &PackedPayload,
) -> Result<(), Error> {
    let number = place.payload(nth);
    match payload.blob {
        None => session.execute(PAYLOAD, params![number, payload.salt, payload.bytes])?,
        Some(hash) => {
            session.execute(BLOB, params![hash.0, payload.bytes])?;
            session.execute(LARGE_PAYLOAD, params![number, payload.salt, hash.0])?
        }
    };
    Ok(())
}

const HASHES: &str = "select hash from entry where execution = ?1 and seq between ?2 and ?3 order by seq";

/// Whether exactly these entries are already stored.
pub(super) fn are_there(session: &WriteSession, execution: i64, entries: &[PackedEntry]) -> Result<bool, Error> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(false) };
    let found = || -> rusqlite::Result<bool> {
        let mut statement = session.connection.prepare_cached(HASHES)?;
        let mut rows = statement.query(params![execution, first.sealed.entry.seq, last.sealed.entry.seq])?;
        for packed in entries {
            let same = match rows.next()? {
                Some(row) => row.get_ref(0)?.as_blob()? == packed.sealed.entry.hash.0,
                None => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    };
    found().map_err(super::fault::of)
}
