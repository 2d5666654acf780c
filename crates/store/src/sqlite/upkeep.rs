//! Erasing payloads and removing executions. Content is overwritten in the database and in its WAL; every hash stays.

pub(super) mod clean;
mod erase;

use super::query::number_of;
use super::{SqliteStore, plan_state, refused};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::limits::REASON_BYTES_MAX;
use rutter_core::port::upkeep::{
    CleanedPart, CleanedTotals, CleaningRequest, ErasedTotals, ErasureRequest, StoreMaintenance,
};
use rutter_core::port::{Error, StoreFuture};
use std::sync::Arc;

impl StoreMaintenance for SqliteStore {
    // Erasing frees space, so it may use the last free space.
    fn erase(&self, erasure: ErasureRequest) -> StoreFuture<'_, ErasedTotals> {
        if let Err(error) = check_reason(&erasure.reason) {
            return refused(error);
        }
        let mut before = None;
        self.write(true, move |session| erase::erase(session, &erasure, &mut before))
    }

    /// A loop of short writes: other writes run in between, and dropping the future stops it.
    fn clean(&self, cleaning: CleaningRequest) -> StoreFuture<'_, CleanedTotals> {
        let statuses = match statuses(&cleaning) {
            Ok(statuses) => statuses,
            Err(error) => return refused(error),
        };
        let cleaning = Arc::new(cleaning);
        Box::pin(async move {
            let asked = Arc::clone(&cleaning);
            let tenant = self.read(move |connection| number_of(connection, &asked.tenant)).await?;
            let Some(tenant) = tenant else { return Ok(CleanedTotals::default()) };
            let mut sum = CleanedTotals::default();
            for status in statuses {
                let mut after = clean::BEGINNING;
                loop {
                    let asked = clean::CleaningScope { cleaning: Arc::clone(&cleaning), tenant, status };
                    let batch = self.read(move |connection| clean::next(connection, asked, after)).await?;
                    let Some(batch) = batch else { break };
                    after = batch.last;
                    add(&mut sum, self.clean_batch(batch).await?);
                }
            }
            if cleaning.what == CleanedPart::Executions && !cleaning.dry_run {
                let at = cleaning.at;
                while self.write(true, move |session| clean::forget_requests(session, tenant, at)).await? {}
                self.write(true, move |session| plan_state::remove_unused(session, tenant)).await?;
                let mut is_first = true;
                while sum.executions > 0
                    && self.write(true, move |session| clean::merge_words(session, is_first)).await?
                {
                    is_first = false;
                }
            }
            Ok(sum)
        })
    }
}

impl SqliteStore {
    fn clean_batch(&self, batch: clean::CleaningBatch) -> StoreFuture<'_, CleanedTotals> {
        let mut before = None;
        match batch.asked.cleaning.dry_run {
            true => self.read(move |connection| clean::measure(connection, &batch)),
            false => self.write(true, move |session| clean::clean(session, &batch, &mut before)),
        }
    }
}

pub(super) fn check_reason(reason: &str) -> Result<(), Error> {
    let (max, found) = (REASON_BYTES_MAX as u64, reason.len() as u64);
    match found > max {
        true => Err(Error::Limit { limit: "reason_bytes_max", max, found }),
        false => Ok(()),
    }
}

/// The statuses to clean; an open execution is never one of them.
fn statuses(cleaning: &CleaningRequest) -> Result<Vec<ExecutionStatus>, Error> {
    check_reason(&cleaning.reason)?;
    if let Some(open) = cleaning.statuses.iter().find(|status| !status.has_ended()) {
        let open = open.as_str();
        return Err(Error::Invalid(format!("executions that are {open} have not ended and cannot be cleaned up")));
    }
    let all = ExecutionStatus::ALL.into_iter().filter(|status| status.has_ended());
    Ok(all.filter(|status| cleaning.statuses.is_empty() || cleaning.statuses.contains(status)).collect())
}

fn add(sum: &mut CleanedTotals, more: CleanedTotals) {
    sum.executions += more.executions;
    sum.entries += more.entries;
    sum.payloads += more.payloads;
    sum.bytes += more.bytes;
}
