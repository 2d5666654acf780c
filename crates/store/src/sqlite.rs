//! The embedded store: one SQLite file, owned by one process, written by one thread.
//!
//! [`Store::open`] takes the owner's lock, brings the schema up to date and starts the writer and the readers. Each
//! method of the ports packs what it can on the caller's thread and sends the rest to the [`writer`], or asks
//! the [`readers`].

mod connection;
pub mod disk;
mod entries;
mod executions;
mod fault;
mod lease;
mod letters;
mod load;
mod lock;
pub mod migration;
pub mod own;
mod place;
mod plans;
mod readers;
mod request;
mod session;
mod writer;

use connection::File;
use disk::Space;
use executions::{More, NewExecution};
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
use tokio::sync::{mpsc, oneshot};
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
    /// New work is refused while less than this is free.
    pub free_bytes_min: u64,
    /// Kept back for outcomes when the disk is full.
    pub reserve_bytes: u64,
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Options {
    pub fn new(directory: impl Into<PathBuf>, clock: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Options {
        Options {
            directory: directory.into(),
            vfs: None,
            readers: 3,
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
#[derive(Debug)]
pub struct Store {
    /// `None` only while the store is being dropped.
    writes: Option<mpsc::Sender<Box<dyn Write>>>,
    readers: Option<Readers>,
    plans: Arc<Plans>,
    fence: Fence,
    threads: Vec<JoinHandle<()>>,
    _lock: OwnerLock,
}

impl Store {
    pub fn open(options: Options) -> Result<Store, Error> {
        let Options { directory, .. } = &options;
        std::fs::create_dir_all(directory)
            .map_err(|error| Error::Io(format!("{}: {error}", directory.display())))?;
        let lock = OwnerLock::take(&directory.join(LOCK))?;
        let file = File { path: directory.join(DATABASE), vfs: options.vfs };
        let mut connection = file.writer()?;
        connection::check_application(&connection, &file.path)?;
        migration::migrate(&mut connection, migration::ALL, (options.clock)())?;
        // What a dead process wrote may be in the log and not on disk; before anybody believes it, it must be.
        connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).map_err(fault::of)?;

        let fence = Fence::default();
        let (writes, requests) = mpsc::channel(writer::QUEUE_MAX);
        let writer = Writer {
            file: file.clone(),
            session: Session::new(connection),
            space: Space::new(directory, options.free_bytes_min, options.reserve_bytes),
            fence: Arc::clone(&fence),
            is_stale: false,
            requests,
            on_added: Box::new(|_, _| {}),
        };
        let no_thread = |error: std::io::Error| Error::Io(format!("no thread: {error}"));
        let (readers, mut threads) = Readers::start(&file, options.readers).map_err(no_thread)?;
        let writing = thread::Builder::new().name("rutter-write".to_owned()).spawn(move || writer.run());
        threads.push(writing.map_err(no_thread)?);
        let plans = Arc::default();
        Ok(Store { writes: Some(writes), readers: Some(readers), plans, fence, threads, _lock: lock })
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
            let (reply, answer) = oneshot::channel();
            let write: Box<dyn Write> = Box::new(Pending { work, outcome, given: None, reply });
            match outcome {
                true => writes.send(write).await.map_err(|_| Error::Closed)?,
                false => writes.try_send(write).map_err(|error| match error {
                    mpsc::error::TrySendError::Full(_) => Error::Overloaded,
                    mpsc::error::TrySendError::Closed(_) => Error::Closed,
                })?,
            }
            answer.await.map_err(|_| Error::Closed)?
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

impl Drop for Store {
    fn drop(&mut self) {
        (self.writes, self.readers) = (None, None);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
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
