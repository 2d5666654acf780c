//! The one thread that writes: whatever waits goes into one transaction, and is answered when that is on disk.
//!
//! A commit that fails may have happened. Then the file is opened anew and each request is made once more, alone:
//! all requests find out by themselves whether they were carried out already. After a failed sync nothing that
//! is found can be believed, so nothing is written until a restart.

use super::connection::{self, File};
use super::disk::Space;
use super::fault::{self, Kind};
use super::session::Session;
use rutter_core::port::Error;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot, watch};

/// More requests than this wait outside.
pub(super) const QUEUE_MAX: usize = 4_096;
/// Requests in one transaction. Large, so that a thousand writers share a sync.
const BATCH_MAX: usize = 4_096;
/// How often to look for the next request before going to sleep; about a hundred microseconds.
const SPINS: u32 = 5_000;
/// How long to wait for readers that need the log, when nothing else is to be done.
const TRUNCATE_AGAIN: Duration = Duration::from_millis(50);

/// Something to write. It may be attempted more than once and has one effect.
pub(super) trait Write: Send {
    /// Tries it in the transaction under way. `Err` is a failure of the store, not a refusal.
    fn attempt(&mut self, session: &mut Session) -> Result<(), Error>;
    /// Whether it records what has happened already, and so may use the last space there is.
    fn is_outcome(&self) -> bool;
    /// Tells whoever asked: what the attempt gave, or why there was none.
    fn answer(self: Box<Self>, failed: Option<Error>);
}

pub(super) struct Pending<T, F> {
    pub work: F,
    pub outcome: bool,
    pub given: Option<Result<T, Error>>,
    pub reply: oneshot::Sender<Result<T, Error>>,
}

impl<T: Send, F: FnMut(&mut Session) -> Result<T, Error> + Send> Write for Pending<T, F> {
    fn attempt(&mut self, session: &mut Session) -> Result<(), Error> {
        match (self.work)(session) {
            Err(error) if is_of_storage(&error) => Err(error),
            given => {
                self.given = Some(given);
                Ok(())
            }
        }
    }

    fn is_outcome(&self) -> bool {
        self.outcome
    }

    fn answer(self: Box<Self>, failed: Option<Error>) {
        let answer = failed.map(Err).or(self.given).unwrap_or(Err(Error::Closed));
        // Whoever asked may have gone; what was written is written.
        let _ = self.reply.send(answer);
    }
}

/// Whether the transaction is lost with it. Everything else is an answer to the caller.
fn is_of_storage(error: &Error) -> bool {
    matches!(
        error,
        Error::DiskFull(_) | Error::ReadOnly(_) | Error::Unknown(_) | Error::Corrupt(_) | Error::Io(_)
    )
}

/// Why nothing is written any more; seen by readers and by whoever asks how the store is.
pub(super) type Fence = Arc<Mutex<Option<Error>>>;

pub(super) struct Writer {
    pub file: File,
    pub session: Session,
    pub space: Space,
    pub fence: Fence,
    /// The connection failed and could not be opened again so far.
    pub is_stale: bool,
    pub requests: mpsc::Receiver<Box<dyn Write>>,
    /// Told how many entries were added to which tenant's ledger.
    pub on_added: Box<dyn Fn(i64, u64) + Send>,
    /// Moves when a ledger may have grown; whoever follows one looks then.
    pub grown: watch::Sender<()>,
}

/// A transaction that did not end well, and whether its commit had begun.
struct Failed {
    error: Error,
    kind: Kind,
    committing: bool,
}

impl Failed {
    /// A commit for which there was no room did not happen; about any other nobody knows.
    fn may_have_happened(&self) -> bool {
        self.committing && self.kind != Kind::Full
    }
}

const BEGIN: &str = "begin immediate";
const COMMIT: &str = "commit";
const TRUNCATE: &str = "pragma wal_checkpoint(truncate)";
/// Gives a commit something to sync, so that what was found before it is on disk after it.
const BARRIER: &str = "update tenant set epoch = epoch where number = (select min(number) from tenant)";

impl Writer {
    pub fn run(mut self) {
        while let Some(first) = self.next() {
            let mut batch = vec![first];
            while batch.len() < BATCH_MAX
                && let Ok(next) = self.requests.try_recv()
            {
                batch.push(next);
            }
            self.carry_out(batch);
        }
        // The last one out leaves one tidy file. If that fails, the next one in recovers.
        let _ = self.session.connection.query_row(TRUNCATE, [], |_| Ok(()));
    }

    /// Waits for a request. While readers keep the log from being emptied of what was erased, tries that again.
    fn next(&mut self) -> Option<Box<dyn Write>> {
        while self.session.log_holds_erased {
            match self.requests.try_recv() {
                Ok(write) => return Some(write),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => thread::sleep(TRUNCATE_AGAIN),
            }
            self.truncate_log();
        }
        // Whoever waits for an answer to ask the next thing does so in less time than it takes to fall asleep.
        for _ in 0..SPINS {
            match self.requests.try_recv() {
                Ok(write) => return Some(write),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
            }
        }
        self.requests.blocking_recv()
    }

    fn carry_out(&mut self, batch: Vec<Box<dyn Write>>) {
        if let Some(error) = self.fenced() {
            return batch.into_iter().for_each(|write| write.answer(Some(error.clone())));
        }
        let mut batch = self.space.admit(batch);
        let was_stale = self.is_stale;
        if let Err(error) = self.reopen_if_stale() {
            return batch.into_iter().for_each(|write| write.answer(Some(error.clone())));
        }
        match self.commit(&mut batch, was_stale) {
            Ok(()) => {
                self.truncate_log();
                // Before anybody is answered: whoever then closes the store must find everything counted for signing.
                self.tell_added();
                batch.into_iter().for_each(|write| write.answer(None));
            }
            Err(failed) => self.recover(batch, failed),
        }
    }

    fn commit(&mut self, batch: &mut [Box<dyn Write>], barrier: bool) -> Result<(), Failed> {
        let before = |error: Error| Failed { kind: kind_of(&error), error, committing: false };
        let begun = self.session.connection.execute_batch(BEGIN);
        begun.map_err(|error| before(fault::of(error)))?;
        for write in batch.iter_mut() {
            write.attempt(&mut self.session).map_err(before)?;
        }
        if barrier {
            self.session.execute(BARRIER, []).map_err(before)?;
        }
        let committed = self.session.connection.execute_batch(COMMIT);
        committed.map_err(|error| Failed {
            kind: fault::kind(&error),
            error: fault::of(error),
            committing: true,
        })
    }

    /// Empties the log if it may hold something that was erased, unless a reader needs it.
    fn truncate_log(&mut self) {
        if !self.session.log_holds_erased || self.fenced().is_some() {
            self.session.log_holds_erased = false;
            return;
        }
        let connection = &self.session.connection;
        let truncate = || -> rusqlite::Result<i64> {
            connection.busy_timeout(Duration::ZERO)?;
            let busy = connection.query_row(TRUNCATE, [], |row| row.get(0));
            connection.busy_timeout(connection::WAIT)?;
            busy
        };
        match truncate() {
            Ok(busy) => self.session.log_holds_erased = busy != 0,
            Err(error) if fault::kind(&error) == Kind::Sync => {
                self.set_fence(Error::ReadOnly("a sync failed; restart to go on".to_owned()));
            }
            // Whatever is wrong, the next transaction will meet it too.
            Err(_) => {}
        }
    }

    /// Finds out what became of a batch that failed, one request at a time.
    fn recover(&mut self, batch: Vec<Box<dyn Write>>, failed: Failed) {
        let mut failed = failed;
        self.give_up_transaction(&failed);
        for write in batch {
            let is_open = failed.may_have_happened();
            let blocked = self.fenced().or_else(|| self.is_stale.then(|| failed.error.clone()));
            let answer = match blocked {
                // What the failed commit held is unknown; what had not come that far is not there.
                Some(_) if is_open => Some(Error::Unknown(failed.error.to_string())),
                Some(error) => Some(error),
                None if self.space.refuses(&*write) && !failed.committing => Some(failed.error.clone()),
                None => {
                    let mut alone = [write];
                    let again = self.commit(&mut alone, true);
                    let [write] = alone;
                    match again {
                        Ok(()) => {
                            self.tell_added();
                            // What the failed commit had written after all is counted by nobody.
                            self.grown.send_replace(());
                            write.answer(None);
                        }
                        Err(again) => {
                            self.give_up_transaction(&again);
                            // Not even that it was there could be made sure.
                            write.answer(Some(match is_open || again.may_have_happened() {
                                true => Error::Unknown(again.error.to_string()),
                                false => again.error.clone(),
                            }));
                            // A later request of the batch may still be in the first commit.
                            failed.error = again.error;
                        }
                    }
                    continue;
                }
            };
            write.answer(answer);
        }
    }

    /// Tells whoever signs checkpoints, and whoever follows a ledger, what was written.
    fn tell_added(&mut self) {
        if self.session.added.is_empty() {
            return;
        }
        for (tenant, count) in self.session.added.drain() {
            (self.on_added)(tenant, count);
        }
        self.grown.send_replace(());
    }

    /// Leaves a failed transaction behind: by a fresh connection, or not at all.
    fn give_up_transaction(&mut self, failed: &Failed) {
        let _ = self.session.connection.execute_batch("rollback");
        self.session.forget();
        match failed.kind {
            Kind::Other => return,
            Kind::Full => self.space.ran_out(),
            Kind::Sync => {
                return self.set_fence(Error::ReadOnly("a sync failed; restart to go on".to_owned()));
            }
            Kind::Corrupt => return self.set_fence(failed.error.clone()),
            Kind::ReadOnly => return self.set_fence(failed.error.clone()),
            Kind::Io => {}
        }
        self.is_stale = true;
        // If it does not succeed, the next request tries again: a full disk may have room by then.
        let _ = self.reopen_if_stale();
    }

    fn reopen_if_stale(&mut self) -> Result<(), Error> {
        if !self.is_stale {
            return Ok(());
        }
        match self.file.writer() {
            Ok(connection) => {
                self.session = Session::new(connection);
                self.is_stale = false;
                Ok(())
            }
            Err(error @ (Error::Io(_) | Error::DiskFull(_))) => Err(error),
            Err(error) => {
                let reason = format!("the database cannot be opened again ({error}); restart to go on");
                self.set_fence(Error::ReadOnly(reason.clone()));
                Err(Error::ReadOnly(reason))
            }
        }
    }

    fn fenced(&self) -> Option<Error> {
        self.fence.lock().expect("nobody panics while holding the fence").clone()
    }

    fn set_fence(&self, error: Error) {
        *self.fence.lock().expect("nobody panics while holding the fence") = Some(error);
    }
}

/// The kind of a failure that has already been put into the port's words.
fn kind_of(error: &Error) -> Kind {
    match error {
        Error::DiskFull(_) => Kind::Full,
        Error::Unknown(_) => Kind::Sync,
        Error::Corrupt(_) => Kind::Corrupt,
        Error::ReadOnly(_) => Kind::ReadOnly,
        _ => Kind::Io,
    }
}
