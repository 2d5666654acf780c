//! The writer thread: all queued requests go into one transaction and are answered when it is on disk.
//!
//! A commit that fails may have taken effect. Then the file is reopened and each request is retried alone; each
//! finds out by itself whether it was already carried out. After a failed sync nothing that is read can be trusted,
//! so nothing is written until a restart.

use super::connection::{self, DatabaseFile};
use super::disk::DiskSpace;
use super::fault::{self, SqliteFaultKind};
use super::session::WriteSession;
use rutter_core::port::Error;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot, watch};

/// The capacity of the queue; beyond it outcomes wait and new work is refused.
pub(super) const QUEUE_MAX: usize = 4_096;
/// Requests in one transaction. Large, so that a thousand writers share a sync.
const BATCH_MAX: usize = 4_096;
/// How often to poll for the next request before blocking; about a hundred microseconds.
const SPINS: u32 = 5_000;
/// How long an idle writer waits before it tries again to empty a WAL that readers still need.
const TRUNCATE_AGAIN: Duration = Duration::from_millis(50);

/// A write request. It may be attempted more than once and takes effect once.
pub(super) trait WriteJob: Send {
    /// Attempts it in the open transaction. `Err` is a failure of the store, not a refusal.
    fn attempt(&mut self, session: &mut WriteSession) -> Result<(), Error>;
    /// Whether it records something that already happened, and so may use the last free space.
    fn is_outcome(&self) -> bool;
    /// Answers the caller with the result of the attempt, or with the error that prevented it.
    fn answer(self: Box<Self>, failed: Option<Error>);
}

pub(super) struct PendingWrite<T, F> {
    pub work: F,
    pub outcome: bool,
    pub given: Option<Result<T, Error>>,
    pub reply: oneshot::Sender<Result<T, Error>>,
}

impl<T: Send, F: FnMut(&mut WriteSession) -> Result<T, Error> + Send> WriteJob for PendingWrite<T, F> {
    fn attempt(&mut self, session: &mut WriteSession) -> Result<(), Error> {
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
        // The caller may have gone; the write stands.
        let _ = self.reply.send(answer);
    }
}

/// Whether the error ends the transaction. Any other error is an answer to the caller.
fn is_of_storage(error: &Error) -> bool {
    matches!(error, Error::DiskFull(_) | Error::ReadOnly(_) | Error::Unknown(_) | Error::Corrupt(_) | Error::Io(_))
}

/// Why writing has stopped; shared with the store, which reports it.
pub(super) type WriteFence = Arc<Mutex<Option<Error>>>;

pub(super) struct DatabaseWriter {
    pub file: DatabaseFile,
    pub session: WriteSession,
    pub space: DiskSpace,
    pub fence: WriteFence,
    /// The connection failed and could not be opened again so far.
    pub is_stale: bool,
    pub requests: mpsc::Receiver<Box<dyn WriteJob>>,
    /// Called with a tenant's number and how many entries were added to its ledger.
    pub on_added: Box<dyn Fn(i64, u64) + Send>,
    /// Notified when a ledger may have grown; wakes its followers.
    pub grown: watch::Sender<()>,
}

/// A failed transaction, and whether its commit had begun.
struct FailedTransaction {
    error: Error,
    kind: SqliteFaultKind,
    committing: bool,
}

impl FailedTransaction {
    /// A commit that failed for lack of space did not happen; the outcome of any other is unknown.
    fn may_have_happened(&self) -> bool {
        self.committing && self.kind != SqliteFaultKind::Full
    }
}

const BEGIN: &str = "begin immediate";
const COMMIT: &str = "commit";
const TRUNCATE: &str = "pragma wal_checkpoint(truncate)";
/// Gives a commit something to sync, so that what the transaction has read is on disk after it.
const BARRIER: &str = "update tenant set epoch = epoch where number = (select min(number) from tenant)";

impl DatabaseWriter {
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
        // Leaves a single file. If that fails, the next process recovers the WAL.
        let _ = self.session.connection.query_row(TRUNCATE, [], |_| Ok(()));
    }

    /// Waits for a request. While readers keep erased content in the WAL, tries again to empty it.
    fn next(&mut self) -> Option<Box<dyn WriteJob>> {
        while self.session.log_holds_erased {
            match self.requests.try_recv() {
                Ok(write) => return Some(write),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => thread::sleep(TRUNCATE_AGAIN),
            }
            self.truncate_log();
        }
        // A caller that waits for an answer sends its next request sooner than this thread could block and wake.
        for _ in 0..SPINS {
            match self.requests.try_recv() {
                Ok(write) => return Some(write),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
            }
        }
        self.requests.blocking_recv()
    }

    fn carry_out(&mut self, batch: Vec<Box<dyn WriteJob>>) {
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
                // Before any answer: a caller may then close the store, and every entry must be counted for signing.
                self.tell_added();
                batch.into_iter().for_each(|write| write.answer(None));
            }
            Err(failed) => self.recover(batch, failed),
        }
    }

    fn commit(&mut self, batch: &mut [Box<dyn WriteJob>], barrier: bool) -> Result<(), FailedTransaction> {
        let before = |error: Error| FailedTransaction { kind: kind_of(&error), error, committing: false };
        let begun = self.session.connection.execute_batch(BEGIN);
        begun.map_err(|error| before(fault::of(error)))?;
        for write in batch.iter_mut() {
            write.attempt(&mut self.session).map_err(before)?;
        }
        if barrier {
            self.session.execute(BARRIER, []).map_err(before)?;
        }
        let committed = self.session.connection.execute_batch(COMMIT);
        committed.map_err(|error| FailedTransaction {
            kind: fault::kind(&error),
            error: fault::of(error),
            committing: true,
        })
    }

    /// Empties the WAL if it may hold erased content, unless a reader needs it.
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
            Err(error) if fault::kind(&error) == SqliteFaultKind::Sync => {
                self.set_fence(Error::ReadOnly("a sync failed; restart to go on".to_owned()));
            }
            // The next transaction will report the error.
            Err(_) => {}
        }
    }

    /// Retries a failed batch, one request at a time.
    fn recover(&mut self, batch: Vec<Box<dyn WriteJob>>, failed: FailedTransaction) {
        let mut failed = failed;
        self.give_up_transaction(&failed);
        for write in batch {
            let is_open = failed.may_have_happened();
            let blocked = self.fenced().or_else(|| self.is_stale.then(|| failed.error.clone()));
            let answer = match blocked {
                // If the commit had begun, its outcome is unknown; otherwise nothing was written.
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
                            // Entries that the failed commit did write are in no count.
                            self.grown.send_replace(());
                            write.answer(None);
                        }
                        Err(again) => {
                            self.give_up_transaction(&again);
                            // It is not even certain whether it was already written.
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

    /// Notifies the signing thread and the followers of the ledgers.
    fn tell_added(&mut self) {
        if self.session.added.is_empty() {
            return;
        }
        for (tenant, count) in self.session.added.drain() {
            (self.on_added)(tenant, count);
        }
        self.grown.send_replace(());
    }

    /// Abandons a failed transaction: opens a fresh connection, or stops writing.
    fn give_up_transaction(&mut self, failed: &FailedTransaction) {
        let _ = self.session.connection.execute_batch("rollback");
        self.session.forget();
        match failed.kind {
            SqliteFaultKind::Other => return,
            SqliteFaultKind::Full => self.space.ran_out(),
            SqliteFaultKind::Sync => {
                return self.set_fence(Error::ReadOnly("a sync failed; restart to go on".to_owned()));
            }
            SqliteFaultKind::Corrupt => return self.set_fence(failed.error.clone()),
            SqliteFaultKind::ReadOnly => return self.set_fence(failed.error.clone()),
            SqliteFaultKind::Io => {}
        }
        self.is_stale = true;
        // If this fails, the next request tries again: a full disk may have space by then.
        let _ = self.reopen_if_stale();
    }

    fn reopen_if_stale(&mut self) -> Result<(), Error> {
        if !self.is_stale {
            return Ok(());
        }
        match self.file.writer() {
            Ok(connection) => {
                // What was erased may still be in the log, which must be cut all the same.
                let log_holds_erased = self.session.log_holds_erased;
                self.session = WriteSession::new(connection);
                self.session.log_holds_erased = log_holds_erased;
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
        self.fence.lock().expect("no panic while the fence is held").clone()
    }

    fn set_fence(&self, error: Error) {
        *self.fence.lock().expect("no panic while the fence is held") = Some(error);
    }
}

/// The kind of a failure that was already converted to the port's error.
fn kind_of(error: &Error) -> SqliteFaultKind {
    match error {
        Error::DiskFull(_) => SqliteFaultKind::Full,
        Error::Unknown(_) => SqliteFaultKind::Sync,
        Error::Corrupt(_) => SqliteFaultKind::Corrupt,
        Error::ReadOnly(_) => SqliteFaultKind::ReadOnly,
        _ => SqliteFaultKind::Io,
    }
}
