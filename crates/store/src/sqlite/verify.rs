//! A store that checks itself: it reads what an export would show, and then whether its rows say the same.

use super::export;
use super::fault;
use super::ledger::Ledger;
use super::own;
use super::place::Place;
use super::session::{hash_of, size_of};
use crate::compress;
use rusqlite::Connection;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::chain::Entry;
use rutter_core::journal::codec;
use rutter_core::journal::event::Event;
use rutter_core::journal::export::{Line, PayloadLine};
use rutter_core::journal::verify::{Trust, Verifier};
use rutter_core::limits::ENTRY_BYTES_MAX;
use rutter_core::port::Error;
use rutter_core::port::proof::Checked;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

/// Lines handed over at once from the thread that reads to the one that checks.
const CHUNK: usize = 512;
const CHUNKS_MAX: usize = 8;

/// Rows that differ are listed up to here.
pub(super) const DIFFERENCES_MAX: usize = 100;

/// Checks a tenant's ledger, and whether each execution's row says where its journal ends.
pub(super) fn whole(
    connection: &mut Connection,
    tenant: &TenantId,
    trust: Trust,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Checked, Error> {
    let mut checked = ledger(connection, tenant, trust, progress)?;
    if let Some(ledger) = Ledger::find(connection, tenant)? {
        checked.rows.extend(heads(connection, &ledger)?);
    }
    Ok(checked)
}

/// Checks chains, tree, checkpoints and payloads of a tenant. `progress` is told how many entries were read.
fn ledger(
    connection: &mut Connection,
    tenant: &TenantId,
    trust: Trust,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Checked, Error> {
    let (chunks, lines) = mpsc::sync_channel::<Vec<Line>>(CHUNKS_MAX);
    // Reading and unpacking is one half of the work, hashing the other.
    thread::scope(|scope| {
        let checking = scope.spawn(move || {
            let mut verifier = Verifier::new(trust);
            let mut gone = Gone::default();
            let mut count = 0;
            for chunk in lines {
                count += chunk.len() as u64;
                for line in &chunk {
                    verifier.take(line);
                    gone.take(line);
                }
                progress(count);
            }
            Checked { verdict: verifier.finish(), rows: gone.differences() }
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
            // What was found wrong comes before what could not be read.
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

/// Payloads that are gone, and those of which the ledger's own journal says so.
#[derive(Default)]
struct Gone {
    found: BTreeMap<ExecutionId, u64>,
    recorded: BTreeMap<ExecutionId, u64>,
}

impl Gone {
    fn take(&mut self, line: &Line) {
        let Line::Entry(line) = line else { return };
        let erased =
            line.payloads.iter().filter(|payload| matches!(payload, PayloadLine::Erased { .. })).count();
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
            let told = format!("{execution}: {found} payloads are gone, {recorded} were erased on record");
            (found != recorded).then_some(told)
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

/// Compares where each execution's row says its journal ends with where it does.
pub(super) fn heads(connection: &Connection, ledger: &Ledger) -> Result<Vec<String>, Error> {
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
pub(super) fn tail(connection: &Connection, ledger: &Ledger, count: u64) -> Result<Option<String>, Error> {
    let size = size_of(connection, ledger.number).map_err(fault::of)?;
    let (first, last) = Place::range(ledger.number);
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
                "entry {seq} of some execution of {} is not as it was written",
                ledger.tenant
            )));
        }
    }
    Ok(None)
}
