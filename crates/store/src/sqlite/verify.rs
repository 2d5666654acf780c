//! Verification of a store: checks the lines that an export would contain, and then the rows against them.

use super::export;
use super::fault;
use super::ledger::LedgerRow;
use super::own;
use super::position::EntryPosition;
use super::session::{hash_of, size_of};
use crate::compress;
use rusqlite::Connection;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::chain::Entry;
use rutter_core::journal::codec;
use rutter_core::journal::event::Event;
use rutter_core::journal::export::{ExportLine, PayloadLine};
use rutter_core::journal::verify::{LedgerVerifier, TrustAnchors};
use rutter_core::limits::ENTRY_BYTES_MAX;
use rutter_core::port::Error;
use rutter_core::port::proof::LedgerCheck;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

/// Lines per message from the reading thread to the checking thread.
const CHUNK: usize = 512;
const CHUNKS_MAX: usize = 8;

/// The most differences that are listed.
pub(super) const DIFFERENCES_MAX: usize = 100;

/// Checks a tenant's ledger, and whether each execution's row has the head of its journal.
pub(super) fn whole(
    connection: &mut Connection,
    tenant: &TenantId,
    trust: TrustAnchors,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<LedgerCheck, Error> {
    let mut checked = ledger(connection, tenant, trust, progress)?;
    if let Some(ledger) = LedgerRow::find(connection, tenant)? {
        checked.rows.extend(heads(connection, &ledger)?);
    }
    Ok(checked)
}

/// Checks chains, tree, checkpoints and payloads of a tenant. `progress` receives the number of lines read.
fn ledger(
    connection: &mut Connection,
    tenant: &TenantId,
    trust: TrustAnchors,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<LedgerCheck, Error> {
    let (chunks, lines) = mpsc::sync_channel::<Vec<ExportLine>>(CHUNKS_MAX);
    // Reading and unpacking is one half of the work, hashing the other.
    thread::scope(|scope| {
        let checking = scope.spawn(move || {
            let mut verifier = LedgerVerifier::new(trust);
            let mut gone = ErasedPayloadCounts::default();
            let mut count = 0;
            for chunk in lines {
                count += chunk.len() as u64;
                for line in &chunk {
                    verifier.take(line);
                    gone.take(line);
                }
                progress(count);
            }
            LedgerCheck { verdict: verifier.finish(), rows: gone.differences() }
        });
        let mut chunk = Vec::with_capacity(CHUNK);
        let read = export::whole(connection, tenant, &mut |line| {
            chunk.push(line);
            if chunk.len() == CHUNK {
                let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK));
                chunks.send(full).map_err(|_| Error::Closed)?;
            }
            Ok(())
        });
        let sent = chunks.send(chunk);
        drop(chunks);
        let mut checked = checking.join().map_err(|_| Error::Closed)?;
        match (read, sent) {
            // A fault that was found takes precedence over a read error.
            (Err(error), _) if checked.verdict.is_clean() || checked.verdict.lines == 0 => Err(error),
            (_, Err(_)) => Err(Error::Closed),
            (strays, _) => {
                let strays = strays.into_iter().flatten();
                checked.rows.extend(strays.map(|number| format!("payload {number} belongs to no entry")));
                checked.rows.truncate(DIFFERENCES_MAX);
                Ok(checked)
            }
        }
    })
}

/// Erased payloads by execution: as found in the entries, and as recorded in the ledger's own journal.
#[derive(Default)]
struct ErasedPayloadCounts {
    found: BTreeMap<ExecutionId, u64>,
    recorded: BTreeMap<ExecutionId, u64>,
}

impl ErasedPayloadCounts {
    fn take(&mut self, line: &ExportLine) {
        let ExportLine::Entry(line) = line else { return };
        let erased = line.payloads.iter().filter(|payload| matches!(payload, PayloadLine::Erased { .. })).count();
        if erased > 0 {
            *self.found.entry(line.execution.clone()).or_default() += erased as u64;
        }
        if line.execution.as_str() == own::JOURNAL
            && let Ok(stored) = codec::decode(line.bytes.as_bytes())
            && let Event::PayloadsErased { execution, payloads, .. } = stored.event
        {
            *self.recorded.entry(execution).or_default() += payloads;
        }
    }

    fn differences(self) -> Vec<String> {
        let unrecorded = self.found.into_iter().filter_map(|(execution, found)| {
            let recorded = self.recorded.get(&execution).copied().unwrap_or(0);
            let text = format!("{execution}: {found} payloads are missing, {recorded} erasures are recorded");
            (found != recorded).then_some(text)
        });
        unrecorded.collect()
    }
}

const HEADS: &str = "
    select execution.id, execution.seq, execution.head, last.seq, last.hash
    from execution
    left join entry as last on last.execution = execution.number
        and last.seq = (select max(seq) from entry where execution = execution.number)
    where execution.tenant = ?1
    order by execution.number";

/// Compares the head in each execution's row with the end of its journal.
pub(super) fn heads(connection: &Connection, ledger: &LedgerRow) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare_cached(HEADS).map_err(fault::of)?;
    let mut rows = statement.query([ledger.number]).map_err(fault::of)?;
    let mut differences = Vec::new();
    while let Some(row) = rows.next().map_err(fault::of)? {
        let get = || -> rusqlite::Result<_> {
            let (id, seq, last_seq): (String, u64, Option<u64>) = (row.get(0)?, row.get(1)?, row.get(3)?);
            let (head, last_hash): (Vec<u8>, Option<Vec<u8>>) = (row.get(2)?, row.get(4)?);
            Ok((id, seq, head, last_seq, last_hash))
        };
        let (id, seq, head, last_seq, last_hash) = get().map_err(fault::of)?;
        let head = hash_of(&head)?;
        let last = last_hash.as_deref().map(hash_of).transpose()?;
        if (Some(seq), Some(head)) != (last_seq, last) && differences.len() < DIFFERENCES_MAX {
            let ends = match last_seq {
                None => "there are no entries".to_owned(),
                Some(last) if last == seq => format!("entry {seq} is another one"),
                Some(last) => format!("it ends at entry {last}"),
            };
            differences.push(format!("{id}: its journal should end at entry {seq}, but {ends}"));
        }
    }
    Ok(differences)
}

const TAIL: &str = "
    select entry.seq, entry.hash, entry.bytes, before.hash
    from entry
    left join entry as before on before.execution = entry.execution and before.seq = entry.seq - 1
    where entry.place between ?1 and ?2 and entry.bytes is not null and entry.seq > 1
    order by entry.place";

/// Checks the newest entries one by one against the ones before them. Returns what is wrong with the first bad one.
pub(super) fn tail(connection: &Connection, ledger: &LedgerRow, count: u64) -> Result<Option<String>, Error> {
    let size = size_of(connection, ledger.number).map_err(fault::of)?;
    let (first, last) = EntryPosition::range(ledger.number);
    let from = first + size.saturating_sub(count) as i64;
    let mut statement = connection.prepare_cached(TAIL).map_err(fault::of)?;
    let mut rows = statement.query([from, last]).map_err(fault::of)?;
    while let Some(row) = rows.next().map_err(fault::of)? {
        let get = || -> rusqlite::Result<_> {
            let (hash, prev): (Vec<u8>, Option<Vec<u8>>) = (row.get(1)?, row.get(3)?);
            Ok((row.get::<_, u64>(0)?, hash, row.get::<_, Vec<u8>>(2)?, prev))
        };
        let (seq, hash, packed, prev) = get().map_err(fault::of)?;
        let bytes = compress::unpack_entry(&packed, ENTRY_BYTES_MAX).ok();
        let linked = match (bytes, prev) {
            (Some(bytes), Some(prev)) => {
                Entry { seq, bytes: bytes.into(), prev: hash_of(&prev)?, hash: hash_of(&hash)? }.is_linked()
            }
            _ => false,
        };
        if !linked {
            return Ok(Some(format!(
                "entry {seq} of some execution of {} was changed after it was written",
                ledger.tenant
            )));
        }
    }
    Ok(None)
}
