//! Backup of a database in use, and restore from a backup.

use super::archive::SqliteArchive;
use super::connection::DatabaseFile;
use super::executions;
use super::fault;
use super::key::{self, SigningKeyFiles};
use super::lease;
use super::ledger::LedgerRow;
use super::lock::OwnerLock;
use super::session::{WriteSession, size_of};
use super::{DATABASE, LOCK, SqliteOptions, SqliteStore, StoreClock, own};
use crate::wait;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, params};
use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::execution::{Execution, ExecutionIdentity, ExecutionPhase, decide};
use rutter_core::id::{ExecutionId, TenantId, WorkerId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::journal::verify::TrustAnchors;
use rutter_core::port::Error;
use rutter_core::port::journal::{AppendRequest, Journal, Lease, SealedEntry};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pages copied between two reports of progress.
const PAGES: i32 = 2_000;
/// The extension of a copy that is not complete yet.
const UNFINISHED: &str = "unfinished";

/// What a backup contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupContents {
    pub bytes: u64,
    pub entries: u64,
    pub executions: u64,
}

/// Copies the database of a directory into a new file, as it is at this moment, and verifies the copy.
///
/// The owner may keep writing. `progress` receives the pages copied and the total.
pub fn backup(directory: &Path, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupContents, Error> {
    if to.exists() {
        return Err(Error::Invalid(format!("{} already exists", to.display())));
    }
    SqliteArchive::open(directory)?;
    let unfinished = to.with_extension(UNFINISHED);
    remove(&unfinished)?;
    copy(&directory.join(DATABASE), &unfinished, progress)?;
    let copied = check(&unfinished)?;
    settle(&unfinished, to)?;
    Ok(copied)
}

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredStore {
    pub copied: BackupContents,
    /// Open executions, now paused until an operator resumes them.
    pub held: Vec<ExecutionIdentity>,
    /// Where the replaced database was moved to.
    pub replaced: Option<PathBuf>,
}

/// Restores a backup: every ledger gets a new origin, and every open execution is paused.
///
/// What happened after the backup is unknown, so no execution resumes by itself.
pub fn restore(
    from: &Path,
    options: SqliteOptions,
    replace: bool,
    actor: &Actor,
    reason: &str,
) -> Result<RestoredStore, Error> {
    let (directory, clock) = (options.directory.clone(), Arc::clone(&options.clock));
    let copied = check(from)?;
    fs::create_dir_all(&directory).map_err(|error| Error::Io(format!("{}: {error}", directory.display())))?;
    let lock = OwnerLock::take(&directory.join(LOCK))?;
    let database = directory.join(DATABASE);
    if database.exists() && !replace {
        let place = directory.display();
        return Err(Error::Invalid(format!("{place} already has a database; ask for it to be replaced")));
    }
    let unfinished = database.with_extension(UNFINISHED);
    remove(&unfinished)?;
    copy(from, &unfinished, &mut |_, _| {})?;
    rename_ledgers(&unfinished, actor, reason, &clock)?;
    let replaced = set_aside(&database, &clock)?;
    SigningKeyFiles::new(&directory).forget_last()?;
    settle(&unfinished, &database)?;
    drop(lock);
    let store = SqliteStore::open(options)?;
    let held = hold_open_executions(&store, actor, reason, &clock)?;
    Ok(RestoredStore { copied, held, replaced })
}

/// Refuses to create an empty database where a restore was interrupted.
pub(super) fn check_not_interrupted(directory: &Path) -> Result<(), Error> {
    let database = directory.join(DATABASE);
    match !database.exists() && database.with_extension(UNFINISHED).exists() {
        true => Err(Error::Invalid("a restore was interrupted here; run it again".to_owned())),
        false => Ok(()),
    }
}

fn copy(from: &Path, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<(), Error> {
    let source = DatabaseFile { path: from.to_owned(), vfs: None }.reader()?;
    // Takes a read snapshot, so that concurrent writes do not restart the copy.
    source.execute_batch("begin").map_err(fault::of)?;
    source.query_row("select count(*) from sqlite_schema", [], |_| Ok(())).map_err(fault::of)?;
    let mut target = Connection::open(to).map_err(fault::of)?;
    let copying = Backup::new(&source, &mut target).map_err(fault::of)?;
    loop {
        let step = copying.step(PAGES).map_err(fault::of)?;
        let pages = copying.progress();
        let all = u64::try_from(pages.pagecount).unwrap_or(0);
        progress(all - u64::try_from(pages.remaining).unwrap_or(0), all);
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            _ => return Err(Error::Io("the database is locked and cannot be copied".to_owned())),
        }
    }
}

/// Verifies every ledger of a copy, without trust anchors from outside it.
fn check(path: &Path) -> Result<BackupContents, Error> {
    let mut archive = SqliteArchive::open_file(path)?;
    for tenant in archive.tenants()? {
        let checked = archive.verify(&tenant, TrustAnchors::default(), false, &mut |_| {})?;
        if let Some(fault) = &checked.verdict.fault {
            return Err(Error::Corrupt(format!("{}: the ledger of {tenant}: {fault}", path.display())));
        }
        if let Some(row) = checked.rows.first() {
            return Err(Error::Corrupt(format!("{}: {row}", path.display())));
        }
    }
    let stats = archive.stats()?;
    Ok(BackupContents {
        bytes: stats.database_bytes,
        entries: stats.tenants.iter().map(|tenant| tenant.entries).sum(),
        executions: stats.tenants.iter().flat_map(|tenant| &tenant.executions).map(|(_, count)| count).sum(),
    })
}

const RENAME: &str = "update tenant set origin = ?2, epoch = epoch + 1 where number = ?1";
const FREE: &str = "update execution set owner = null";

fn rename_ledgers(path: &Path, actor: &Actor, reason: &str, clock: &StoreClock) -> Result<(), Error> {
    let mut session = WriteSession::new(DatabaseFile { path: path.to_owned(), vfs: None }.writer()?);
    session.connection.execute_batch("begin immediate").map_err(fault::of)?;
    for ledger in LedgerRow::all(&session.connection)? {
        let size = size_of(&session.connection, ledger.number).map_err(fault::of)?;
        let event = Event::LedgerRestored { origin: ledger.origin, size, reason: reason.to_owned() };
        let record = EventRecord { at: clock(), actor: actor.clone(), event };
        session.execute(RENAME, params![ledger.number, key::new_origin()?])?;
        own::record(&mut session, ledger.number, &ledger.tenant, &record)?;
    }
    session.execute(FREE, [])?;
    session.connection.execute_batch("commit").map_err(fault::of)?;
    // Empties the WAL: only the main file is renamed.
    session.connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).map_err(fault::of)?;
    Ok(())
}

const OPEN: &str = "
    select tenant.name, execution.id
    from execution
    join tenant on tenant.number = execution.tenant
    where execution.status in ('pending', 'running', 'paused', 'waiting', 'replanning', 'compensating')
    order by execution.number";

fn hold_open_executions(
    store: &SqliteStore,
    actor: &Actor,
    reason: &str,
    clock: &StoreClock,
) -> Result<Vec<ExecutionIdentity>, Error> {
    let open = wait(store.read(|connection| {
        let rows = || -> rusqlite::Result<Vec<(String, String)>> {
            connection.prepare(OPEN)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        rows().map_err(fault::of)
    }))?;
    let mut held = Vec::new();
    for (tenant, execution) in open {
        let identity = ExecutionIdentity { tenant: TenantId::new(&tenant), execution: ExecutionId::new(&execution) };
        hold(store, &identity, actor, reason, clock)?;
        held.push(identity);
    }
    Ok(held)
}

/// Holds an execution until a person resumes it. Its time stands still as of its last entry: what happened after the
/// backup is unknown.
fn hold(
    store: &SqliteStore,
    identity: &ExecutionIdentity,
    actor: &Actor,
    reason: &str,
    clock: &StoreClock,
) -> Result<(), Error> {
    let broken = |error: &dyn std::fmt::Display| Error::Corrupt(format!("{}: {error}", identity.execution));
    let loaded = wait(store.load(identity))?;
    let mut execution = Execution::replay(identity.clone(), &loaded.records).map_err(|error| broken(&error))?;
    let mut records = Vec::new();
    // A pending execution cannot be held, so it is started first, with capacity for no call.
    let started = (*execution.phase() == ExecutionPhase::Pending).then_some(ExecutionInput::Start);
    let reason = format!("restored from a backup: {reason}");
    let hold = ExecutionInput::Hold { reason, since: execution.last_at() };
    for input in started.into_iter().chain([hold]) {
        match execution.decide(actor, input, DecisionContext { now: clock(), room: 0 }) {
            Ok(decision) => records.extend(decision.records),
            // Held already.
            Err(decide::Error::Refused(_)) => {}
            Err(decide::Error::Broken(illegal)) => return Err(broken(&illegal)),
        }
    }
    let mut chain = HashChain::resume(identity.tenant.clone(), identity.execution.clone(), loaded.head);
    let mut entries = Vec::new();
    for record in &records {
        // No record of a pause or a start has more than one payload.
        let salt = PayloadSalt(key::random()?);
        entries.push(SealedEntry::seal(&mut chain, record, &mut || salt).map_err(|error| broken(&error))?);
    }
    let lease = wait(take(store, identity))?;
    let append = AppendRequest {
        lease: lease.clone(),
        expected: loaded.head,
        entries,
        row: execution.row(),
        decided_commands: vec![],
        refused_keys: vec![],
    };
    wait(store.append(append))?;
    wait(store.release(lease))
}

/// Claims one execution, due or not.
fn take<'a>(store: &'a SqliteStore, identity: &ExecutionIdentity) -> rutter_core::port::StoreFuture<'a, Lease> {
    let identity = identity.clone();
    store.write(true, move |session| {
        let found = executions::find(session, &identity)?;
        let worker = WorkerId::new("restore");
        let owner = lease::worker(session, &worker)?;
        session.execute(lease::TAKE, params![found.number, owner])?;
        Ok(Lease { identity: identity.clone(), worker, epoch: found.epoch + 1 })
    })
}

/// Moves a database and its WAL out of the way.
fn set_aside(database: &Path, clock: &StoreClock) -> Result<Option<PathBuf>, Error> {
    if !database.exists() {
        return Ok(None);
    }
    let aside = database.with_extension(format!("replaced-{}", clock().0));
    for end in ["-wal", "", "-shm"] {
        let with_end = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            PathBuf::from(name)
        };
        let (from, to) = (with_end(database), with_end(&aside));
        if from.exists() {
            fs::rename(&from, &to).map_err(|error| Error::Io(format!("{}: {error}", from.display())))?;
        }
    }
    Ok(Some(aside))
}

/// Syncs a finished copy and renames it into place.
fn settle(unfinished: &Path, path: &Path) -> Result<(), Error> {
    for end in ["-wal", "-shm"] {
        let mut beside = unfinished.as_os_str().to_owned();
        beside.push(end);
        remove(Path::new(&beside))?;
    }
    let renamed = || -> std::io::Result<()> {
        fs::File::open(unfinished)?.sync_all()?;
        fs::rename(unfinished, path)?;
        match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(directory) => fs::File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    };
    renamed().map_err(|error| Error::Io(format!("{}: {error}", path.display())))
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io(format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}
