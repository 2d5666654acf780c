//! Following a ledger as it grows: entries in their order, and a notification when there are more.

use super::position::EntryPosition;
use super::query::{number_of, size_of_page};
use super::session::{hash_of, size_of};
use super::{SqliteStore, fault, refused};
use crate::compress;
use rusqlite::{Connection, params};
use rutter_core::id::TenantId;
use rutter_core::journal::codec;
use rutter_core::limits::ENTRY_BYTES_MAX;
use rutter_core::port::feed::{FeedBatch, FeedEntry, LedgerFeed};
use rutter_core::port::{Error, StoreFuture};

/// Positions scanned in one read: a ledger that was cleaned up may have long gaps.
const LOOKED_AT_MAX: u64 = 20_000;
/// A batch ends when its entries have more bytes than this together.
const STRETCH_BYTES_MAX: usize = 16 << 20;

pub(super) const ENTRIES: &str = "
    select place, hash, bytes
    from entry
    where place between ?1 and ?2 and bytes is not null
    order by place
    limit ?3";

impl LedgerFeed for SqliteStore {
    fn entries_after(&self, tenant: &TenantId, place: u64, limit: u32) -> StoreFuture<'_, FeedBatch> {
        let tenant = tenant.clone();
        match size_of_page(limit) {
            Ok(limit) => self.read(move |connection| after(connection, &tenant, place, limit)),
            Err(error) => refused(error),
        }
    }

    fn wait_beyond(&self, tenant: &TenantId, place: u64) -> StoreFuture<'_, u64> {
        let (tenant, mut grown) = (tenant.clone(), self.grown.clone());
        Box::pin(async move {
            loop {
                // Before the size is read: a write from now on wakes the wait below.
                grown.mark_unchanged();
                let size = self.size(&tenant).await?;
                if size > place {
                    return Ok(size);
                }
                grown.changed().await.map_err(|_| Error::Closed)?;
            }
        })
    }

    fn size(&self, tenant: &TenantId) -> StoreFuture<'_, u64> {
        let tenant = tenant.clone();
        self.read(move |connection| match number_of(connection, &tenant)? {
            Some(number) => size_of(connection, number).map_err(fault::of),
            None => Ok(0),
        })
    }
}

fn after(connection: &mut Connection, tenant: &TenantId, place: u64, limit: usize) -> Result<FeedBatch, Error> {
    // One transaction: nothing may be added between the entries and the size.
    let connection = connection.transaction().map_err(fault::of)?;
    let nothing = FeedBatch { items: Vec::new(), until: place };
    let Some(number) = number_of(&connection, tenant)? else { return Ok(nothing) };
    let size = size_of(&connection, number).map_err(fault::of)?;
    if place >= size {
        return Ok(nothing);
    }
    // The n-th entry is leaf n - 1, so the one after position n is leaf n.
    let end = size.min(place.saturating_add(LOOKED_AT_MAX));
    let (first, last) = (EntryPosition::new(number, place)?, EntryPosition::new(number, end - 1)?);
    let mut statement = connection.prepare_cached(ENTRIES).map_err(fault::of)?;
    let mut rows = statement.query(params![first.number(), last.number(), limit as i64]).map_err(fault::of)?;
    let (mut items, mut bytes_sum) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(fault::of)? {
        let (placed, bytes) = placed(row)?;
        bytes_sum += bytes;
        items.push(placed);
        if items.len() == limit || bytes_sum > STRETCH_BYTES_MAX {
            let until = items.last().map_or(end, |last| last.position);
            return Ok(FeedBatch { items, until });
        }
    }
    Ok(FeedBatch { items, until: end })
}

/// An entry with its position, and its length in bytes.
fn placed(row: &rusqlite::Row<'_>) -> Result<(FeedEntry, usize), Error> {
    let get = || -> rusqlite::Result<_> {
        Ok((row.get::<_, i64>(0)?, row.get_ref(1)?.as_blob()?, row.get_ref(2)?.as_blob()?))
    };
    let (place, hash, packed) = get().map_err(fault::of)?;
    let place = EntryPosition::from(place).leaf() + 1;
    let damaged = |why: &dyn std::fmt::Display| Error::Corrupt(format!("entry at position {place}: {why}"));
    let bytes = compress::unpack_entry(packed, ENTRY_BYTES_MAX).map_err(|error| damaged(&error))?;
    let stored = codec::decode(&bytes).map_err(|error| damaged(&error))?;
    Ok((FeedEntry { position: place, hash: hash_of(hash)?, stored }, bytes.len()))
}

#[cfg(test)]
mod tests;
