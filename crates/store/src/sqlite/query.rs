//! Finding what was kept. Each list is found in two steps: the keys of a page, along one index and in its order, and
//! then what each key stands for.
//!
//! A statement is put together from fixed pieces: one that leads, which names its index, and conditions on what
//! that finds. No query may take more than a number of steps, so that none keeps a reader busy for long.

mod cursor;
mod entries;
mod executions;
mod plans;
mod search;
mod select;
#[cfg(test)]
mod tests;

use super::plans::Plans;
use super::session::{self, one};
use super::{Store, fault, refused};
pub(super) use cursor::{Key, List, Paging, size_of_page};
use rusqlite::Connection;
use rutter_core::execution::Identity;
use rutter_core::execution::view::Status;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::port::query::{
    EntryFilter, EntrySummary, ExecutionFilter, ExecutionSummary, Listing, Page, PlanFilter, PlanSummary,
    Query, SavedPlan, Totals,
};
use rutter_core::port::{Answer, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps of SQLite's machine for one query; about a second.
pub(super) const STEPS_MAX: u64 = 20_000_000;
const ARCHIVE_STEPS_MAX: u64 = 50 * STEPS_MAX;
/// How often the steps are looked at.
const STEPS_BETWEEN: u64 = 1_000;

impl Query for Store {
    fn execution(&self, identity: &Identity) -> Answer<'_, Option<ExecutionSummary>> {
        let identity = identity.clone();
        self.look(move |connection| executions::find(connection, &identity))
    }

    fn executions(
        &self,
        tenant: &TenantId,
        filter: ExecutionFilter,
        page: Page,
    ) -> Answer<'_, Listing<ExecutionSummary>> {
        let tenant = tenant.clone();
        let wanted = Paging::read(List::Executions, &page)
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
        page: Page,
    ) -> Answer<'_, Listing<EntrySummary>> {
        let (tenant, plans) = (tenant.clone(), Arc::clone(&self.plans));
        match entries::Wanted::read(filter, &page) {
            Ok(wanted) => self.look(move |connection| match number_of(connection, &tenant)? {
                Some(number) => entries::list(connection, (number, &tenant), &wanted, &plans),
                None => Ok(nothing()),
            }),
            Err(error) => refused(error),
        }
    }

    fn plan(&self, tenant: &TenantId, id: &PlanId, revision: Option<u32>) -> Answer<'_, Option<SavedPlan>> {
        let (tenant, id, plans) = (tenant.clone(), id.clone(), Arc::clone(&self.plans));
        self.look(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => plans::find(connection, tenant, &id, revision, &plans),
            None => Ok(None),
        })
    }

    fn plans(&self, tenant: &TenantId, filter: PlanFilter, page: Page) -> Answer<'_, Listing<PlanSummary>> {
        let tenant = tenant.clone();
        let wanted = Paging::read(List::Plans, &page)
            .and_then(|paging| Ok((paging, search::read(filter.text.as_deref())?)));
        match wanted {
            Ok((paging, words)) => self.look(move |connection| match number_of(connection, &tenant)? {
                Some(tenant) => plans::list(connection, tenant, &filter, words.as_ref(), paging),
                None => Ok(nothing()),
            }),
            Err(error) => refused(error),
        }
    }

    fn totals(&self, tenant: &TenantId) -> Answer<'_, Totals> {
        let tenant = tenant.clone();
        self.look(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => totals(connection, tenant),
            None => Ok(Totals::default()),
        })
    }
}

/// The list of executions for who reads without owning.
pub(super) fn executions(
    connection: &mut Connection,
    tenant: &TenantId,
    filter: &ExecutionFilter,
    page: &Page,
) -> Result<Listing<ExecutionSummary>, Error> {
    let (paging, words) = (Paging::read(List::Executions, page)?, search::read(filter.text.as_deref())?);
    let find = |connection: &Connection| match number_of(connection, tenant)? {
        Some(tenant) => executions::list(connection, tenant, filter, words.as_ref(), paging),
        None => Ok(nothing()),
    };
    bounded(connection, ARCHIVE_STEPS_MAX, find)
}

/// One revision of a plan for who reads without owning.
pub(super) fn plan(
    connection: &mut Connection,
    tenant: &TenantId,
    id: &PlanId,
    revision: Option<u32>,
    plans: &Plans,
) -> Result<Option<SavedPlan>, Error> {
    bounded(connection, ARCHIVE_STEPS_MAX, |connection: &Connection| match number_of(connection, tenant)? {
        Some(tenant) => plans::find(connection, tenant, id, revision, plans),
        None => Ok(None),
    })
}

/// The list of plans for who reads without owning.
pub(super) fn plans(
    connection: &mut Connection,
    tenant: &TenantId,
    filter: &PlanFilter,
    page: &Page,
) -> Result<Listing<PlanSummary>, Error> {
    let (paging, words) = (Paging::read(List::Plans, page)?, search::read(filter.text.as_deref())?);
    let find = |connection: &Connection| match number_of(connection, tenant)? {
        Some(tenant) => plans::list(connection, tenant, filter, words.as_ref(), paging),
        None => Ok(nothing()),
    };
    bounded(connection, ARCHIVE_STEPS_MAX, find)
}

/// The same list for who reads without owning. Nobody waits for that reader, so it may look longer.
pub(super) fn entries(
    connection: &mut Connection,
    tenant: &TenantId,
    filter: EntryFilter,
    page: &Page,
    plans: &Plans,
) -> Result<Listing<EntrySummary>, Error> {
    let wanted = entries::Wanted::read(filter, page)?;
    let find = |connection: &Connection| match number_of(connection, tenant)? {
        Some(number) => entries::list(connection, (number, tenant), &wanted, plans),
        None => Ok(nothing()),
    };
    bounded(connection, ARCHIVE_STEPS_MAX, find)
}

impl Store {
    fn look<'a, T: Send + 'static>(
        &'a self,
        find: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Answer<'a, T> {
        let steps_max = self.query_steps_max;
        self.read(move |connection| bounded(connection, steps_max, find))
    }
}

/// Looks at one moment of the database, and not for longer than the steps allow.
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
            let hint = "it took too long; ask for a shorter time, or for something rarer";
            Err(Error::TooBroad(hint.to_owned()))
        }
        found => found,
    }
}

const TENANT: &str = "select number from tenant where name = ?1";

pub(super) fn number_of(connection: &Connection, tenant: &TenantId) -> Result<Option<i64>, Error> {
    one(connection, TENANT, [tenant.as_str()])
}

pub(super) fn nothing<T>() -> Listing<T> {
    Listing { items: Vec::new(), next: None }
}

const BY_STATUS: &str = "select status, count from total where tenant = ?1 and count > 0";
const PLANS: &str = "select plans from tenant where number = ?1";

fn totals(connection: &Connection, tenant: i64) -> Result<Totals, Error> {
    let counts = || -> rusqlite::Result<Vec<(String, u64)>> {
        let mut statement = connection.prepare_cached(BY_STATUS)?;
        let rows = statement.query_map([tenant], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let mut totals = Totals {
        entries: session::size_of(connection, tenant).map_err(fault::of)?,
        plans: one(connection, PLANS, [tenant])?.unwrap_or(0),
        ..Totals::default()
    };
    for (status, count) in counts().map_err(fault::of)? {
        let known = Status::parse(&status);
        let status = known.ok_or_else(|| Error::Corrupt(format!("executions are counted as {status:?}")))?;
        totals.executions.insert(status.as_str(), count);
    }
    Ok(totals)
}
