//! Cleaning up a batch of executions that ended long ago.

use super::super::executions::count;
use super::super::payloads::{self, StoredPayload};
use super::super::query::CursorKey;
use super::super::session::{WriteSession, hash_of};
use super::super::{fault, own};
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::hash::Hash;
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::{Event, EventRecord, RemovedExecution};
use rutter_core::port::Error;
use rutter_core::port::upkeep::{CleanedPart, CleanedTotals, CleaningRequest};
use rutter_core::time::{Millis, Timestamp};
use std::sync::Arc;

/// The most executions in one transaction, and the most entries.
const BATCH_MAX: usize = 100;
const BATCH_ENTRIES_MAX: u64 = 10_000;
/// How long the key of a request is remembered.
const REQUESTS_RETENTION: Millis = Millis::hours(24 * 30);
const REQUESTS_BATCH_MAX: usize = 1_000;
/// Pages of the text index that are rewritten in one transaction.
const MERGE_PAGES: i64 = 500;

/// What to clean, of one status.
#[derive(Clone, Debug)]
pub(super) struct CleaningScope {
    pub cleaning: Arc<CleaningRequest>,
    pub tenant: i64,
    pub status: ExecutionStatus,
}

#[derive(Debug)]
pub(super) struct CleaningBatch {
    pub asked: CleaningScope,
    executions: Vec<i64>,
    /// The key after which the next batch begins.
    pub last: CursorKey,
}

pub(super) const BEGINNING: CursorKey = (i64::MIN, i64::MIN);

/// `opened_at` only bounds the index: an execution untouched since a time was not opened since then either.
pub(in crate::sqlite) const NEXT: &str = "
    select execution.number, execution.opened_at, execution.seq
    from execution indexed by execution_status
    left join worker on worker.number = execution.owner
    where execution.tenant = ?1 and execution.status = ?2 and execution.opened_at < ?3
        and (execution.opened_at, execution.number) > (?4, ?5)
        and execution.last_at < ?3
        and execution.commands = 0 and (worker.number is null or worker.until < ?6)
    order by execution.opened_at, execution.number
    limit ?7";

/// Finds the next executions to clean; those with a live lease or pending commands are left alone.
pub(super) fn next(
    connection: &Connection,
    asked: CleaningScope,
    after: CursorKey,
) -> Result<Option<CleaningBatch>, Error> {
    let CleaningScope { cleaning, tenant, status } = &asked;
    let (since, now) = (cleaning.untouched_since.0, cleaning.at.0);
    let found = || -> rusqlite::Result<Vec<(i64, i64, u64)>> {
        let mut statement = connection.prepare_cached(NEXT)?;
        let bounds = params![tenant, status.as_str(), since, after.0, after.1, now, BATCH_MAX as i64];
        let rows = statement.query_map(bounds, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect()
    };
    let (mut executions, mut last, mut entries) = (Vec::new(), after, 0);
    for (number, opened_at, seq) in found().map_err(fault::of)? {
        entries += seq;
        if entries > BATCH_ENTRIES_MAX && !executions.is_empty() {
            break;
        }
        executions.push(number);
        last = (opened_at, number);
    }
    Ok((!executions.is_empty()).then_some(CleaningBatch { asked, executions, last }))
}

/// An execution to remove, or whose payloads are to be erased.
struct ExpiredExecution {
    number: i64,
    id: ExecutionId,
    entries: u64,
    head: Hash,
    payloads: Vec<StoredPayload>,
}

pub(in crate::sqlite) const STILL: &str = "
    select execution.id, execution.seq, execution.head
    from execution
    left join worker on worker.number = execution.owner
    where execution.number = ?1 and execution.status = ?2 and execution.last_at < ?3
        and execution.commands = 0 and (worker.number is null or worker.until < ?4)";

/// Checks each execution of a batch again: it may have changed since it was found.
fn leaving(connection: &Connection, batch: &CleaningBatch) -> Result<Vec<ExpiredExecution>, Error> {
    let CleaningBatch { asked, executions, .. } = batch;
    let CleaningScope { cleaning, status, .. } = asked;
    let mut leaving = Vec::new();
    for number in executions {
        let bounds = params![number, status.as_str(), cleaning.untouched_since.0, cleaning.at.0];
        let still: Option<(String, u64, Vec<u8>)> = connection
            .prepare_cached(STILL)
            .and_then(|mut statement| {
                let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                statement.query_row(bounds, read).optional()
            })
            .map_err(fault::of)?;
        let Some((id, entries, head)) = still else { continue };
        let payloads = payloads::of_execution(connection, *number, None)?;
        if cleaning.what == CleanedPart::Executions || !payloads.is_empty() {
            let (id, head) = (ExecutionId::new(&id), hash_of(&head)?);
            leaving.push(ExpiredExecution { number: *number, id, entries, head, payloads });
        }
    }
    Ok(leaving)
}

fn sum(leaving: &[ExpiredExecution], what: CleanedPart) -> CleanedTotals {
    leaving.iter().fold(CleanedTotals::default(), |sum, one| CleanedTotals {
        executions: sum.executions + 1,
        entries: sum.entries + if what == CleanedPart::Executions { one.entries } else { 0 },
        payloads: sum.payloads + one.payloads.len() as u64,
        bytes: sum.bytes + one.payloads.iter().map(|payload| payload.bytes).sum::<u64>(),
    })
}

/// What cleaning the batch would remove.
pub(super) fn measure(connection: &Connection, batch: &CleaningBatch) -> Result<CleanedTotals, Error> {
    Ok(sum(&leaving(connection, batch)?, batch.asked.cleaning.what))
}

/// Cleans a batch up and records it. `before` is what an earlier try did, as in [`super::erase::erase`].
pub(super) fn clean(
    session: &mut WriteSession,
    batch: &CleaningBatch,
    before: &mut Option<CleanedTotals>,
) -> Result<CleanedTotals, Error> {
    let CleaningScope { cleaning, tenant, status } = &batch.asked;
    session.log_holds_erased = true;
    let leaving = leaving(&session.connection, batch)?;
    if leaving.is_empty() {
        return Ok(before.unwrap_or_default());
    }
    let cleaned = sum(&leaving, cleaning.what);
    *before = Some(cleaned);
    let reason = || cleaning.reason.clone();
    let mut events = Vec::new();
    for one in &leaving {
        payloads::forget(session, &one.payloads)?;
        match cleaning.what {
            CleanedPart::Payloads => {
                let (execution, payloads) = (one.id.clone(), one.payloads.len() as u64);
                events.push(Event::PayloadsErased { execution, payloads, reason: reason() });
            }
            CleanedPart::Executions => {
                remove(session, one)?;
                count(session, *tenant, status.as_str(), -1)?;
            }
        }
    }
    if cleaning.what == CleanedPart::Executions {
        let gone = leaving.into_iter();
        let gone = gone.map(|one| RemovedExecution { execution: one.id, entries: one.entries, head: one.head });
        events.push(Event::ExecutionsRemoved { executions: gone.collect(), reason: reason() });
    }
    for event in events {
        let record = EventRecord { at: cleaning.at, actor: cleaning.actor.clone(), event };
        own::record(session, *tenant, &cleaning.tenant, &record)?;
    }
    Ok(cleaned)
}

pub(in crate::sqlite) const UNINDEX: &str = "
    delete from entry_text
    where rowid in (select place from entry where execution = ?1)";
pub(in crate::sqlite) const HASHES_ONLY: &str = "
    update entry
    set execution = null, seq = null, tenant = null, at = null, kind = null, actor = null, bytes = null
    where execution = ?1";
pub(in crate::sqlite) const UNTAG: &str = "delete from execution_tag where execution = ?1";
const REMOVE: &str = "delete from execution where number = ?1";

/// Removes everything but the hashes: they are the leaves of the ledger's tree.
fn remove(session: &WriteSession, one: &ExpiredExecution) -> Result<(), Error> {
    for sql in [UNINDEX, HASHES_ONLY, UNTAG, REMOVE] {
        session.execute(sql, [one.number])?;
    }
    Ok(())
}

pub(in crate::sqlite) const OLD_REQUESTS: &str = "
    delete from request
    where tenant = ?1 and key in (
        select key
        from request indexed by request_at
        where tenant = ?1 and at < ?2
        limit ?3)";

/// Deletes some expired request keys; returns whether there may be more.
pub(super) fn forget_requests(session: &WriteSession, tenant: i64, now: Timestamp) -> Result<bool, Error> {
    let oldest = now.0.saturating_sub_unsigned(REQUESTS_RETENTION.0);
    let gone = session.execute(OLD_REQUESTS, params![tenant, oldest, REQUESTS_BATCH_MAX as i64])?;
    Ok(gone == REQUESTS_BATCH_MAX)
}

const MERGE: &str = "insert into entry_text (entry_text, rank) values ('merge', ?1)";
const MERGE_PLANS: &str = "insert into plan_text (plan_text, rank) values ('merge', ?1)";

/// Rewrites some pages of the text index, which only marks words as removed; returns whether there is more to do.
pub(super) fn merge_words(session: &mut WriteSession, is_first: bool) -> Result<bool, Error> {
    merge(session, MERGE, is_first)
}

/// Rewrites the whole text index of plans, which is small beside that of entries.
pub(in crate::sqlite) fn merge_plan_words(session: &mut WriteSession) -> Result<(), Error> {
    let mut is_first = true;
    while merge(session, MERGE_PLANS, is_first)? {
        is_first = false;
    }
    Ok(())
}

fn merge(session: &mut WriteSession, sql: &str, is_first: bool) -> Result<bool, Error> {
    session.log_holds_erased = true;
    let before = session.connection.total_changes();
    // A negative number begins a merge of the whole index, a positive one continues it.
    session.execute(sql, [if is_first { -MERGE_PAGES } else { MERGE_PAGES }])?;
    // The command itself counts as one change.
    Ok(session.connection.total_changes() - before >= 2)
}
