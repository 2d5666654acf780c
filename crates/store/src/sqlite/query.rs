//! Queries. Each list takes two steps: the keys of a page, read along one index in its order, and then the row of
//! each key.
//!
//! A statement is assembled from fixed pieces: a leading one, which names its index, and conditions on its rows. The
//! number of steps of a query is limited, so that none keeps a reader busy for long.

mod cursor;
mod entries;
mod executions;
mod plans;
mod search;
mod select;
#[cfg(test)]
mod tests;

use super::ledger::LedgerRow;
use super::plans::PlanCache;
use super::session::{self, one};
use super::{SqliteStore, fault, refused};
pub(super) use cursor::{CursorKey, ListKind, ListPaging, size_of_page};
use rusqlite::Connection;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::port::query::{
    EntryFilter, EntrySummary, ExecutionFilter, ExecutionSummary, KnownRequest, ListPage, Pagination, PlanFilter,
    PlanSummary, SavedPlan, StoreQuery, StoreTotals,
};
use rutter_core::port::{Error, StoreFuture};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most steps of SQLite's virtual machine for one query; about a second.
pub(super) const STEPS_MAX: u64 = 20_000_000;
const ARCHIVE_STEPS_MAX: u64 = 50 * STEPS_MAX;
/// Steps between two checks of the limit.
const STEPS_BETWEEN: u64 = 1_000;

impl StoreQuery for SqliteStore {
    fn execution(&self, identity: &ExecutionIdentity) -> StoreFuture<'_, Option<ExecutionSummary>> {
        let identity = identity.clone();
        self.look(move |connection| executions::find(connection, &identity))
    }

    fn executions(
        &self,
        tenant: &TenantId,
        filter: ExecutionFilter,
        page: Pagination,
    ) -> StoreFuture<'_, ListPage<ExecutionSummary>> {
        let tenant = tenant.clone();
        let wanted = ListPaging::read(ListKind::Executions, &page)
            .and_then(|paging| Ok((paging, search::read(filter.text.as_deref())?)));
        match wanted {
            Ok((paging, words)) => self.look(move |connection| match number_of(connection, &tenant)? {
                Some(tenant) => executions::list(connection, tenant, &filter, words.as_ref(), paging),
                None => Ok(nothing()),
            }),
            Err(error) => refused(error),
        }
    }

    fn entries(
        &self,
        tenant: &TenantId,
        filter: EntryFilter,
        page: Pagination,
    ) -> StoreFuture<'_, ListPage<EntrySummary>> {
        let (tenant, plans) = (tenant.clone(), Arc::clone(&self.plans));
        match entries::EntrySelection::read(filter, &page) {
            Ok(wanted) => self.look(move |connection| match number_of(connection, &tenant)? {
                Some(number) => entries::list(connection, (number, &tenant), &wanted, &plans),
                None => Ok(nothing()),
            }),
            Err(error) => refused(error),
        }
    }

    fn plan(&self, tenant: &TenantId, id: &PlanId, revision: Option<u32>) -> StoreFuture<'_, Option<SavedPlan>> {
        let (tenant, id, plans) = (tenant.clone(), id.clone(), Arc::clone(&self.plans));
        self.look(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => plans::find(connection, tenant, &id, revision, &plans),
            None => Ok(None),
        })
    }

    fn plan_of(&self, execution: &ExecutionIdentity, revision: u32) -> StoreFuture<'_, Option<SavedPlan>> {
        let (identity, plans) = (execution.clone(), Arc::clone(&self.plans));
        self.look(move |connection| match number_of(connection, &identity.tenant)? {
            Some(tenant) => plans::of_execution(connection, tenant, &identity.execution, revision, &plans),
            None => Ok(None),
        })
    }

    fn plans(&self, tenant: &TenantId, filter: PlanFilter, page: Pagination) -> StoreFuture<'_, ListPage<PlanSummary>> {
        let tenant = tenant.clone();
        let wanted = ListPaging::read(ListKind::Plans, &page)
            .and_then(|paging| Ok((paging, search::read(filter.text.as_deref())?)));
        match wanted {
            Ok((paging, words)) => self.look(move |connection| match number_of(connection, &tenant)? {
                Some(tenant) => plans::list(connection, tenant, &filter, words.as_ref(), paging),
                None => Ok(nothing()),
            }),
            Err(error) => refused(error),
        }
    }

    fn request(&self, tenant: &TenantId, key: &str) -> StoreFuture<'_, Option<KnownRequest>> {
        let (tenant, key) = (tenant.clone(), key.to_owned());
        self.look(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => super::request::known(connection, tenant, &key),
            None => Ok(None),
        })
    }

    fn ledger_tenants(&self) -> StoreFuture<'_, Vec<TenantId>> {
        self.look(|connection| Ok(LedgerRow::all(connection)?.into_iter().map(|ledger| ledger.tenant).collect()))
    }

    fn totals(&self, tenant: &TenantId) -> StoreFuture<'_, StoreTotals> {
        let tenant = tenant.clone();
        self.look(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => totals(connection, tenant),
            None => Ok(StoreTotals::default()),
        })
    }
}

/// The row of one execution.
pub(super) fn execution(
    connection: &mut Connection,
    identity: &ExecutionIdentity,
) -> Result<Option<ExecutionSummary>, Error> {
    executions::find(connection, identity)
}

/// Lists executions for an archive.
pub(super) fn executions(
    connection: &mut Connection,
    tenant: &TenantId,
    filter: &ExecutionFilter,
    page: &Pagination,
) -> Result<ListPage<ExecutionSummary>, Error> {
    let (paging, words) = (ListPaging::read(ListKind::Executions, page)?, search::read(filter.text.as_deref())?);
    let find = |connection: &Connection| match number_of(connection, tenant)? {
        Some(tenant) => executions::list(connection, tenant, filter, words.as_ref(), paging),
        None => Ok(nothing()),
    };
    bounded(connection, ARCHIVE_STEPS_MAX, find)
}

/// Finds one revision of a plan for an archive.
pub(super) fn plan(
    connection: &mut Connection,
    tenant: &TenantId,
    id: &PlanId,
    revision: Option<u32>,
    plans: &PlanCache,
) -> Result<Option<SavedPlan>, Error> {
    bounded(connection, ARCHIVE_STEPS_MAX, |connection: &Connection| match number_of(connection, tenant)? {
        Some(tenant) => plans::find(connection, tenant, id, revision, plans),
        None => Ok(None),
    })
}

/// Lists plans for an archive.
pub(super) fn plans(
    connection: &mut Connection,
    tenant: &TenantId,
    filter: &PlanFilter,
    page: &Pagination,
) -> Result<ListPage<PlanSummary>, Error> {
    let (paging, words) = (ListPaging::read(ListKind::Plans, page)?, search::read(filter.text.as_deref())?);
    let find = |connection: &Connection| match number_of(connection, tenant)? {
        Some(tenant) => plans::list(connection, tenant, filter, words.as_ref(), paging),
        None => Ok(nothing()),
    };
    bounded(connection, ARCHIVE_STEPS_MAX, find)
}

/// Lists entries for an archive. No other query waits for that reader, so it may take more steps.
pub(super) fn entries(
    connection: &mut Connection,
    tenant: &TenantId,
    filter: EntryFilter,
    page: &Pagination,
    plans: &PlanCache,
) -> Result<ListPage<EntrySummary>, Error> {
    let wanted = entries::EntrySelection::read(filter, page)?;
    let find = |connection: &Connection| match number_of(connection, tenant)? {
        Some(number) => entries::list(connection, (number, tenant), &wanted, plans),
        None => Ok(nothing()),
    };
    bounded(connection, ARCHIVE_STEPS_MAX, find)
}

impl SqliteStore {
    fn look<'a, T: Send + 'static>(
        &'a self,
        find: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        let steps_max = self.query_steps_max;
        self.read(move |connection| bounded(connection, steps_max, find))
    }
}

/// Runs a query on one snapshot of the database, within a limit of steps.
fn bounded<T>(
    connection: &mut Connection,
    steps_max: u64,
    find: impl FnOnce(&Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    let stopped = Arc::new(AtomicBool::new(false));
    let (stop, mut left) = (Arc::clone(&stopped), steps_max);
    let is_enough = move || match left.checked_sub(STEPS_BETWEEN) {
        Some(rest) => {
            left = rest;
            false
        }
        None => {
            stop.store(true, Ordering::Relaxed);
            true
        }
    };
    connection.progress_handler(STEPS_BETWEEN as i32, Some(is_enough)).map_err(fault::of)?;
    let found = match connection.transaction() {
        Ok(transaction) => find(&transaction),
        Err(error) => Err(fault::of(error)),
    };
    connection.progress_handler(0, None::<fn() -> bool>).map_err(fault::of)?;
    match found {
        Err(_) if stopped.load(Ordering::Relaxed) => {
            let hint = "it took too long; narrow the time range or add a filter";
            Err(Error::TooBroad(hint.to_owned()))
        }
        found => found,
    }
}

const TENANT: &str = "select number from tenant where name = ?1";

pub(super) fn number_of(connection: &Connection, tenant: &TenantId) -> Result<Option<i64>, Error> {
    one(connection, TENANT, [tenant.as_str()])
}

pub(super) fn nothing<T>() -> ListPage<T> {
    ListPage { items: Vec::new(), next: None }
}

const BY_STATUS: &str = "select status, count from total where tenant = ?1 and count > 0";
const PLANS: &str = "select plans from tenant where number = ?1";

fn totals(connection: &Connection, tenant: i64) -> Result<StoreTotals, Error> {
    let counts = || -> rusqlite::Result<Vec<(String, u64)>> {
        let mut statement = connection.prepare_cached(BY_STATUS)?;
        let rows = statement.query_map([tenant], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let mut totals = StoreTotals {
        entries: session::size_of(connection, tenant).map_err(fault::of)?,
        plans: one(connection, PLANS, [tenant])?.unwrap_or(0),
        ..StoreTotals::default()
    };
    for (status, count) in counts().map_err(fault::of)? {
        let known = ExecutionStatus::parse(&status);
        let status = known.ok_or_else(|| Error::Corrupt(format!("unknown status {status:?} in the totals")))?;
        totals.executions.insert(status.as_str(), count);
    }
    Ok(totals)
}
