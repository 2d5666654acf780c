//! An execution's journal in the hand of the one who may write it.

use crate::name;
use crate::options::WRITE_AGAIN;
use rutter_core::execution::row::Row;
use rutter_core::journal::chain::Chain;
use rutter_core::journal::event::Record;
use rutter_core::journal::payload::Salt;
use rutter_core::port::error::React;
use rutter_core::port::journal::{Append, Journal, Lease, Sealed};
use rutter_core::port::{self, Error};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(crate) struct Logbook {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) lease: Lease,
    pub(crate) chain: Chain,
}

impl Logbook {
    /// Appends, and goes on trying while only time or space is missing: what has happened must not be forgotten.
    pub(crate) async fn append(
        &mut self,
        records: &[Record],
        row: Row,
        (consumed, forgotten): (Vec<u64>, Vec<String>),
        give_up: &CancellationToken,
    ) -> Result<u64, port::Error> {
        let expected = self.chain.head();
        let entries = seal(&mut self.chain, records)?;
        let append = Append { lease: self.lease.clone(), expected, entries, row, consumed, forgotten };
        let mut unknown = 0;
        loop {
            let error = match self.journal.append(append.clone()).await {
                Ok(_) => return Ok(expected.seq),
                Err(error) => error,
            };
            match error.react() {
                React::Retry => tracing::warn!(
                    execution = %self.lease.identity.execution, error.code = error.code(), "{error}"
                ),
                // The same entries again are answered with "already", if they were written after all.
                React::Reload if matches!(error, Error::Unknown(_)) && unknown < 3 => unknown += 1,
                React::Reload | React::Refuse | React::Stop => return Err(error),
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(WRITE_AGAIN.0)) => {}
                () = give_up.cancelled() => return Err(error),
            }
        }
    }
}

pub(crate) fn seal(chain: &mut Chain, records: &[Record]) -> Result<Vec<Sealed>, port::Error> {
    let mut salts = || {
        let mut salt = [0; 16];
        name::fill(&mut salt);
        Salt(salt)
    };
    let sealed = records.iter().map(|record| Sealed::seal(chain, record, &mut salts));
    sealed.collect::<Result<_, _>>().map_err(|error| Error::Invalid(error.to_string()))
}
