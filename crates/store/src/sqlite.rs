//! The embedded store: one SQLite file, owned by one process, written by one thread.
//!
//! [`Store::open`] takes the owner's lock, brings the schema up to date and starts the writer and the readers. Each
//! method of the ports packs what it can on the caller's thread and sends the rest to the [`writer`], or asks
//! the [`readers`].

pub mod archive;
pub mod backup;
pub mod baseline;
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
mod letters;
mod load;
mod lock;
pub mod migration;
mod outbox;
pub mod own;
mod payloads;
mod place;
mod plans;
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

use connection::File;
use disk::Space;
use executions::{More, NewExecution};
use key::KeyRing;
use latency::Latency;
use ledger::{Ledger, Signed, Uncovered};
use lock::OwnerLock;
use plans::Plans;
use readers::Readers;
use rutter_core::execution::Identity;
use rutter_core::id::WorkerId;
use rutter_core::port::journal::{
    Append, Appended, Claim, Journal, Lease, Loaded, NewLetter, NewPlan, Opened, Opening, Posted, Saved,
};
use rutter_core::port::{Answer, Error};
use rutter_core::time::Timestamp;
use session::Session;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tree::Tree;
use writer::{Fence, Pending, Write, Writer};

/// The database in its directory.
pub const DATABASE: &str = "rutter.db";
const LOCK: &str = "rutter.lock";

/// Where the store is and how it behaves. Start from [`Options::new`].
#[derive(Clone)]
pub struct Options {
    pub directory: PathBuf,
    /// A file system of SQLite's by name; `None` is the usual one.
    pub vfs: Option<&'static str>,
    pub readers: usize,
    /// A query that takes more steps than this in SQLite's machine is refused.
    pub query_steps_max: u64,
    /// New work is refused while less than this is free.
    pub free_bytes_min: u64,
    /// Kept back for outcomes when the disk is full.
    pub reserve_bytes: u64,
    pub clock: Clock,
}

/// What time it is; the store does not ask the system itself.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

impl Options {
    pub fn new(directory: impl Into<PathBuf>, clock: Clock) -> Options {
        Options {
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

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// An open database. Dropping it waits until everything accepted is written.
pub struct Store {
    /// `None` only while the store is being dropped.
    writes: Option<mpsc::Sender<Box<dyn Write>>>,
    readers: Option<Readers>,
    query_steps_max: u64,
    plans: Arc<Plans>,
    fence: Fence,
    threads: Vec<JoinHandle<()>>,
    uncovered: Arc<Uncovered>,
    grown: watch::Receiver<()>,
    latency: Latency,
    /// For what reads so much that it has a connection of its own.
    long_reads: Arc<Semaphore>,
    file: File,
    keys: KeyRing,
    clock: Clock,
    believed_until: Option<Timestamp>,
    _lock: OwnerLock,
}

impl Store {
    pub fn open(options: Options) -> Result<Store, Error> {
        let Options { directory, .. } = &options;
        std::fs::create_dir_all(directory)
            .map_err(|error| Error::Io(format!("{}: {error}", directory.display())))?;
        let lock = OwnerLock::take(&directory.join(LOCK))?;
        backup::check_not_interrupted(directory)?;
        let file = File { path: directory.join(DATABASE), vfs: options.vfs };
        let mut connection = file.writer()?;
        connection::check_application(&connection, &file.path)?;
        migration::migrate(&mut connection, migration::ALL, (options.clock)())?;
        // One process owns the file at a time: whoever drove something before is gone.
        let believed_until = lease::believed_until(&connection)?;
        connection.execute(lease::ALL_GONE, []).map_err(fault::of)?;
        let keys = KeyRing::new(directory);
        // What a dead process wrote may be in the log and not on disk; before anybody believes it, it must be.
        connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).map_err(fault::of)?;

        let fence = Fence::default();
        *fence.lock().expect("nobody else has it yet") = look_over(&connection, &keys)?;
        let uncovered = Arc::<Uncovered>::default();
        for ledger in Ledger::all(&connection)? {
            let open =
                Tree::new(&connection, ledger.number).size()?.saturating_sub(ledger.covered(&connection)?);
            if open > 0 {
                uncovered.add(ledger.number, open);
            }
        }
        let counting = Arc::clone(&uncovered);
        let (growing, grown) = watch::channel(());
        let (writes, requests) = mpsc::channel(writer::QUEUE_MAX);
        let writer = Writer {
            file: file.clone(),
            session: Session::new(connection),
            space: Space::new(directory, options.free_bytes_min, options.reserve_bytes),
            fence: Arc::clone(&fence),
            is_stale: false,
            requests,
            on_added: Box::new(move |tenant, count| counting.add(tenant, count)),
            grown: growing,
        };
        let no_thread = |error: std::io::Error| Error::Io(format!("no thread: {error}"));
        let (readers, mut threads) = Readers::start(&file, options.readers).map_err(no_thread)?;
        let writing = thread::Builder::new().name("rutter-write".to_owned()).spawn(move || writer.run());
        threads.push(writing.map_err(no_thread)?);
        let mut store = Store {
            writes: Some(writes),
            readers: Some(readers),
            query_steps_max: options.query_steps_max,
            plans: Arc::default(),
            fence,
            threads,
            uncovered,
            grown,
            latency: Latency::default(),
            long_reads: Arc::new(Semaphore::new(proof::LONG_READS_MAX)),
            file,
            keys,
            clock: options.clock,
            believed_until,
            _lock: lock,
        };
        store.keep_signing().map_err(no_thread)?;
        Ok(store)
    }

    /// Starts the thread that signs checkpoints. It ends before the writer does, and signs once more at the end.
    fn keep_signing(&mut self) -> std::io::Result<()> {
        let (file, keys, clock) = (self.file.clone(), self.keys.clone(), Arc::clone(&self.clock));
        let (uncovered, fence, writes) =
            (Arc::clone(&self.uncovered), Arc::clone(&self.fence), self.writes.clone());
        let signing = thread::Builder::new().name("rutter-sign".to_owned()).spawn(move || {
            let write = |signed: Signed| {
                let (reply, answer) = oneshot::channel();
                let work = move |session: &mut Session| ledger::keep(session, &signed);
                let write: Box<dyn Write> = Box::new(Pending { work, outcome: true, given: None, reply });
                let writes = writes.as_ref().ok_or(Error::Closed)?;
                writes.blocking_send(write).map_err(|_| Error::Closed)?;
                answer.blocking_recv().map_err(|_| Error::Closed)?
            };
            let report = |error: Error| {
                if let Error::Corrupt(_) = &error {
                    *fence.lock().expect("nobody panics while holding the fence") = Some(read_only(&error));
                }
            };
            ledger::keep_signing(&file, &keys, &*clock, &uncovered, &write, &report);
        })?;
        // The first to be waited for.
        self.threads.insert(0, signing);
        Ok(())
    }

    /// Until when somebody who had the database before was believed to live, if anybody ever drove something.
    pub fn believed_until(&self) -> Option<Timestamp> {
        self.believed_until
    }

    /// Why nothing can be written, if that is so.
    pub fn trouble(&self) -> Option<Error> {
        self.fence.lock().expect("nobody panics while holding the fence").clone()
    }

    /// Sends work to the writer. An `outcome` waits for its turn; new work is refused when too much waits.
    fn write<'a, T: Send + 'static>(
        &'a self,
        outcome: bool,
        work: impl FnMut(&mut Session) -> Result<T, Error> + Send + 'static,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            let writes = self.writes.as_ref().ok_or(Error::Closed)?;
            let asked = Instant::now();
            let (reply, answer) = oneshot::channel();
            let write: Box<dyn Write> = Box::new(Pending { work, outcome, given: None, reply });
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
    ) -> Answer<'a, T> {
        match &self.readers {
            Some(readers) => readers.read(look),
            None => refused(Error::Closed),
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.uncovered.close();
        (self.writes, self.readers) = (None, None);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Newest entries that are looked at when a store is opened; the rest is for `verify`.
const LOOKED_OVER: u64 = 10_000;

/// Why an opened database must not be written, if it was changed behind our back.
fn look_over(connection: &rusqlite::Connection, keys: &KeyRing) -> Result<Option<Error>, Error> {
    let look = || -> Result<Option<Error>, Error> {
        ledger::check_not_put_back(connection, keys)?;
        for ledger in Ledger::all(connection)? {
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

fn refused<'a, T: Send + 'a>(error: Error) -> Answer<'a, T> {
    Box::pin(std::future::ready(Err(error)))
}

impl Journal for Store {
    fn save(&self, plan: NewPlan) -> Answer<'_, Saved> {
        let packed = plans::pack(plan);
        self.write(false, move |session| plans::save(session, &packed))
    }

    fn open(&self, opening: Opening) -> Answer<'_, Opened> {
        match NewExecution::prepare(opening) {
            Ok(new) => self.write(false, move |session| executions::open(session, &new)),
            Err(error) => refused(error),
        }
    }

    fn claim(&self, claim: Claim) -> Answer<'_, Vec<Lease>> {
        self.write(true, move |session| lease::claim(session, &claim))
    }

    fn renew(&self, worker: &WorkerId, until: Timestamp) -> Answer<'_, ()> {
        let worker = worker.clone();
        self.write(true, move |session| lease::renew(session, &worker, until))
    }

    fn load(&self, identity: &Identity) -> Answer<'_, Loaded> {
        let (identity, plans) = (identity.clone(), Arc::clone(&self.plans));
        self.read(move |connection| load::load(connection, &identity, &plans))
    }

    fn append(&self, append: Append) -> Answer<'_, Appended> {
        match More::prepare(append) {
            Ok(more) => self.write(true, move |session| executions::append(session, &more)),
            Err(error) => refused(error),
        }
    }

    fn post(&self, letter: NewLetter) -> Answer<'_, Posted> {
        if let Err(error) = letters::check(&letter) {
            return refused(error);
        }
        let mut number = None;
        self.write(false, move |session| letters::post(session, &letter, &mut number))
    }

    fn release(&self, lease: Lease) -> Answer<'_, ()> {
        self.write(true, move |session| lease::release(session, &lease))
    }
}
