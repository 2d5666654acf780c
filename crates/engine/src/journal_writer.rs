//! Appending to the journal of one execution, under its lease.

use crate::name;
use crate::options::WRITE_AGAIN;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::port::error::ErrorReaction;
use rutter_core::port::journal::{AppendRequest, Journal, Lease, SealedEntry};
use rutter_core::port::{self, Error};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(crate) struct JournalWriter {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) lease: Lease,
    pub(crate) chain: HashChain,
}

impl JournalWriter {
    /// Appends, and retries while the store is busy or full: what has happened must be recorded.
    pub(crate) async fn append(
        &mut self,
        records: &[EventRecord],
        row: ExecutionProjection,
        (consumed, forgotten): (Vec<u64>, Vec<String>),
        give_up: &CancellationToken,
    ) -> Result<u64, port::Error> {
        let expected = self.chain.head();
        let entries = seal(&mut self.chain, records)?;
        let append = AppendRequest {
            lease: self.lease.clone(),
            expected,
            entries,
            row,
            decided_commands: consumed,
            refused_keys: forgotten,
        };
        let mut unknown = 0;
        loop {
            let error = match self.journal.append(append.clone()).await {
                Ok(_) => return Ok(expected.seq),
                Err(error) => error,
            };
            match error.reaction() {
                ErrorReaction::Retry => tracing::warn!(
                    execution = %self.lease.identity.execution, error.code = error.code(), "{error}"
                ),
                // If the entries were written after all, appending them again returns "already".
                ErrorReaction::Reload if matches!(error, Error::Unknown(_)) && unknown < 3 => unknown += 1,
                ErrorReaction::Reload | ErrorReaction::Refuse | ErrorReaction::Stop => return Err(error),
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(WRITE_AGAIN.0)) => {}
                () = give_up.cancelled() => return Err(error),
            }
        }
    }
}

pub(crate) fn seal(chain: &mut HashChain, records: &[EventRecord]) -> Result<Vec<SealedEntry>, port::Error> {
    let mut salts = || {
        let mut salt = [0; 16];
        name::fill(&mut salt);
        PayloadSalt(salt)
    };
    let sealed = records.iter().map(|record| SealedEntry::seal(chain, record, &mut salts));
    sealed.collect::<Result<_, _>>().map_err(|error| Error::Invalid(error.to_string()))
}
