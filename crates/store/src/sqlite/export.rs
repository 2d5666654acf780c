//! Export of a ledger, or of some of its executions, as the lines of the export format.
//!
//! Verification reads the same lines, so it checks exactly what an export would contain.

use super::fault;
use super::ledger::LedgerRow;
use super::own;
use super::position::EntryPosition;
use super::session::{hash_of, one};
use super::tree::StoredMerkleTree;
use crate::compress;
use rusqlite::{Connection, Row, Rows, params};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::checkpoint::Checkpoint;
use rutter_core::journal::codec;
use rutter_core::journal::export::{
    CheckpointLine, EntryLine, ExportHeader, ExportLine, ExportScope, InclusionLine, PayloadLine, RemovedLine,
};
use rutter_core::journal::note::SignedNote;
use rutter_core::journal::payload::{Commitment, PayloadSalt};
use rutter_core::journal::verify::EntryReceipt;
use rutter_core::limits::{ENTRY_BYTES_MAX, PAYLOAD_BYTES_MAX};
use rutter_core::port::Error;
use std::borrow::Cow;
use std::collections::HashMap;

/// Receives the lines.
pub(super) type LineSink<'a> = dyn FnMut(ExportLine) -> Result<(), Error> + 'a;

/// All keys except those that signed only ledgers from before a restore. A key that signed nothing is included: its
/// row was altered, and the export must show that.
const SIGNERS: &str = "
    with signed as not materialized (
        select signer.key, checkpoint.tenant, checkpoint.epoch
        from signer
        join checkpoint
            on instr(note, char(10) || '— ' || substr(key, 1, instr(key, '+') - 1) || ' ') > 0
    )
    select key
    from signer
    where exists (
            select 1
            from signed
            where signed.key = signer.key and signed.tenant = ?1 and signed.epoch = ?2
        )
        or not exists (
            select 1
            from signed
            join tenant on tenant.number = signed.tenant
            where signed.key = signer.key and signed.epoch < tenant.epoch
        )
    order by key";
const CHECKPOINTS: &str = "select size, note from checkpoint where tenant = ?1 and epoch = ?2 order by size";
const ENTRIES: &str = "
    select place, execution, seq, hash, bytes
    from entry
    where place between ?1 and ?2
    order by place";
const ENTRIES_OF_ONE: &str = "
    select place, execution, seq, hash, bytes
    from entry
    where execution = ?1
    order by seq";
const PAYLOADS: &str = "
    select payload.number, payload.salt, payload.bytes, blob.bytes
    from payload
    left join blob on blob.number = payload.blob
    where payload.number between ?1 and ?2
    order by payload.number";
const EXECUTION_ID: &str = "select id from execution where number = ?1";
const EXECUTION_NUMBER: &str = "select number from execution where tenant = ?1 and id = ?2";

/// Writes the whole ledger of a tenant in its order. Returns the numbers of payloads that belong to no entry.
pub(super) fn whole(
    connection: &mut Connection,
    tenant: &TenantId,
    each: &mut LineSink<'_>,
) -> Result<Vec<i64>, Error> {
    // One transaction: entries written meanwhile are not in this export.
    let connection = connection.transaction().map_err(fault::of)?;
    let ledger = find(&connection, tenant)?;
    each(header(&connection, &ledger, ExportScope::Ledger)?)?;
    let tree = StoredMerkleTree::new(&connection, ledger.number);
    let mut checkpoints = checkpoints(&connection, &ledger)?.into_iter().peekable();
    let mut last = 0;
    let (first, end) = EntryPosition::range(ledger.number);
    let mut reading = ExportReader::new(&connection, ledger.clone());
    let mut statement = connection.prepare(ENTRIES).map_err(fault::of)?;
    let mut rows = statement.query([first, end]).map_err(fault::of)?;
    let mut payloads_statement = connection.prepare(PAYLOADS).map_err(fault::of)?;
    let (first, end) = (EntryPosition::from(first).payload(0), EntryPosition::from(end).payload(3));
    let mut payloads = PayloadRows::new(payloads_statement.query([first, end]).map_err(fault::of)?)?;
    let mut size = 0;
    loop {
        while let Some((covered, note)) = checkpoints.next_if(|(covered, _)| *covered <= size) {
            // A checkpoint that contradicts the ledger is exported all the same; the verifier reports it.
            let consistency =
                if last == 0 || covered < last { Ok(Vec::new()) } else { tree.consistency(last, covered) };
            each(ExportLine::Checkpoint(CheckpointLine { note, consistency: consistency.unwrap_or_default() }))?;
            last = covered;
        }
        let Some(row) = rows.next().map_err(fault::of)? else { break };
        let place = EntryPosition::from(row.get::<_, i64>(0).map_err(fault::of)?);
        let payloads = payloads.of(place)?;
        each(reading.line(row, payloads)?)?;
        size = place.leaf() + 1;
    }
    for (_, note) in checkpoints {
        each(ExportLine::Checkpoint(CheckpointLine { note, consistency: Vec::new() }))?;
    }
    payloads.rest()
}

/// Writes some executions, each entry with the proof that the newest checkpoint covers it.
pub(super) fn executions(
    connection: &mut Connection,
    tenant: &TenantId,
    executions: &[ExecutionId],
    each: &mut LineSink<'_>,
) -> Result<(), Error> {
    let connection = connection.transaction().map_err(fault::of)?;
    let ledger = find(&connection, tenant)?;
    let mut numbers = Vec::new();
    for execution in executions {
        let number: Option<i64> = match execution.as_str() {
            own::JOURNAL => Some(-ledger.number),
            id => one(&connection, EXECUTION_NUMBER, params![ledger.number, id])?,
        };
        let unknown = || Error::NotFound { what: "execution", id: execution.to_string() };
        numbers.push(number.ok_or_else(unknown)?);
    }
    each(header(&connection, &ledger, ExportScope::Executions)?)?;
    let covered = match checkpoints(&connection, &ledger)?.pop() {
        Some((size, note)) => {
            each(ExportLine::Checkpoint(CheckpointLine { note, consistency: Vec::new() }))?;
            size
        }
        None => 0,
    };
    let tree = StoredMerkleTree::new(&connection, ledger.number);
    let mut reading = ExportReader::new(&connection, ledger.clone());
    let mut lines = Vec::new();
    for number in numbers {
        let mut statement = connection.prepare_cached(ENTRIES_OF_ONE).map_err(fault::of)?;
        let mut rows = statement.query([number]).map_err(fault::of)?;
        while let Some(row) = rows.next().map_err(fault::of)? {
            let place = EntryPosition::from(row.get::<_, i64>(0).map_err(fault::of)?);
            let mut statement = connection.prepare_cached(PAYLOADS).map_err(fault::of)?;
            let rows = statement.query([place.payload(0), place.payload(3)]).map_err(fault::of)?;
            let payloads = PayloadRows::new(rows)?.of(place)?;
            let ExportLine::Entry(mut line) = reading.line(row, payloads)? else { continue };
            match place.leaf() < covered {
                true => {
                    line.proof = Some(InclusionLine { size: covered, path: tree.inclusion(place.leaf(), covered)? })
                }
                false => line.leaf = None,
            }
            lines.push(line);
        }
    }
    // In ledger order; entries without a proven position come last, in the order of their journals.
    lines.sort_by_key(|line| line.leaf.unwrap_or(u64::MAX));
    lines.into_iter().try_for_each(|line| each(ExportLine::Entry(line)))
}

const ENTRY_HASH: &str = "select hash from entry where execution = ?1 and seq = ?2";
const LAST_SEQ: &str = "select max(seq) from entry where execution = ?1";

/// Returns a receipt, which later shows that an entry was in the ledger; for the last entry if `seq` is `None`.
pub(super) fn receipt(
    connection: &Connection,
    identity: &ExecutionIdentity,
    seq: Option<u64>,
) -> Result<EntryReceipt, Error> {
    let unknown = || Error::NotFound { what: "execution", id: identity.execution.to_string() };
    let ledger = LedgerRow::find(connection, &identity.tenant)?.ok_or_else(unknown)?;
    let number = match identity.execution.as_str() {
        own::JOURNAL => -ledger.number,
        id => one(connection, EXECUTION_NUMBER, params![ledger.number, id])?.ok_or_else(unknown)?,
    };
    let seq = match seq {
        Some(seq) => seq,
        None => one::<Option<u64>>(connection, LAST_SEQ, [number])?.flatten().unwrap_or(0),
    };
    let hash: Option<Vec<u8>> = one(connection, ENTRY_HASH, params![number, seq])?;
    let no_entry = || Error::NotFound { what: "entry", id: format!("{} of {}", seq, identity.execution) };
    let hash = hash_of(&hash.ok_or_else(no_entry)?)?;
    Ok(EntryReceipt { tenant: identity.tenant.clone(), execution: identity.execution.clone(), seq, hash })
}

fn find(connection: &Connection, tenant: &TenantId) -> Result<LedgerRow, Error> {
    let unknown = || Error::NotFound { what: "tenant", id: tenant.to_string() };
    LedgerRow::find(connection, tenant)?.ok_or_else(unknown)
}

fn header(connection: &Connection, ledger: &LedgerRow, scope: ExportScope) -> Result<ExportLine, Error> {
    let keys = || -> rusqlite::Result<Vec<String>> {
        let of_ledger = params![ledger.number, ledger.epoch];
        connection.prepare_cached(SIGNERS)?.query_map(of_ledger, |row| row.get(0))?.collect()
    };
    let keys = keys().map_err(fault::of)?;
    Ok(ExportLine::Header(ExportHeader::new(scope, ledger.tenant.clone(), &ledger.origin, keys)))
}

/// The checkpoints of a ledger with the sizes they state, not those of the column.
fn checkpoints(connection: &Connection, ledger: &LedgerRow) -> Result<Vec<(u64, String)>, Error> {
    let rows = || -> rusqlite::Result<Vec<(u64, String)>> {
        let mut statement = connection.prepare_cached(CHECKPOINTS)?;
        let rows = statement.query_map(params![ledger.number, ledger.epoch], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let stated = |(size, note): (u64, String)| {
        let parsed = SignedNote::parse(&note).ok().and_then(|note| Checkpoint::parse(note.unverified_text()).ok());
        (parsed.map_or(size, |checkpoint| checkpoint.size), note)
    };
    Ok(rows().map_err(fault::of)?.into_iter().map(stated).collect())
}

/// Turns rows into lines. `prev` is not stored, so the last hash of each execution is remembered.
struct ExportReader<'a> {
    connection: &'a Connection,
    ledger: LedgerRow,
    known: HashMap<i64, (ExecutionId, Hash)>,
}

impl<'a> ExportReader<'a> {
    fn new(connection: &'a Connection, ledger: LedgerRow) -> ExportReader<'a> {
        ExportReader { connection, ledger, known: HashMap::new() }
    }

    fn line(&mut self, row: &Row<'_>, payloads: Vec<(usize, PayloadRow)>) -> Result<ExportLine, Error> {
        let get = || -> rusqlite::Result<_> {
            let (execution, seq): (Option<i64>, Option<u64>) = (row.get(1)?, row.get(2)?);
            let (hash, packed) = (row.get_ref(3)?.as_blob()?, row.get_ref(4)?.as_blob_or_null()?);
            Ok((EntryPosition::from(row.get::<_, i64>(0)?), execution, seq, hash, packed))
        };
        let (place, execution, seq, hash, packed) = get().map_err(fault::of)?;
        let (leaf, hash) = (place.leaf(), hash_of(hash)?);
        let (Some(execution), Some(packed)) = (execution, packed) else {
            return Ok(ExportLine::Removed(RemovedLine { leaf, hash }));
        };
        let (id, prev) = self.journal(execution)?;
        // Bytes that cannot be unpacked are exported as they are: their hash will not match.
        let bytes = compress::unpack_entry(packed, ENTRY_BYTES_MAX).unwrap_or(Cow::Borrowed(packed)).into_owned();
        let payloads = payload_lines(&codec::commitments_in(&bytes), payloads);
        let bytes = text(bytes);
        self.known.insert(execution, (id.clone(), hash));
        let (leaf, seq) = (Some(leaf), seq.unwrap_or(0));
        Ok(ExportLine::Entry(EntryLine { execution: id, seq, leaf, prev, hash, bytes, payloads, proof: None }))
    }

    fn journal(&mut self, execution: i64) -> Result<(ExecutionId, Hash), Error> {
        if let Some(known) = self.known.get(&execution) {
            return Ok(known.clone());
        }
        let id = match execution == -self.ledger.number {
            true => own::JOURNAL.to_owned(),
            // An entry whose execution is missing gets an empty id, which contradicts its bytes.
            false => one(self.connection, EXECUTION_ID, [execution])?.unwrap_or_default(),
        };
        let id = ExecutionId::new(&id);
        let first = HashChain::new(self.ledger.tenant.clone(), id.clone()).head().hash;
        Ok((id, first))
    }
}

/// A stored payload; a damaged one is exported as it is.
#[derive(Debug)]
struct PayloadRow {
    salt: Vec<u8>,
    bytes: Vec<u8>,
}

fn payload_lines(commitments: &[Commitment], mut rows: Vec<(usize, PayloadRow)>) -> Vec<PayloadLine> {
    let mut lines = Vec::with_capacity(commitments.len());
    for (nth, commitment) in commitments.iter().enumerate() {
        let row = rows.iter().position(|(at, _)| *at == nth).map(|at| rows.swap_remove(at).1);
        lines.push(payload_line(*commitment, row));
    }
    // Payloads without a commitment.
    lines.extend(rows.into_iter().map(|(_, row)| payload_line(Commitment { hash: Hash::ZERO }, Some(row))));
    lines
}

fn payload_line(commitment: Commitment, row: Option<PayloadRow>) -> PayloadLine {
    let commitment = commitment.hash;
    let Some(PayloadRow { salt, bytes }) = row else { return PayloadLine::Erased { commitment } };
    let unpacked = match compress::unpack(&bytes, PAYLOAD_BYTES_MAX) {
        Ok(Cow::Owned(unpacked)) => Some(unpacked),
        _ => None,
    };
    let bytes = unpacked.unwrap_or(bytes);
    PayloadLine::Present { commitment, salt: PayloadSalt(salt.try_into().unwrap_or_default()), bytes: text(bytes) }
}

/// Stored bytes are JSON text. Invalid UTF-8 is replaced here, so its hash will not match.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Payload rows in order, read in step with their entries.
struct PayloadRows<'r> {
    rows: Rows<'r>,
    next: Option<(i64, PayloadRow)>,
    strays: Vec<i64>,
}

impl<'r> PayloadRows<'r> {
    fn new(rows: Rows<'r>) -> Result<PayloadRows<'r>, Error> {
        let mut payloads = PayloadRows { rows, next: None, strays: Vec::new() };
        payloads.advance()?;
        Ok(payloads)
    }

    /// The payloads of an entry. Rows before them that no entry has claimed are strays.
    fn of(&mut self, place: EntryPosition) -> Result<Vec<(usize, PayloadRow)>, Error> {
        let mut found = Vec::new();
        while let Some((number, _)) = &self.next
            && *number <= place.payload(3)
        {
            let number = *number;
            let Some((_, row)) = self.next.take() else { break };
            match number >= place.payload(0) {
                true => found.push(((number - place.payload(0)) as usize, row)),
                false => self.strays.push(number),
            }
            self.advance()?;
        }
        Ok(found)
    }

    /// Reads to the end; returns the payloads that belong to no entry.
    fn rest(mut self) -> Result<Vec<i64>, Error> {
        while let Some((number, _)) = self.next.take() {
            self.strays.push(number);
            self.advance()?;
        }
        Ok(self.strays)
    }

    fn advance(&mut self) -> Result<(), Error> {
        let mut read = || -> rusqlite::Result<_> {
            let Some(row) = self.rows.next()? else { return Ok(None) };
            let (inline, blob): (Option<Vec<u8>>, Option<Vec<u8>>) = (row.get(2)?, row.get(3)?);
            let bytes = inline.or(blob).unwrap_or_default();
            Ok(Some((row.get(0)?, PayloadRow { salt: row.get(1)?, bytes })))
        };
        self.next = read().map_err(fault::of)?;
        Ok(())
    }
}
