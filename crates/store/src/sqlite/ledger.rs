//! Signing the head of each tenant's ledger, every thousand entries or every minute, and when the store closes.

use super::connection::DatabaseFile;
use super::fault;
use super::key::{self, SigningKeyFiles};
use super::session::{WriteSession, one};
use super::tree::{MerkleNodeRow, StoredMerkleTree};
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::id::TenantId;
use rutter_core::journal::checkpoint::{Checkpoint, CheckpointGuard};
use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A checkpoint is signed when so many entries are not covered by one, or the oldest of them is so old.
pub const CHECKPOINT_ENTRIES: u64 = 1_000;
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);
/// A busy ledger is not signed more often than this: each signature costs syncs that writers wait for.
pub const CHECKPOINT_PAUSE: Duration = Duration::from_millis(200);

/// A ledger by its tenant.
#[derive(Clone, Debug)]
pub(super) struct LedgerRow {
    pub number: i64,
    pub tenant: TenantId,
    pub origin: String,
    pub epoch: u64,
}

const LEDGER: &str = "select number, origin, epoch from tenant where name = ?1";
const TENANTS: &str = "select name from tenant order by number";
const COVERED: &str = "select max(size) from checkpoint where tenant = ?1 and epoch = ?2";
const NEWEST: &str = "select note from checkpoint where tenant = ?1 and epoch = ?2 order by size desc limit 1";
const KEEP: &str = "insert or ignore into checkpoint (tenant, epoch, size, at, note) values (?1, ?2, ?3, ?4, ?5)";
const KEEP_NODE: &str = "insert or ignore into node (tenant, level, position, hash) values (?1, ?2, ?3, ?4)";
const KEEP_SIGNER: &str = "insert or ignore into signer (key) values (?1)";

impl LedgerRow {
    pub fn find(connection: &Connection, tenant: &TenantId) -> Result<Option<LedgerRow>, Error> {
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let found = connection
            .prepare_cached(LEDGER)
            .and_then(|mut statement| statement.query_row([tenant.as_str()], row).optional())
            .map_err(fault::of)?;
        Ok(found.map(|(number, origin, epoch)| LedgerRow { number, tenant: tenant.clone(), origin, epoch }))
    }

    pub fn all(connection: &Connection) -> Result<Vec<LedgerRow>, Error> {
        let names = || -> rusqlite::Result<Vec<String>> {
            connection.prepare_cached(TENANTS)?.query_map([], |row| row.get(0))?.collect()
        };
        let names = names().map_err(fault::of)?;
        let ledgers = names.iter().map(|name| LedgerRow::find(connection, &TenantId::new(name)));
        Ok(ledgers.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// How many entries the newest checkpoint covers.
    pub fn covered(&self, connection: &Connection) -> Result<u64, Error> {
        Ok(one::<Option<u64>>(connection, COVERED, params![self.number, self.epoch])?.flatten().unwrap_or(0))
    }

    pub fn newest_checkpoint(&self, connection: &Connection) -> Result<Option<String>, Error> {
        one(connection, NEWEST, params![self.number, self.epoch])
    }
}

/// A checkpoint that was signed and is to be stored.
#[derive(Debug)]
pub(super) struct NewCheckpoint {
    ledger: LedgerRow,
    pub checkpoint: Checkpoint,
    pub note: String,
    signer: String,
    nodes: Vec<MerkleNodeRow>,
    at: Timestamp,
}

/// Signs the head of a ledger; `None` when the newest checkpoint covers it already.
///
/// Refuses when the ledger is not the one that was signed before: it was rolled back or changed.
pub(super) fn sign(
    connection: &mut Connection,
    keys: &SigningKeyFiles,
    tenant: &TenantId,
    now: Timestamp,
) -> Result<Option<NewCheckpoint>, Error> {
    let _alone = keys.lock();
    // One transaction: tree, size and last checkpoint must be of the same moment.
    let connection = connection.transaction().map_err(fault::of)?;
    let Some(ledger) = LedgerRow::find(&connection, tenant)? else { return Ok(None) };
    let tree = StoredMerkleTree::new(&connection, ledger.number);
    let size = tree.size()?;
    if size == 0 || (ledger.covered(&connection)? == size) {
        return Ok(None);
    }
    let key = keys.signing_key()?;
    let last = last_signed(&connection, keys, &ledger)?;
    let covered = last.as_ref().map_or(0, |last| last.size);
    if covered > size {
        return Err(put_back(&ledger, covered, size));
    }
    let consistency = tree.consistency(covered, size)?;
    let next = Checkpoint::new(&ledger.origin, size, tree.root(size)?, now);
    let note = CheckpointGuard::new(last)
        .sign(&key, next.clone(), &consistency)
        .map_err(|refused| Error::Corrupt(format!("the ledger of {tenant} is not the one signed before: {refused}")))?;
    keys.keep_last(tenant, &note)?;
    let nodes = tree.missing(size)?;
    let (signer, note) = (key.verifier().to_string(), note.to_string());
    Ok(Some(NewCheckpoint { ledger, checkpoint: next, note, signer, nodes, at: now }))
}

fn put_back(ledger: &LedgerRow, covered: u64, size: u64) -> Error {
    let tenant = &ledger.tenant;
    Error::Corrupt(format!(
        "the ledger of {tenant} has {size} entries, but a checkpoint of {covered} was signed: it was rolled back"
    ))
}

/// The newest checkpoint signed for this ledger, in the database or beside it.
fn last_signed(
    connection: &Connection,
    keys: &SigningKeyFiles,
    ledger: &LedgerRow,
) -> Result<Option<Checkpoint>, Error> {
    let key = keys.signing_key()?.verifier();
    let outside = keys.last()?.remove(&ledger.tenant);
    let inside = ledger.newest_checkpoint(connection)?;
    let opened = [outside, inside].into_iter().flatten().map(|note| key::open(&note, &key));
    // If a lost key was replaced, the checkpoints of the old key do not bind the new one.
    let opened = opened.filter_map(Result::ok).filter(|checkpoint| checkpoint.origin == ledger.origin);
    Ok(opened.max_by_key(|checkpoint| checkpoint.size))
}

/// Checks that the database is at least as new as its last signed checkpoint.
pub(super) fn check_not_put_back(connection: &Connection, keys: &SigningKeyFiles) -> Result<(), Error> {
    let Some(key) = keys.verifier_key()? else { return Ok(()) };
    for (tenant, note) in keys.last()? {
        let Ok(signed) = key::open(&note, &key) else { continue };
        let Some(ledger) = LedgerRow::find(connection, &tenant)? else {
            return Err(Error::Corrupt(format!("the ledger of {tenant} was signed and is gone")));
        };
        let tree = StoredMerkleTree::new(connection, ledger.number);
        let size = tree.size()?;
        if ledger.origin != signed.origin {
            return Err(Error::Corrupt(format!("the ledger of {tenant} is not {}, which was signed", signed.origin)));
        }
        if size < signed.size {
            return Err(put_back(&ledger, signed.size, size));
        }
        if tree.root(signed.size)? != signed.root {
            let size = signed.size;
            return Err(Error::Corrupt(format!("the first {size} entries of {tenant} are not those that were signed")));
        }
    }
    Ok(())
}

pub(super) fn keep(session: &mut WriteSession, signed: &NewCheckpoint) -> Result<(), Error> {
    let NewCheckpoint { ledger, checkpoint, note, signer, nodes, at } = signed;
    for node in nodes {
        session.execute(KEEP_NODE, params![ledger.number, node.level, node.position, node.hash.0])?;
    }
    session.execute(KEEP_SIGNER, [signer])?;
    session.execute(KEEP, params![ledger.number, ledger.epoch, checkpoint.size, at.0, note])?;
    Ok(())
}

/// Counts the entries of each tenant that no checkpoint covers. The writer adds, the signing thread waits.
#[derive(Debug, Default)]
pub(super) struct UncoveredEntries {
    state: Mutex<UncoveredState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct UncoveredState {
    counts: HashMap<i64, (u64, Option<Instant>)>,
    closing: bool,
    last_signed: Option<Instant>,
}

impl UncoveredEntries {
    pub fn add(&self, tenant: i64, count: u64) {
        let mut state = self.state.lock().expect("no thread panics while counting");
        let (sum, since) = state.counts.entry(tenant).or_default();
        *sum += count;
        since.get_or_insert_with(Instant::now);
        if *sum >= CHECKPOINT_ENTRIES {
            self.changed.notify_one();
        }
    }

    /// Schedules a retry for a tenant whose checkpoint could not be signed, unless the store is closing.
    fn try_again(&self, tenant: i64) {
        let mut state = self.state.lock().expect("no thread panics while counting");
        if !state.closing {
            state.counts.entry(tenant).or_default().1.get_or_insert_with(Instant::now);
        }
    }

    pub fn close(&self) {
        self.state.lock().expect("no thread panics while counting").closing = true;
        self.changed.notify_one();
    }

    /// Waits until a checkpoint is due; `None` when the store closes and none is left to sign.
    fn next(&self) -> Option<i64> {
        let mut state = self.state.lock().expect("no thread panics while counting");
        loop {
            let closing = state.closing;
            let resting = state.last_signed.map(|last| CHECKPOINT_PAUSE.saturating_sub(last.elapsed()));
            if let Some(rest) = resting.filter(|rest| !closing && !rest.is_zero()) {
                state = self.changed.wait_timeout(state, rest).expect("no thread panics while counting").0;
                continue;
            }
            let due = |(count, since): &(u64, Option<Instant>)| {
                let old = since.is_some_and(|since| since.elapsed() >= CHECKPOINT_EVERY);
                closing || *count >= CHECKPOINT_ENTRIES || old
            };
            if let Some(tenant) = state.counts.iter().find(|(_, pending)| due(pending)).map(|(tenant, _)| *tenant) {
                state.counts.remove(&tenant);
                state.last_signed = Some(Instant::now());
                return Some(tenant);
            }
            if closing {
                return None;
            }
            let oldest = state.counts.values().filter_map(|(_, since)| *since).min();
            let wait = oldest.map_or(CHECKPOINT_EVERY, |oldest| CHECKPOINT_EVERY.saturating_sub(oldest.elapsed()));
            let woken = self.changed.wait_timeout(state, wait.max(Duration::from_millis(10)));
            state = woken.expect("no thread panics while counting").0;
        }
    }
}

const TENANT_NAME: &str = "select name from tenant where number = ?1";

/// Runs until the store closes. `write` hands a signed checkpoint to the writer and waits.
pub(super) fn keep_signing(
    file: &DatabaseFile,
    keys: &SigningKeyFiles,
    clock: &dyn Fn() -> Timestamp,
    uncovered: &Arc<UncoveredEntries>,
    write: &dyn Fn(NewCheckpoint) -> Result<(), Error>,
    report: &dyn Fn(Error),
) {
    let mut connection: Option<Connection> = None;
    while let Some(tenant) = uncovered.next() {
        let mut once = || -> Result<(), Error> {
            let open = match connection.take() {
                Some(open) => open,
                None => file.reader()?,
            };
            let open = connection.insert(open);
            let Some(name) = one::<String>(open, TENANT_NAME, [tenant])? else { return Ok(()) };
            match sign(open, keys, &TenantId::new(&name), clock())? {
                Some(signed) => write(signed),
                None => Ok(()),
            }
        };
        if let Err(error) = once() {
            connection = None;
            // Retried later, unless the store cannot be written any more.
            if !matches!(error, Error::Corrupt(_) | Error::Closed | Error::ReadOnly(_)) {
                uncovered.try_again(tenant);
            }
            report(error);
        }
    }
}
