//! The embedded store: one SQLite file, owned by one process, written by one thread.
//!
//! [`SqliteStore::open`] takes the owner's lock, migrates the schema and starts the writer and the readers. Each
//! method of the ports packs what it can on the caller's thread and sends the rest to the [`writer`], or asks
//! the [`readers`].

pub mod archive;
pub mod backup;
mod commands;
mod connection;
pub mod disk;
mod entries;
mod executions;
mod export;
mod fault;
mod feed;
mod key;
mod latency;
mod lease;
pub mod ledger;
mod load;
mod lock;
pub mod migration;
mod outbox;
pub mod own;
mod payloads;
mod plan_state;
mod plans;
mod position;
mod projections;
mod proof;
mod query;
mod readers;
mod register;
mod request;
mod session;
mod tree;
mod upkeep;
pub mod verify;
mod writer;

use connection::DatabaseFile;
use disk::DiskSpace;
use executions::{PackedAppend, PackedOpening};
use key::SigningKeyFiles;
use latency::AppendLatency;
use ledger::{LedgerRow, NewCheckpoint, UncoveredEntries};
use lock::OwnerLock;
use plans::PlanCache;
use readers::ReaderPool;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::WorkerId;
use rutter_core::port::journal::{
    AppendOutcome, AppendRequest, ClaimRequest, EnqueueOutcome, ExecutionOpening, Journal, Lease, LoadedExecution,
    NewCommand, NewRevision, OpenOutcome, PlanStateChange, PlanStateOutcome, SaveOutcome,
};
use rutter_core::port::{Error, StoreFuture};
use rutter_core::time::Timestamp;
use session::WriteSession;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tree::StoredMerkleTree;
use writer::{DatabaseWriter, PendingWrite, WriteFence, WriteJob};

/// The database in its directory.
pub const DATABASE: &str = "rutter.db";
const LOCK: &str = "rutter.lock";

/// Where the store is and how it behaves. Start from [`SqliteOptions::new`].
#[derive(Clone)]
pub struct SqliteOptions {
    pub directory: PathBuf,
    /// The name of an SQLite VFS; `None` is the default one.
    pub vfs: Option<&'static str>,
    pub readers: usize,
    /// A query that takes more steps than this in SQLite's machine is refused.
    pub query_steps_max: u64,
    /// New work is refused while less than this is free.
    pub free_bytes_min: u64,
    /// Reserved for outcomes when the disk is full.
    pub reserve_bytes: u64,
    pub clock: StoreClock,
}

/// Returns the current time; the store does not read the system clock itself.
pub type StoreClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

impl SqliteOptions {
    pub fn new(directory: impl Into<PathBuf>, clock: StoreClock) -> SqliteOptions {
        SqliteOptions {
            directory: directory.into(),
            vfs: None,
            readers: 3,
            query_steps_max: query::STEPS_MAX,
            free_bytes_min: disk::FREE_BYTES_MIN,
            reserve_bytes: disk::RESERVE_BYTES,
            clock,
        }
    }
}

impl std::fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteOptions").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// An open database. Dropping it waits until everything accepted is written.
pub struct SqliteStore {
    /// `None` only while the store is being dropped.
    writes: Option<mpsc::Sender<Box<dyn WriteJob>>>,
    readers: Option<ReaderPool>,
    query_steps_max: u64,
    plans: Arc<PlanCache>,
    fence: WriteFence,
    threads: Vec<JoinHandle<()>>,
    uncovered: Arc<UncoveredEntries>,
    grown: watch::Receiver<()>,
    latency: AppendLatency,
    /// Permits for long reads, each of which opens a connection of its own.
    long_reads: Arc<Semaphore>,
    file: DatabaseFile,
    keys: SigningKeyFiles,
    clock: StoreClock,
    _lock: OwnerLock,
}

impl SqliteStore {
    pub fn open(options: SqliteOptions) -> Result<SqliteStore, Error> {
        let SqliteOptions { directory, .. } = &options;
        std::fs::create_dir_all(directory).map_err(|error| Error::Io(format!("{}: {error}", directory.display())))?;
        let lock = OwnerLock::take(&directory.join(LOCK))?;
        backup::check_not_interrupted(directory)?;
        let file = DatabaseFile { path: directory.join(DATABASE), vfs: options.vfs };
        let mut connection = file.writer()?;
        connection::check_application(&connection, &file.path)?;
        migration::migrate(&mut connection, migration::ALL, (options.clock)())?;
        // One process owns the file at a time, so every earlier worker is gone.
        connection.execute(lease::ALL_GONE, []).map_err(fault::of)?;
        let keys = SigningKeyFiles::new(directory);
        // Writes of a dead process may be in the WAL without being synced; they must be synced before they are read.
        connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).map_err(fault::of)?;

        let fence = WriteFence::default();
        *fence.lock().expect("no other thread has the fence yet") = look_over(&connection, &keys)?;
        let uncovered = Arc::<UncoveredEntries>::default();
        for ledger in LedgerRow::all(&connection)? {
            let open =
                StoredMerkleTree::new(&connection, ledger.number).size()?.saturating_sub(ledger.covered(&connection)?);
            if open > 0 {
                uncovered.add(ledger.number, open);
            }
        }
        let counting = Arc::clone(&uncovered);
        let (growing, grown) = watch::channel(());
        let (writes, requests) = mpsc::channel(writer::QUEUE_MAX);
        let writer = DatabaseWriter {
            file: file.clone(),
            session: WriteSession::new(connection),
            space: DiskSpace::new(directory, options.free_bytes_min, options.reserve_bytes),
            fence: Arc::clone(&fence),
            is_stale: false,
            requests,
            on_added: Box::new(move |tenant, count| counting.add(tenant, count)),
            grown: growing,
        };
        let no_thread = |error: std::io::Error| Error::Io(format!("no thread: {error}"));
        let (readers, mut threads) = ReaderPool::start(&file, options.readers).map_err(no_thread)?;
        let writing = thread::Builder::new().name("rutter-write".to_owned()).spawn(move || writer.run());
        threads.push(writing.map_err(no_thread)?);
        let mut store = SqliteStore {
            writes: Some(writes),
            readers: Some(readers),
            query_steps_max: options.query_steps_max,
            plans: Arc::default(),
            fence,
            threads,
            uncovered,
            grown,
            latency: AppendLatency::default(),
            long_reads: Arc::new(Semaphore::new(proof::LONG_READS_MAX)),
            file,
            keys,
            clock: options.clock,
            _lock: lock,
        };
        store.keep_signing().map_err(no_thread)?;
        Ok(store)
    }

    /// Starts the thread that signs checkpoints. It ends before the writer does, and signs once more at the end.
    fn keep_signing(&mut self) -> std::io::Result<()> {
        let (file, keys, clock) = (self.file.clone(), self.keys.clone(), Arc::clone(&self.clock));
        let (uncovered, fence, writes) = (Arc::clone(&self.uncovered), Arc::clone(&self.fence), self.writes.clone());
        let signing = thread::Builder::new().name("rutter-sign".to_owned()).spawn(move || {
            let write = |signed: NewCheckpoint| {
                let (reply, answer) = oneshot::channel();
                let work = move |session: &mut WriteSession| ledger::keep(session, &signed);
                let write: Box<dyn WriteJob> = Box::new(PendingWrite { work, outcome: true, given: None, reply });
                let writes = writes.as_ref().ok_or(Error::Closed)?;
                writes.blocking_send(write).map_err(|_| Error::Closed)?;
                answer.blocking_recv().map_err(|_| Error::Closed)?
            };
            let report = |error: Error| {
                if let Error::Corrupt(_) = &error {
                    *fence.lock().expect("no panic while the fence is held") = Some(read_only(&error));
                }
            };
            ledger::keep_signing(&file, &keys, &*clock, &uncovered, &write, &report);
        })?;
        // Joined first.
        self.threads.insert(0, signing);
        Ok(())
    }

    /// Why writes are refused, if they are.
    pub fn trouble(&self) -> Option<Error> {
        self.fence.lock().expect("no panic while the fence is held").clone()
    }

    /// Sends work to the writer. An `outcome` waits for its turn; new work is refused when the queue is full.
    fn write<'a, T: Send + 'static>(
        &'a self,
        outcome: bool,
        work: impl FnMut(&mut WriteSession) -> Result<T, Error> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let writes = self.writes.as_ref().ok_or(Error::Closed)?;
            let asked = Instant::now();
            let (reply, answer) = oneshot::channel();
            let write: Box<dyn WriteJob> = Box::new(PendingWrite { work, outcome, given: None, reply });
            match outcome {
                true => writes.send(write).await.map_err(|_| Error::Closed)?,
                false => writes.try_send(write).map_err(|error| match error {
                    mpsc::error::TrySendError::Full(_) => Error::Overloaded,
                    mpsc::error::TrySendError::Closed(_) => Error::Closed,
                })?,
            }
            let given = answer.await.map_err(|_| Error::Closed)?;
            if given.is_ok() {
                self.latency.count(asked.elapsed());
            }
            given
        })
    }

    fn read<'a, T: Send + 'static>(
        &'a self,
        look: impl FnOnce(&mut rusqlite::Connection) -> Result<T, Error> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        match &self.readers {
            Some(readers) => readers.read(look),
            None => refused(Error::Closed),
        }
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.uncovered.close();
        (self.writes, self.readers) = (None, None);
        for thread in self.threads.drain(..) {
            // A panic has already been reported.
            let _ = thread.join();
        }
    }
}

/// How many of the newest entries are checked when a store is opened; `verify` checks the rest.
const LOOKED_OVER: u64 = 10_000;

/// Returns why an opened database must not be written, if it was changed by another program.
fn look_over(connection: &rusqlite::Connection, keys: &SigningKeyFiles) -> Result<Option<Error>, Error> {
    let look = || -> Result<Option<Error>, Error> {
        ledger::check_not_put_back(connection, keys)?;
        for ledger in LedgerRow::all(connection)? {
            if let Some(wrong) = verify::tail(connection, &ledger, LOOKED_OVER)? {
                return Ok(Some(read_only(&Error::Corrupt(wrong))));
            }
        }
        Ok(None)
    };
    match look() {
        Err(error @ Error::Corrupt(_)) => Ok(Some(read_only(&error))),
        looked => looked,
    }
}

fn read_only(error: &Error) -> Error {
    Error::ReadOnly(format!("{error}; it can be verified and exported"))
}

fn refused<'a, T: Send + 'a>(error: Error) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(Err(error)))
}

impl Journal for SqliteStore {
    fn save(&self, plan: NewRevision) -> StoreFuture<'_, SaveOutcome> {
        let packed = plans::pack(plan);
        self.write(false, move |session| plans::save(session, &packed))
    }

    fn change_plan(&self, change: PlanStateChange) -> StoreFuture<'_, PlanStateOutcome> {
        match upkeep::check_reason(&change.reason) {
            Ok(()) => self.write(true, move |session| plan_state::change(session, &change)),
            Err(error) => refused(error),
        }
    }

    fn open(&self, opening: ExecutionOpening) -> StoreFuture<'_, OpenOutcome> {
        match PackedOpening::prepare(opening) {
            Ok(new) => self.write(false, move |session| executions::open(session, &new)),
            Err(error) => refused(error),
        }
    }

    fn claim(&self, claim: ClaimRequest) -> StoreFuture<'_, Vec<Lease>> {
        self.write(true, move |session| lease::claim(session, &claim))
    }

    fn renew(&self, worker: &WorkerId, until: Timestamp) -> StoreFuture<'_, ()> {
        let worker = worker.clone();
        self.write(true, move |session| lease::renew(session, &worker, until))
    }

    fn load(&self, identity: &ExecutionIdentity) -> StoreFuture<'_, LoadedExecution> {
        let (identity, plans) = (identity.clone(), Arc::clone(&self.plans));
        self.read(move |connection| load::load(connection, &identity, &plans))
    }

    fn append(&self, append: AppendRequest) -> StoreFuture<'_, AppendOutcome> {
        match PackedAppend::prepare(append) {
            Ok(more) => self.write(true, move |session| executions::append(session, &more)),
            Err(error) => refused(error),
        }
    }

    fn enqueue(&self, command: NewCommand) -> StoreFuture<'_, EnqueueOutcome> {
        if let Err(error) = commands::check(&command) {
            return refused(error);
        }
        let mut number = None;
        self.write(false, move |session| commands::enqueue(session, &command, &mut number))
    }

    fn release(&self, lease: Lease) -> StoreFuture<'_, ()> {
        self.write(true, move |session| lease::release(session, &lease))
    }
}
