//! Finding what was kept. Lists are newest first and go on by cursor, so that nothing is skipped or doubled
//! while more is written.

use super::Answer;
use crate::actor::Actor;
use crate::execution::Identity;
use crate::execution::row::Row;
use crate::execution::view::Status;
use crate::hash::Hash;
use crate::id::{ExecutionId, PlanId, TenantId};
use crate::journal::event::Record;
use crate::plan::Plan;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

pub trait Query: Send + Sync {
    /// One execution; `None` when there is none, or it was cleaned up.
    fn execution(&self, identity: &Identity) -> Answer<'_, Option<ExecutionSummary>>;

    /// By when they were opened, newest first.
    fn executions(
        &self,
        tenant: &TenantId,
        filter: ExecutionFilter,
        page: Page,
    ) -> Answer<'_, Listing<ExecutionSummary>>;

    /// Of one execution oldest first, of all executions and the ledger's own journal newest first: by time, or when
    /// text is searched by when they were written. What was cleaned up is not listed. The ledger's own journal is
    /// the execution `ledger`. A page may be shorter than asked for although the list goes on.
    fn entries(
        &self,
        tenant: &TenantId,
        filter: EntryFilter,
        page: Page,
    ) -> Answer<'_, Listing<EntrySummary>>;

    /// One revision of a plan, the newest if none is named.
    fn plan(&self, tenant: &TenantId, id: &PlanId, revision: Option<u32>) -> Answer<'_, Option<SavedPlan>>;

    /// The newest revision of each plan, last saved first.
    fn plans(&self, tenant: &TenantId, filter: PlanFilter, page: Page) -> Answer<'_, Listing<PlanSummary>>;

    fn totals(&self, tenant: &TenantId) -> Answer<'_, Totals>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionSummary {
    pub id: ExecutionId,
    pub plan: PlanId,
    /// Of the revision that is carried out now.
    pub name: String,
    /// Due also when a letter waits.
    pub row: Row,
    pub entries: u64,
    /// Letters nobody has answered yet.
    pub letters: u64,
}

/// Each field that is set must hold. `statuses` empty means any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionFilter {
    pub plan: Option<PlanId>,
    /// A tag of the revision it was opened with.
    pub tag: Option<String>,
    pub statuses: Vec<Status>,
    /// Only those that wait for somebody.
    pub asking: bool,
    pub opened: Between,
    /// Words that all stand in the plan's newest revision, or all in one decision, reason or error of the execution.
    /// Whole words, in any order and case; at least one.
    pub text: Option<String>,
}

/// The lists people ask for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// The newest, whatever became of them.
    Recent,
    /// Those that go on, or wait.
    Incomplete,
    /// Those that ended without reaching their goal.
    Failed,
    Completed,
    All,
}

impl History {
    /// The filter that finds them; [`History::Recent`] and [`History::All`] differ only in how many one asks for.
    pub fn filter(self) -> ExecutionFilter {
        let belongs = |status: Status| match self {
            History::Recent | History::All => false,
            History::Incomplete => !status.has_ended(),
            History::Completed => status == Status::Completed,
            History::Failed => status.has_ended() && status != Status::Completed,
        };
        let statuses = Status::ALL.into_iter().filter(|status| belongs(*status)).collect();
        ExecutionFilter { statuses, ..ExecutionFilter::default() }
    }
}

/// From the first on, up to but not including the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EntrySummary {
    pub execution: ExecutionId,
    pub seq: u64,
    pub hash: Hash,
    pub record: Record,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryFilter {
    pub execution: Option<ExecutionId>,
    /// Names of event types, such as `attempt_failed`; empty means any, an unknown one is refused.
    pub kinds: Vec<String>,
    pub actor: Option<Actor>,
    pub at: Between,
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
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanFilter {
    pub name: Option<String>,
    pub tag: Option<String>,
    pub text: Option<String>,
}

/// Where to go on, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub limit: u32,
    pub after: Option<Cursor>,
}

impl Page {
    pub fn first(limit: u32) -> Page {
        Page { limit, after: None }
    }
}

/// A place in a list. What it says is the store's business; callers hand it back as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(pub String);

#[derive(Clone, Debug, PartialEq)]
pub struct Listing<T> {
    pub items: Vec<T>,
    /// `None` at the end of the list.
    pub next: Option<Cursor>,
}

/// Counts that are kept, not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// By status; one that nothing has is left out.
    pub executions: BTreeMap<&'static str, u64>,
    /// Ever written, those of the ledger's own journal and those cleaned up among them.
    pub entries: u64,
    pub plans: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_in_one_history() {
        let of = |history: History| history.filter().statuses;
        for status in Status::ALL {
            let lists = [History::Incomplete, History::Failed, History::Completed];
            assert_eq!(lists.into_iter().filter(|list| of(*list).contains(&status)).count(), 1, "{status:?}");
        }
        assert_eq!((of(History::Recent), of(History::All)), (vec![], vec![]));
    }
}
