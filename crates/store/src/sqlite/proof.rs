//! Proofs about the ledger while the store keeps writing. Long reads have connections of their own, so that no other
//! query waits for a reader.

use super::ledger::{self, LedgerRow};
use super::query::{ListKind, ListPaging, nothing};
use super::{SqliteStore, disk, export, fault, migration, refused, verify};
use rusqlite::{Connection, params};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::export::ExportLine;
use rutter_core::journal::verify::{EntryReceipt, TrustAnchors};
use rutter_core::port::proof::{LedgerCheck, LedgerProof, SignedCheckpoint, StoreHealth};
use rutter_core::port::query::{ListPage, Pagination};
use rutter_core::port::{Error, StoreFuture};
use rutter_core::time::Timestamp;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use tokio::sync::oneshot;

/// Exports and checks that run at once; each is a thread with a connection.
pub(super) const LONG_READS_MAX: usize = 2;

pub(super) const CHECKPOINTS: &str = "
    select epoch, size, at, note
    from checkpoint
    where tenant = ?1 and (epoch, size) < (?2, ?3)
    order by epoch desc, size desc
    limit ?4";

impl LedgerProof for SqliteStore {
    fn checkpoints(&self, tenant: &TenantId, page: Pagination) -> StoreFuture<'_, ListPage<SignedCheckpoint>> {
        let tenant = tenant.clone();
        match ListPaging::read(ListKind::Checkpoints, &page) {
            Ok(paging) => self.read(move |connection| match LedgerRow::find(connection, &tenant)? {
                Some(ledger) => checkpoints(connection, &ledger, paging),
                None => Ok(nothing()),
            }),
            Err(error) => refused(error),
        }
    }

    fn sign(&self, tenant: &TenantId) -> StoreFuture<'_, Option<String>> {
        let (tenant, keys, clock) = (tenant.clone(), self.keys.clone(), Arc::clone(&self.clock));
        Box::pin(async move {
            let signing = move |connection: &mut Connection| ledger::sign(connection, &keys, &tenant, clock());
            let Some(signed) = self.read(signing).await? else { return Ok(None) };
            let note = signed.note.clone();
            self.write(true, move |session| ledger::keep(session, &signed)).await?;
            Ok(Some(note))
        })
    }

    fn public_key(&self) -> StoreFuture<'_, Option<String>> {
        let keys = self.keys.clone();
        self.read(move |_| Ok(keys.public_key()?.map(|key| key.to_string())))
    }

    fn receipt(&self, identity: &ExecutionIdentity, seq: Option<u64>) -> StoreFuture<'_, EntryReceipt> {
        let identity = identity.clone();
        self.read(move |connection| export::receipt(connection, &identity, seq))
    }

    fn export(
        &self,
        tenant: &TenantId,
        executions: Option<Vec<ExecutionId>>,
        mut each: Box<dyn FnMut(ExportLine) -> bool + Send>,
    ) -> StoreFuture<'_, ()> {
        let tenant = tenant.clone();
        self.read_long(move |connection| {
            let mut has_enough = false;
            let mut each = |line| match each(line) {
                true => Ok(()),
                false => {
                    has_enough = true;
                    Err(Error::Closed)
                }
            };
            let exported = match executions {
                None => export::whole(connection, &tenant, &mut each).map(|_| ()),
                Some(executions) => export::executions(connection, &tenant, &executions, &mut each),
            };
            if has_enough { Ok(()) } else { exported }
        })
    }

    fn verify(&self, tenant: &TenantId) -> StoreFuture<'_, LedgerCheck> {
        let (tenant, keys) = (tenant.clone(), self.keys.clone());
        self.read_long(move |connection| {
            // The last checkpoint beside the database adds no trust: an attacker who changes one changes both.
            let trust = TrustAnchors { keys: keys.public_key()?.into_iter().collect(), ..TrustAnchors::default() };
            verify::whole(connection, &tenant, trust, &mut |_| {})
        })
    }

    fn health(&self) -> StoreFuture<'_, StoreHealth> {
        let path = self.file.path.clone();
        let queue = self.writes.as_ref().map_or(0, |writes| writes.max_capacity() - writes.capacity());
        let health = StoreHealth {
            trouble: self.trouble().map(|error| error.to_string()),
            queue: queue as u64,
            append_micros: self.latency.cumulative(),
            append_micros_sum: self.latency.sum_micros(),
            ..StoreHealth::default()
        };
        self.read(move |connection| {
            let directory = path.parent().unwrap_or(Path::new("."));
            Ok(StoreHealth {
                free_bytes: disk::free(directory).map_err(|error| Error::Io(error.to_string()))?,
                database_bytes: std::fs::metadata(&path).map_or(0, |found| found.len()),
                schema: migration::version(connection)?,
                ..health
            })
        })
    }
}

impl SqliteStore {
    /// Runs a long read on a thread and connection of its own. It runs to its end even if the future is dropped.
    fn read_long<'a, T: Send + 'static>(
        &'a self,
        look: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let turn = Arc::clone(&self.long_reads).acquire_owned().await.map_err(|_| Error::Closed)?;
            let file = self.file.clone();
            let (reply, answer) = oneshot::channel();
            let reading = thread::Builder::new().name("rutter-read-long".to_owned()).spawn(move || {
                let looked = file.reader().and_then(|mut connection| look(&mut connection));
                drop(turn);
                // The caller may have gone.
                let _ = reply.send(looked);
            });
            reading.map_err(|error| Error::Io(format!("no thread: {error}")))?;
            answer.await.map_err(|_| Error::Closed)?
        })
    }
}

fn checkpoints(
    connection: &Connection,
    ledger: &LedgerRow,
    paging: ListPaging,
) -> Result<ListPage<SignedCheckpoint>, Error> {
    let (epoch, size) = paging.after.unwrap_or((i64::MAX, i64::MAX));
    let rows = || -> rusqlite::Result<Vec<((i64, i64), SignedCheckpoint)>> {
        let mut statement = connection.prepare_cached(CHECKPOINTS)?;
        let rows = statement.query_map(params![ledger.number, epoch, size, paging.look_for()], |row| {
            let head = SignedCheckpoint { size: row.get(1)?, at: Timestamp(row.get(2)?), note: row.get(3)? };
            Ok(((row.get(0)?, row.get(1)?), head))
        })?;
        rows.collect()
    };
    let (mut keys, mut items): (Vec<_>, Vec<_>) = rows().map_err(fault::of)?.into_iter().unzip();
    let next = paging.cut(&mut keys);
    items.truncate(keys.len());
    Ok(ListPage { items, next })
}
