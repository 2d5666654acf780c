//! A store in memory: what any store must do, in the plainest way. It forgets everything when it is dropped.

mod find;
mod follow;
mod holding;
mod outbox;
mod register;
mod remove;
mod state;
mod words;
mod write;

use rutter_core::execution::Identity;
use rutter_core::id::{PlanId, TenantId, WorkerId};
use rutter_core::port::Answer;
use rutter_core::port::journal::{
    Append, Appended, Claim, Journal, Lease, Loaded, NewLetter, NewPlan, Opened, Opening, Posted, Saved,
};
use rutter_core::port::query::{
    EntryFilter, EntrySummary, ExecutionFilter, ExecutionSummary, Listing, Page, PlanFilter, PlanSummary,
    Query, SavedPlan, Totals,
};
use rutter_core::port::upkeep::{Cleaned, Cleaning, Erased, Erasure, Upkeep};
use rutter_core::time::Timestamp;
use state::{Outcome, State};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<State>,
    /// Moves when a ledger may have grown.
    grown: watch::Sender<()>,
}

impl Memory {
    /// Every operation checks first and changes after, so a panic in between leaves nothing half done.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something that may add entries, and tells whoever waits for some.
    fn adding<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let worked = work(&mut self.state());
        self.grown.send_replace(());
        worked
    }
}

fn answer<'a, T: Send + 'a>(outcome: Outcome<T>) -> Answer<'a, T> {
    Box::pin(std::future::ready(outcome))
}

impl Journal for Memory {
    fn save(&self, plan: NewPlan) -> Answer<'_, Saved> {
        answer(self.adding(|state| state.save(plan)))
    }

    fn open(&self, opening: Opening) -> Answer<'_, Opened> {
        answer(self.adding(|state| state.open(opening)))
    }

    fn claim(&self, claim: Claim) -> Answer<'_, Vec<Lease>> {
        answer(Ok(self.state().claim(&claim)))
    }

    fn renew(&self, worker: &WorkerId, until: Timestamp) -> Answer<'_, ()> {
        self.state().renew(worker, until);
        answer(Ok(()))
    }

    fn load(&self, identity: &Identity) -> Answer<'_, Loaded> {
        answer(self.state().load(identity))
    }

    fn append(&self, append: Append) -> Answer<'_, Appended> {
        answer(self.adding(|state| state.append(append)))
    }

    fn post(&self, letter: NewLetter) -> Answer<'_, Posted> {
        answer(self.state().post(letter))
    }

    fn release(&self, lease: Lease) -> Answer<'_, ()> {
        answer(self.state().release(&lease))
    }
}

impl Query for Memory {
    fn execution(&self, identity: &Identity) -> Answer<'_, Option<ExecutionSummary>> {
        answer(Ok(self.state().execution(identity)))
    }

    fn executions(
        &self,
        tenant: &TenantId,
        filter: ExecutionFilter,
        page: Page,
    ) -> Answer<'_, Listing<ExecutionSummary>> {
        answer(self.state().executions(tenant, &filter, &page))
    }

    fn entries(
        &self,
        tenant: &TenantId,
        filter: EntryFilter,
        page: Page,
    ) -> Answer<'_, Listing<EntrySummary>> {
        answer(self.state().entries(tenant, &filter, &page))
    }

    fn plan(&self, tenant: &TenantId, id: &PlanId, revision: Option<u32>) -> Answer<'_, Option<SavedPlan>> {
        answer(self.state().plan(tenant, id, revision))
    }

    fn plans(&self, tenant: &TenantId, filter: PlanFilter, page: Page) -> Answer<'_, Listing<PlanSummary>> {
        answer(self.state().plans(tenant, &filter, &page))
    }

    fn totals(&self, tenant: &TenantId) -> Answer<'_, Totals> {
        answer(Ok(self.state().totals(tenant)))
    }
}

impl Upkeep for Memory {
    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased> {
        answer(self.adding(|state| state.erase(erasure)))
    }

    fn clean(&self, cleaning: Cleaning) -> Answer<'_, Cleaned> {
        answer(self.adding(|state| state.clean(cleaning)))
    }
}
