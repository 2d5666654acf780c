//! Finding: every list is filtered, sorted and cut to the page, from the beginning each time.

use super::state::{MemoryEntry, MemoryExecution, MemoryState, StoreResult, StoredRevision, TenantLedger};
use super::words;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::chain::Entry;
use rutter_core::journal::label::KINDS;
use rutter_core::limits;
use rutter_core::port::Error;
use rutter_core::port::journal::PlanState;
use rutter_core::port::query::{
    EntryFilter, EntrySummary, ExecutionFilter, ExecutionSummary, KnownRequest, ListCursor, ListPage, Pagination,
    PlanFilter, PlanSummary, SavedPlan, StoreTotals, TimeRange,
};
use rutter_core::time::Timestamp;

impl MemoryState {
    pub fn execution(&self, identity: &ExecutionIdentity) -> Option<ExecutionSummary> {
        let ledger = self.tenants.get(&identity.tenant)?;
        ledger.find(&identity.execution).map(|stored| summary(ledger, stored))
    }

    pub fn executions(
        &self,
        tenant: &TenantId,
        filter: &ExecutionFilter,
        page: &Pagination,
    ) -> StoreResult<ListPage<ExecutionSummary>> {
        words::check(filter.text.as_ref())?;
        let ledger = self.tenants.get(tenant);
        let stored = ledger.iter().flat_map(|ledger| ledger.executions.iter().map(move |retained| (ledger, retained)));
        let found = stored.filter(|(ledger, existing)| execution_fits(ledger, existing, filter));
        let found = found
            .map(|(ledger, saved)| ((newest_first(saved.row.opened_at), descending(saved.number)), (ledger, saved)));
        let listing = cut(found.collect(), page)?;
        listing.try_map(|(ledger, kept)| Ok(summary(ledger, kept)))
    }

    pub fn entries(
        &self,
        tenant: &TenantId,
        filter: &EntryFilter,
        page: &Pagination,
    ) -> StoreResult<ListPage<EntrySummary>> {
        words::check(filter.text.as_ref())?;
        if let Some(kind) = filter.kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            return Err(Error::Invalid(format!("there is no event type {kind:?}")));
        }
        let lines = self.tenants.get(tenant).into_iter().flat_map(TenantLedger::lines);
        let found = lines.filter(|(execution, line)| entry_fits(execution, line, filter));
        let found = found.map(|(execution, line)| {
            let place = match (&filter.execution, &filter.text) {
                (Some(_), _) => (0, ascending(line.sealed.entry.seq)),
                // A search is newest first by writing order.
                (None, Some(_)) => (0, descending(line.place)),
                (None, None) => (newest_first(line.sealed.at), descending(line.place)),
            };
            (place, (execution, line))
        });
        cut(found.collect(), page)?.try_map(|(execution, line)| {
            let Entry { seq, hash, .. } = line.sealed.entry;
            Ok(EntrySummary { execution, seq, hash, record: line.record()? })
        })
    }

    pub fn plan(&self, tenant: &TenantId, id: &PlanId, revision: Option<u32>) -> StoreResult<Option<SavedPlan>> {
        let history = self.tenants.get(tenant).and_then(|ledger| ledger.history(id));
        let history = history.filter(|history| history.state != PlanState::Deleted);
        let found = history.and_then(|history| match revision {
            None => history.newest(),
            Some(number) => history.revisions.iter().find(|revision| revision.summary.revision == number),
        });
        found.map(StoredRevision::saved).transpose()
    }

    pub fn plan_of(&self, execution: &ExecutionIdentity, revision: u32) -> StoreResult<Option<SavedPlan>> {
        let ledger = self.tenants.get(&execution.tenant);
        let history = ledger.and_then(|ledger| ledger.history(&ledger.find(&execution.execution)?.plan));
        let found = history.and_then(|history| history.revisions.iter().find(|one| one.summary.revision == revision));
        found.map(StoredRevision::saved).transpose()
    }

    pub fn plans(
        &self,
        tenant: &TenantId,
        filter: &PlanFilter,
        page: &Pagination,
    ) -> StoreResult<ListPage<PlanSummary>> {
        words::check(filter.text.as_ref())?;
        let histories = self.tenants.get(tenant).map_or(&[][..], |ledger| &ledger.plans);
        let wanted = if filter.archived { PlanState::Archived } else { PlanState::Active };
        let histories = histories.iter().enumerate().filter(|(_, history)| history.state == wanted);
        let newest = histories.filter_map(|(at, plan)| Some((at, plan.newest()?)));
        let found = newest.filter(|(_, revision)| plan_fits(revision, filter));
        let found = found
            .map(|(at, revision)| ((newest_first(revision.summary.saved_at), descending(at as u64 + 1)), revision));
        cut(found.collect(), page)?.try_map(|revision| Ok(revision.summary.clone()))
    }

    pub fn request(&self, tenant: &TenantId, key: &str) -> Option<KnownRequest> {
        let asked = self.tenants.get(tenant)?.requests.get(key)?;
        Some(KnownRequest { digest: asked.digest, execution: asked.execution.clone() })
    }

    pub fn totals(&self, tenant: &TenantId) -> StoreTotals {
        let Some(ledger) = self.tenants.get(tenant) else { return StoreTotals::default() };
        let mut totals = StoreTotals {
            entries: ledger.places,
            plans: ledger.plans.iter().filter(|plan| plan.state != PlanState::Deleted).count() as u64,
            ..StoreTotals::default()
        };
        for stored in &ledger.executions {
            *totals.executions.entry(stored.row.status.as_str()).or_default() += 1;
        }
        totals
    }
}

fn summary(ledger: &TenantLedger, stored: &MemoryExecution) -> ExecutionSummary {
    let revision = ledger.revision(&stored.plan, stored.row.plan).ok();
    ExecutionSummary {
        id: stored.id.clone(),
        plan: stored.plan.clone(),
        name: revision.map(|revision| revision.summary.name.clone()).unwrap_or_default(),
        row: ExecutionProjection { due_at: stored.due_at(), ..stored.row.clone() },
        entries: stored.lines.len() as u64,
        pending_commands: stored.commands.len() as u64,
    }
}

fn execution_fits(ledger: &TenantLedger, stored: &MemoryExecution, filter: &ExecutionFilter) -> bool {
    let ExecutionFilter { plan, tag, statuses, asking, opened, text } = filter;
    let history = ledger.history(&stored.plan).filter(|history| history.state != PlanState::Deleted);
    let newest = history.and_then(|history| history.newest());
    let says = |text: &String| {
        newest.is_some_and(|newest| words::all_in(text, &newest.words()))
            || stored.lines.iter().any(|line| line_says(line, text))
    };
    plan.as_ref().is_none_or(|plan| stored.plan == *plan)
        && tag.as_ref().is_none_or(|tag| stored.tags.contains(tag))
        && (statuses.is_empty() || statuses.contains(&stored.row.status))
        && (!asking || stored.row.questions > 0)
        && is_within(stored.row.opened_at, opened)
        && text.as_ref().is_none_or(says)
}

fn entry_fits(execution: &ExecutionId, line: &MemoryEntry, filter: &EntryFilter) -> bool {
    let sealed = &line.sealed;
    filter.execution.as_ref().is_none_or(|wanted| wanted == execution)
        && (filter.kinds.is_empty() || filter.kinds.iter().any(|kind| kind == sealed.kind))
        && filter.actor.as_ref().is_none_or(|actor| sealed.actor.is_same(actor))
        && is_within(sealed.at, &filter.at)
        && filter.text.as_ref().is_none_or(|text| line_says(line, text))
}

fn plan_fits(revision: &StoredRevision, filter: &PlanFilter) -> bool {
    let PlanFilter { archived: _, name, tag, text } = filter;
    name.as_ref().is_none_or(|name| revision.summary.name == *name)
        && tag.as_ref().is_none_or(|tag| revision.summary.tags.contains(tag))
        && text.as_ref().is_none_or(|text| {
            words::all_begin(text, &revision.words()) || words::all_within(text, &revision.summary.name)
        })
}

fn line_says(line: &MemoryEntry, text: &str) -> bool {
    line.sealed.words.as_ref().is_some_and(|words| words::all_in(text, words))
}

fn is_within(at: Timestamp, between: &TimeRange) -> bool {
    between.from.is_none_or(|from| from <= at) && between.until.is_none_or(|until| at < until)
}

/// The position of an item in its list, which is ascending.
type ListPosition = (i64, i64);

fn newest_first(at: Timestamp) -> i64 {
    at.0.saturating_neg()
}

fn ascending(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn descending(number: u64) -> i64 {
    -ascending(number)
}

pub(super) fn page_size(limit: u32) -> StoreResult<usize> {
    if limit == 0 || limit > limits::PAGE_MAX {
        let (max, found) = (u64::from(limits::PAGE_MAX), u64::from(limit));
        return Err(Error::Limit { limit: "page_max", max, found });
    }
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Sorts, skips what is before the cursor, and returns the next cursor.
pub(super) fn cut<T>(mut items: Vec<(ListPosition, T)>, page: &Pagination) -> StoreResult<ListPage<T>> {
    let limit = page_size(page.limit)?;
    if let Some(ListCursor(text)) = &page.after {
        let place = text.split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let place: ListPosition = place.ok_or_else(|| Error::Invalid(format!("{text:?} is not a cursor")))?;
        items.retain(|(at, _)| *at > place);
    }
    items.sort_by_key(|(place, _)| *place);
    let next = (items.len() > limit).then(|| items[limit - 1].0);
    items.truncate(limit);
    let next = next.map(|(a, b)| ListCursor(format!("{a} {b}")));
    Ok(ListPage { items: items.into_iter().map(|(_, item)| item).collect(), next })
}

trait TryMapPage<T> {
    fn try_map<U>(self, f: impl FnMut(T) -> StoreResult<U>) -> StoreResult<ListPage<U>>;
}

impl<T> TryMapPage<T> for ListPage<T> {
    fn try_map<U>(self, f: impl FnMut(T) -> StoreResult<U>) -> StoreResult<ListPage<U>> {
        let items = self.items.into_iter().map(f).collect::<StoreResult<Vec<U>>>()?;
        Ok(ListPage { items, next: self.next })
    }
}
