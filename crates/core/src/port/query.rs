//! Queries over executions, entries and plans. Lists are newest first and paged by cursor, so that new writes
//! cause no gaps and no duplicates.

use super::StoreFuture;
use crate::actor::Actor;
use crate::execution::ExecutionIdentity;
use crate::execution::row::ExecutionProjection;
use crate::execution::view::ExecutionStatus;
use crate::hash::Hash;
use crate::id::{ExecutionId, PlanId, TenantId};
use crate::journal::event::EventRecord;
use crate::plan::Plan;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

pub trait StoreQuery: Send + Sync {
    /// One execution; `None` when it does not exist or was cleaned up.
    fn execution(&self, identity: &ExecutionIdentity) -> StoreFuture<'_, Option<ExecutionSummary>>;

    /// Executions by the time they were opened, newest first.
    fn executions(
        &self,
        tenant: &TenantId,
        filter: ExecutionFilter,
        page: Pagination,
    ) -> StoreFuture<'_, ListPage<ExecutionSummary>>;

    /// Entries of one execution oldest first; of all executions and the ledger's own journal newest first, by time,
    /// or by ledger position in a text search. Entries that were cleaned up are left out. The ledger's own journal is
    /// the execution `ledger`. A page may be shorter than its limit although the list continues.
    fn entries(
        &self,
        tenant: &TenantId,
        filter: EntryFilter,
        page: Pagination,
    ) -> StoreFuture<'_, ListPage<EntrySummary>>;

    /// One revision of a plan, also of an archived one; the newest if none is given.
    fn plan(&self, tenant: &TenantId, id: &PlanId, revision: Option<u32>) -> StoreFuture<'_, Option<SavedPlan>>;

    /// A revision of the plan that an execution carries out, also of a deleted plan.
    fn plan_of(&self, execution: &ExecutionIdentity, revision: u32) -> StoreFuture<'_, Option<SavedPlan>>;

    /// The newest revision of each plan, last saved first.
    fn plans(&self, tenant: &TenantId, filter: PlanFilter, page: Pagination) -> StoreFuture<'_, ListPage<PlanSummary>>;

    /// Every tenant that has entries, in any order.
    fn ledger_tenants(&self) -> StoreFuture<'_, Vec<TenantId>>;

    fn totals(&self, tenant: &TenantId) -> StoreFuture<'_, StoreTotals>;

    /// The request that an idempotency key was used for; `None` if it was never used, was freed or was cleaned up.
    fn request(&self, tenant: &TenantId, key: &str) -> StoreFuture<'_, Option<KnownRequest>>;
}

/// A request with an idempotency key that took effect before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRequest {
    pub digest: Hash,
    /// The execution it opened, or that it was a command to.
    pub execution: ExecutionId,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionSummary {
    pub id: ExecutionId,
    pub plan: PlanId,
    /// The name in the revision that is executed now.
    pub name: String,
    /// An execution with a pending command is due too.
    pub row: ExecutionProjection,
    pub entries: u64,
    /// Commands the worker has not decided yet.
    pub pending_commands: u64,
}

/// Every field that is set must match. Empty `statuses` match any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionFilter {
    pub plan: Option<PlanId>,
    /// A tag of the plan revision it was opened with.
    pub tag: Option<String>,
    pub statuses: Vec<ExecutionStatus>,
    /// Only executions that wait for a person.
    pub asking: bool,
    pub opened: TimeRange,
    /// Words that all occur in the plan's newest revision, or all in one decision, reason or error of the execution.
    /// At least one; whole words, in any order, ignoring case.
    pub text: Option<String>,
}

/// The named lists of executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryFilter {
    /// The newest, in any status.
    Recent,
    /// Those that have not ended.
    Incomplete,
    /// Those that ended without reaching their goal.
    Failed,
    Completed,
    All,
}

impl HistoryFilter {
    /// The filter for this list; [`HistoryFilter::Recent`] and [`HistoryFilter::All`] differ only in the page limit.
    pub fn filter(self) -> ExecutionFilter {
        let belongs = |status: ExecutionStatus| match self {
            HistoryFilter::Recent | HistoryFilter::All => false,
            HistoryFilter::Incomplete => !status.has_ended(),
            HistoryFilter::Completed => status == ExecutionStatus::Completed,
            HistoryFilter::Failed => status.has_ended() && status != ExecutionStatus::Completed,
        };
        let statuses = ExecutionStatus::ALL.into_iter().filter(|status| belongs(*status)).collect();
        ExecutionFilter { statuses, ..ExecutionFilter::default() }
    }
}

/// From the first time on, up to but not including the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EntrySummary {
    pub execution: ExecutionId,
    pub seq: u64,
    pub hash: Hash,
    pub record: EventRecord,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryFilter {
    pub execution: Option<ExecutionId>,
    /// Names of event types, such as `attempt_failed`; empty means any, an unknown one is refused.
    pub kinds: Vec<String>,
    pub actor: Option<Actor>,
    pub at: TimeRange,
    pub text: Option<String>,
}

#[derive(Clone, Debug)]
pub struct SavedPlan {
    pub summary: PlanSummary,
    pub plan: Arc<Plan>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlanSummary {
    pub id: PlanId,
    pub revision: u32,
    pub hash: Hash,
    pub name: String,
    pub goal: String,
    pub tags: Vec<String>,
    pub steps: u32,
    pub actor: Actor,
    pub saved_at: Timestamp,
    /// Put away: not listed unless asked for, and not startable.
    pub is_archived: bool,
    /// This revision was made for one execution.
    pub is_for_execution: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanFilter {
    /// Archived plans instead of the others.
    pub archived: bool,
    pub name: Option<String>,
    pub tag: Option<String>,
    pub text: Option<String>,
}

/// The page size and the cursor to continue after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pagination {
    pub limit: u32,
    pub after: Option<ListCursor>,
}

impl Pagination {
    pub fn first(limit: u32) -> Pagination {
        Pagination { limit, after: None }
    }
}

/// Reads a list page by page: ask for the next page, read it, hand it in.
#[derive(Debug)]
pub struct PageWalk {
    limit: u32,
    next: Option<Pagination>,
}

impl PageWalk {
    pub fn new(limit: u32) -> PageWalk {
        PageWalk { limit, next: Some(Pagination::first(limit)) }
    }

    /// The page to read now; `None` once the list has ended.
    pub fn next_page(&mut self) -> Option<Pagination> {
        self.next.take()
    }

    /// Returns the items of the page that was read; the walk continues after it.
    pub fn take<T>(&mut self, page: ListPage<T>) -> Vec<T> {
        self.next = page.next.map(|after| Pagination { limit: self.limit, after: Some(after) });
        page.items
    }

    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

/// A position in a list. Its text is opaque: callers pass it back unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListCursor(pub String);

#[derive(Clone, Debug, PartialEq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// `None` at the end of the list.
    pub next: Option<ListCursor>,
}

/// Totals that the store maintains as it writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreTotals {
    /// By status; a status without executions is left out.
    pub executions: BTreeMap<&'static str, u64>,
    /// All ever written, including the ledger's own journal and cleaned-up entries.
    pub entries: u64,
    pub plans: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_reads_every_page_once() {
        let (mut walk, mut read) = (PageWalk::new(7), Vec::new());
        while let Some(Pagination { limit: 7, after }) = walk.next_page() {
            let number: u32 = after.map_or(0, |ListCursor(text)| text.parse().unwrap());
            let next = (number < 2).then(|| ListCursor((number + 1).to_string()));
            read.extend(walk.take(ListPage { items: vec![number], next }));
            assert_eq!(walk.has_more(), number < 2);
        }
        assert_eq!(read, [0, 1, 2]);
    }

    #[test]
    fn every_status_is_in_one_history() {
        let of = |history: HistoryFilter| history.filter().statuses;
        for status in ExecutionStatus::ALL {
            let lists = [HistoryFilter::Incomplete, HistoryFilter::Failed, HistoryFilter::Completed];
            assert_eq!(lists.into_iter().filter(|list| of(*list).contains(&status)).count(), 1, "{status:?}");
        }
        assert_eq!((of(HistoryFilter::Recent), of(HistoryFilter::All)), (vec![], vec![]));
    }
}
