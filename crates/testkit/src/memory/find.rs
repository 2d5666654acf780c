//! Finding: every list is filtered, sorted and cut to the page, from the beginning each time.

use super::state::{Kept, Ledger, Line, Outcome, Revision, State};
use super::words;
use rutter_core::execution::Identity;
use rutter_core::execution::row::Row;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::chain::Entry;
use rutter_core::journal::label::KINDS;
use rutter_core::limits;
use rutter_core::port::Error;
use rutter_core::port::query::{
    Between, Cursor, EntryFilter, EntrySummary, ExecutionFilter, ExecutionSummary, Listing, Page, PlanFilter,
    PlanSummary, SavedPlan, Totals,
};
use rutter_core::time::Timestamp;

impl State {
    pub fn execution(&self, identity: &Identity) -> Option<ExecutionSummary> {
        let ledger = self.tenants.get(&identity.tenant)?;
        ledger.find(&identity.execution).map(|kept| summary(ledger, kept))
    }

    pub fn executions(
        &self,
        tenant: &TenantId,
        filter: &ExecutionFilter,
        page: &Page,
    ) -> Outcome<Listing<ExecutionSummary>> {
        words::check(filter.text.as_ref())?;
        let ledger = self.tenants.get(tenant);
        let kept = ledger.iter().flat_map(|ledger| ledger.executions.iter().map(move |kept| (ledger, kept)));
        let found = kept.filter(|(ledger, kept)| execution_fits(ledger, kept, filter));
        let found = found.map(|(ledger, kept)| {
            ((newest_first(kept.row.opened_at), descending(kept.number)), (ledger, kept))
        });
        let listing = cut(found.collect(), page)?;
        listing.try_map(|(ledger, kept)| Ok(summary(ledger, kept)))
    }

    pub fn entries(
        &self,
        tenant: &TenantId,
        filter: &EntryFilter,
        page: &Page,
    ) -> Outcome<Listing<EntrySummary>> {
        words::check(filter.text.as_ref())?;
        if let Some(kind) = filter.kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            return Err(Error::Invalid(format!("there is no event type {kind:?}")));
        }
        let lines = self.tenants.get(tenant).into_iter().flat_map(Ledger::lines);
        let found = lines.filter(|(execution, line)| entry_fits(execution, line, filter));
        let found = found.map(|(execution, line)| {
            let place = match (&filter.execution, &filter.text) {
                (Some(_), _) => (0, ascending(line.sealed.entry.seq)),
                // A search is newest first by when entries were written.
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

    pub fn plan(&self, tenant: &TenantId, id: &PlanId, revision: Option<u32>) -> Outcome<Option<SavedPlan>> {
        let history = self.tenants.get(tenant).and_then(|ledger| ledger.history(id));
        let found = history.and_then(|history| match revision {
            None => history.revisions.last(),
            Some(number) => history.revisions.iter().find(|revision| revision.summary.revision == number),
        });
        let Some(found) = found else { return Ok(None) };
        Ok(Some(SavedPlan { summary: found.summary.clone(), plan: found.rebuild()? }))
    }

    pub fn plans(
        &self,
        tenant: &TenantId,
        filter: &PlanFilter,
        page: &Page,
    ) -> Outcome<Listing<PlanSummary>> {
        words::check(filter.text.as_ref())?;
        let histories = self.tenants.get(tenant).map_or(&[][..], |ledger| &ledger.plans);
        let newest = histories.iter().enumerate().filter_map(|(at, plan)| Some((at, plan.revisions.last()?)));
        let found = newest.filter(|(_, revision)| plan_fits(revision, filter));
        let found = found.map(|(at, revision)| {
            ((newest_first(revision.summary.saved_at), descending(at as u64 + 1)), revision)
        });
        cut(found.collect(), page)?.try_map(|revision| Ok(revision.summary.clone()))
    }

    pub fn totals(&self, tenant: &TenantId) -> Totals {
        let Some(ledger) = self.tenants.get(tenant) else { return Totals::default() };
        let mut totals =
            Totals { entries: ledger.places, plans: ledger.plans.len() as u64, ..Totals::default() };
        for kept in &ledger.executions {
            *totals.executions.entry(kept.row.status.as_str()).or_default() += 1;
        }
        totals
    }
}

fn summary(ledger: &Ledger, kept: &Kept) -> ExecutionSummary {
    let revision = ledger.revision(&kept.plan, kept.row.plan).ok();
    ExecutionSummary {
        id: kept.id.clone(),
        plan: kept.plan.clone(),
        name: revision.map(|revision| revision.summary.name.clone()).unwrap_or_default(),
        row: Row { due_at: kept.due_at(), ..kept.row },
        entries: kept.lines.len() as u64,
        letters: kept.letters.len() as u64,
    }
}

fn execution_fits(ledger: &Ledger, kept: &Kept, filter: &ExecutionFilter) -> bool {
    let ExecutionFilter { plan, tag, statuses, asking, opened, text } = filter;
    let newest = ledger.history(&kept.plan).and_then(|history| history.revisions.last());
    let says = |text: &String| {
        newest.is_some_and(|newest| words::all_in(text, &newest.words()))
            || kept.lines.iter().any(|line| line_says(line, text))
    };
    plan.as_ref().is_none_or(|plan| kept.plan == *plan)
        && tag.as_ref().is_none_or(|tag| kept.tags.contains(tag))
        && (statuses.is_empty() || statuses.contains(&kept.row.status))
        && (!asking || kept.row.questions > 0)
        && is_within(kept.row.opened_at, opened)
        && text.as_ref().is_none_or(says)
}

fn entry_fits(execution: &ExecutionId, line: &Line, filter: &EntryFilter) -> bool {
    let sealed = &line.sealed;
    filter.execution.as_ref().is_none_or(|wanted| wanted == execution)
        && (filter.kinds.is_empty() || filter.kinds.iter().any(|kind| kind == sealed.kind))
        && filter.actor.as_ref().is_none_or(|actor| sealed.actor == *actor)
        && is_within(sealed.at, &filter.at)
        && filter.text.as_ref().is_none_or(|text| line_says(line, text))
}

fn plan_fits(revision: &Revision, filter: &PlanFilter) -> bool {
    let PlanFilter { name, tag, text } = filter;
    name.as_ref().is_none_or(|name| revision.summary.name == *name)
        && tag.as_ref().is_none_or(|tag| revision.summary.tags.contains(tag))
        && text.as_ref().is_none_or(|text| words::all_in(text, &revision.words()))
}

fn line_says(line: &Line, text: &str) -> bool {
    line.sealed.words.as_ref().is_some_and(|words| words::all_in(text, words))
}

fn is_within(at: Timestamp, between: &Between) -> bool {
    between.from.is_none_or(|from| from <= at) && between.until.is_none_or(|until| at < until)
}

/// Where an item stands in its list; the list goes upwards.
type Place = (i64, i64);

fn newest_first(at: Timestamp) -> i64 {
    at.0.saturating_neg()
}

fn ascending(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn descending(number: u64) -> i64 {
    -ascending(number)
}

pub(super) fn page_size(limit: u32) -> Outcome<usize> {
    if limit == 0 || limit > limits::PAGE_MAX {
        let (max, found) = (u64::from(limits::PAGE_MAX), u64::from(limit));
        return Err(Error::Limit { limit: "page_max", max, found });
    }
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Sorts, skips what the cursor has passed, and says where to go on.
pub(super) fn cut<T>(mut items: Vec<(Place, T)>, page: &Page) -> Outcome<Listing<T>> {
    let limit = page_size(page.limit)?;
    if let Some(Cursor(text)) = &page.after {
        let place = text.split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let place: Place = place.ok_or_else(|| Error::Invalid(format!("{text:?} is not a cursor")))?;
        items.retain(|(at, _)| *at > place);
    }
    items.sort_by_key(|(place, _)| *place);
    let next = (items.len() > limit).then(|| items[limit - 1].0);
    items.truncate(limit);
    let next = next.map(|(a, b)| Cursor(format!("{a} {b}")));
    Ok(Listing { items: items.into_iter().map(|(_, item)| item).collect(), next })
}

trait TryMap<T> {
    fn try_map<U>(self, f: impl FnMut(T) -> Outcome<U>) -> Outcome<Listing<U>>;
}

impl<T> TryMap<T> for Listing<T> {
    fn try_map<U>(self, f: impl FnMut(T) -> Outcome<U>) -> Outcome<Listing<U>> {
        let items = self.items.into_iter().map(f).collect::<Outcome<Vec<U>>>()?;
        Ok(Listing { items, next: self.next })
    }
}
