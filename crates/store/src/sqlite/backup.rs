//! Copying a database while it is used, and beginning again from such a copy.

use super::archive::Archive;
use super::connection::File;
use super::executions;
use super::fault;
use super::key::{self, KeyRing};
use super::lease;
use super::ledger::Ledger;
use super::lock::OwnerLock;
use super::session::{Session, size_of};
use super::{Clock, DATABASE, LOCK, Options, Store, own};
use crate::wait;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, params};
use rutter_core::actor::Actor;
use rutter_core::execution::input::{Input, Moment};
use rutter_core::execution::{Execution, Identity, decide};
use rutter_core::id::{ExecutionId, TenantId, WorkerId};
use rutter_core::journal::chain::Chain;
use rutter_core::journal::event::{Event, Record};
use rutter_core::journal::payload::Salt;
use rutter_core::journal::verify::Trust;
use rutter_core::port::Error;
use rutter_core::port::journal::{Append, Journal, Lease, Sealed};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pages copied between two reports of progress.
const PAGES: i32 = 2_000;
/// A copy that is not yet whole.
const UNFINISHED: &str = "unfinished";

/// What a copy holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    pub bytes: u64,
    pub entries: u64,
    pub executions: u64,
}

/// Copies the database of a directory into a new file, as it is at this moment, and verifies the copy.
///
/// The owner goes on writing meanwhile. `progress` is told pages done and pages in all.
pub fn backup(directory: &Path, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Copied, Error> {
    if to.exists() {
        return Err(Error::Invalid(format!("{} exists already", to.display())));
    }
    Archive::open(directory)?;
    let unfinished = to.with_extension(UNFINISHED);
    remove(&unfinished)?;
    copy(&directory.join(DATABASE), &unfinished, progress)?;
    let copied = check(&unfinished)?;
    settle(&unfinished, to)?;
    Ok(copied)
}

/// Where a restore has put things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub copied: Copied,
    /// Open executions that now wait for somebody to look at them.
    pub held: Vec<Identity>,
    /// Where the database that was there before has gone.
    pub replaced: Option<PathBuf>,
}

/// Begins again from a backup: another name for every ledger, and every open execution paused.
///
/// Nobody knows what happened after the backup was made, so nothing goes on by itself.
pub fn restore(
    from: &Path,
    options: Options,
    replace: bool,
    actor: &Actor,
    reason: &str,
) -> Result<Restored, Error> {
    let (directory, clock) = (options.directory.clone(), Arc::clone(&options.clock));
    let copied = check(from)?;
    fs::create_dir_all(&directory).map_err(|error| Error::Io(format!("{}: {error}", directory.display())))?;
    let lock = OwnerLock::take(&directory.join(LOCK))?;
    let database = directory.join(DATABASE);
    if database.exists() && !replace {
        let place = directory.display();
        return Err(Error::Invalid(format!(
            "{place} has a database already; say so if it is to be replaced"
        )));
    }
    let unfinished = database.with_extension(UNFINISHED);
    remove(&unfinished)?;
    copy(from, &unfinished, &mut |_, _| {})?;
    rename_ledgers(&unfinished, actor, reason, &clock)?;
    let replaced = set_aside(&database, &clock)?;
    KeyRing::new(&directory).forget_last()?;
    settle(&unfinished, &database)?;
    drop(lock);
    let store = Store::open(options)?;
    let held = hold_open_executions(&store, actor, reason, &clock)?;
    Ok(Restored { copied, held, replaced })
}

/// Why a directory without a database must not get an empty one: a restore did not come to its end.
pub(super) fn check_not_interrupted(directory: &Path) -> Result<(), Error> {
    let database = directory.join(DATABASE);
    match !database.exists() && database.with_extension(UNFINISHED).exists() {
        true => Err(Error::Invalid("a restore was interrupted here; run it again".to_owned())),
        false => Ok(()),
    }
}

fn copy(from: &Path, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<(), Error> {
    let source = File { path: from.to_owned(), vfs: None }.reader()?;
    // Holds on to this moment: what is written meanwhile does not make the copy begin anew.
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

/// Verifies every ledger of a copy against itself.
fn check(path: &Path) -> Result<Copied, Error> {
    let mut archive = Archive::open_file(path)?;
    for tenant in archive.tenants()? {
        let checked = archive.verify(&tenant, Trust::default(), false, &mut |_| {})?;
        if let Some(fault) = &checked.verdict.fault {
            return Err(Error::Corrupt(format!("{}: the ledger of {tenant}: {fault}", path.display())));
        }
        if let Some(row) = checked.rows.first() {
            return Err(Error::Corrupt(format!("{}: {row}", path.display())));
        }
    }
    let stats = archive.stats()?;
    Ok(Copied {
        bytes: stats.database_bytes,
        entries: stats.tenants.iter().map(|tenant| tenant.entries).sum(),
        executions: stats.tenants.iter().flat_map(|tenant| &tenant.executions).map(|(_, count)| count).sum(),
    })
}

const RENAME: &str = "update tenant set origin = ?2, epoch = epoch + 1 where number = ?1";
const FREE: &str = "update execution set owner = null";

fn rename_ledgers(path: &Path, actor: &Actor, reason: &str, clock: &Clock) -> Result<(), Error> {
    let mut session = Session::new(File { path: path.to_owned(), vfs: None }.writer()?);
    session.connection.execute_batch("begin immediate").map_err(fault::of)?;
    for ledger in Ledger::all(&session.connection)? {
        let size = size_of(&session.connection, ledger.number).map_err(fault::of)?;
        let event = Event::LedgerRestored { origin: ledger.origin, size, reason: reason.to_owned() };
        let record = Record { at: clock(), actor: actor.clone(), event };
        session.execute(RENAME, params![ledger.number, key::new_origin()?])?;
        own::record(&mut session, ledger.number, &ledger.tenant, &record)?;
    }
    session.execute(FREE, [])?;
    session.connection.execute_batch("commit").map_err(fault::of)?;
    // One file, nothing beside it: it is about to be renamed.
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
    store: &Store,
    actor: &Actor,
    reason: &str,
    clock: &Clock,
) -> Result<Vec<Identity>, Error> {
    let open = wait(store.read(|connection| {
        let rows = || -> rusqlite::Result<Vec<(String, String)>> {
            connection.prepare(OPEN)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        rows().map_err(fault::of)
    }))?;
    let mut held = Vec::new();
    for (tenant, execution) in open {
        let identity = Identity { tenant: TenantId::new(&tenant), execution: ExecutionId::new(&execution) };
        hold(store, &identity, actor, reason, clock)?;
        held.push(identity);
    }
    Ok(held)
}

/// Pauses an execution, so that it goes on only when somebody says so.
fn hold(store: &Store, identity: &Identity, actor: &Actor, reason: &str, clock: &Clock) -> Result<(), Error> {
    let broken = |error: &dyn std::fmt::Display| Error::Corrupt(format!("{}: {error}", identity.execution));
    let loaded = wait(store.load(identity))?;
    let mut execution =
        Execution::replay(identity.clone(), &loaded.records).map_err(|error| broken(&error))?;
    let mut records = Vec::new();
    // One that has not begun cannot be paused, so it begins, with room for nothing.
    for input in [Input::Start, Input::Pause { reason: format!("restored from a backup: {reason}") }] {
        match execution.decide(actor, input, Moment { now: clock(), room: 0 }) {
            Ok(decision) => records.extend(decision.records),
            // Begun, or paused already.
            Err(decide::Error::Refused(_)) => {}
            Err(decide::Error::Broken(illegal)) => return Err(broken(&illegal)),
        }
    }
    let mut chain = Chain::resume(identity.tenant.clone(), identity.execution.clone(), loaded.head);
    let mut entries = Vec::new();
    for record in &records {
        // No record of a pause or a start has more than one payload.
        let salt = Salt(key::random()?);
        entries.push(Sealed::seal(&mut chain, record, &mut || salt).map_err(|error| broken(&error))?);
    }
    let lease = wait(take(store, identity))?;
    let append = Append {
        lease: lease.clone(),
        expected: loaded.head,
        entries,
        row: execution.row(),
        consumed: vec![],
        forgotten: vec![],
    };
    wait(store.append(append))?;
    wait(store.release(lease))
}

/// Claims one execution, due or not.
fn take<'a>(store: &'a Store, identity: &Identity) -> rutter_core::port::Answer<'a, Lease> {
    let identity = identity.clone();
    store.write(true, move |session| {
        let found = executions::find(session, &identity)?;
        let worker = WorkerId::new("restore");
        let owner = lease::worker(session, &worker)?;
        session.execute(lease::TAKE, params![found.number, owner])?;
        Ok(Lease { identity: identity.clone(), worker, epoch: found.epoch + 1 })
    })
}

/// Moves a database out of the way, with its log.
fn set_aside(database: &Path, clock: &Clock) -> Result<Option<PathBuf>, Error> {
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

/// Gives a finished copy its name. Before that it is nothing.
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
