//! A store in memory: the simplest implementation of every port. It forgets everything when it is dropped.

mod find;
mod follow;
mod holding;
mod outbox;
mod register;
mod remove;
mod state;
mod words;
mod write;

use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{PlanId, TenantId, WorkerId};
use rutter_core::port::StoreFuture;
use rutter_core::port::journal::{
    AppendOutcome, AppendRequest, ClaimRequest, EnqueueOutcome, ExecutionOpening, Journal, Lease, LoadedExecution,
    NewCommand, NewRevision, OpenOutcome, PlanStateChange, PlanStateOutcome, SaveOutcome,
};
use rutter_core::port::query::{
    EntryFilter, EntrySummary, ExecutionFilter, ExecutionSummary, KnownRequest, ListPage, Pagination, PlanFilter,
    PlanSummary, SavedPlan, StoreQuery, StoreTotals,
};
use rutter_core::port::upkeep::{CleanedTotals, CleaningRequest, ErasedTotals, ErasureRequest, StoreMaintenance};
use rutter_core::time::Timestamp;
use state::{MemoryState, StoreResult};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<MemoryState>,
    /// Changes when a ledger may have grown.
    grown: watch::Sender<()>,
}

impl MemoryStore {
    /// Every operation checks first and changes after, so a panic in between leaves nothing half done.
    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs work that may add entries, and notifies waiting readers.
    fn adding<T>(&self, work: impl FnOnce(&mut MemoryState) -> T) -> T {
        let worked = work(&mut self.state());
        self.grown.send_replace(());
        worked
    }
}

fn answer<'a, T: Send + 'a>(outcome: StoreResult<T>) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(outcome))
}

impl Journal for MemoryStore {
    fn save(&self, plan: NewRevision) -> StoreFuture<'_, SaveOutcome> {
        answer(self.adding(|state| state.save(plan)))
    }

    fn change_plan(&self, change: PlanStateChange) -> StoreFuture<'_, PlanStateOutcome> {
        answer(self.adding(|state| state.change_plan(&change)))
    }

    fn open(&self, opening: ExecutionOpening) -> StoreFuture<'_, OpenOutcome> {
        answer(self.adding(|state| state.open(opening)))
    }

    fn claim(&self, claim: ClaimRequest) -> StoreFuture<'_, Vec<Lease>> {
        answer(Ok(self.state().claim(&claim)))
    }

    fn renew(&self, worker: &WorkerId, until: Timestamp) -> StoreFuture<'_, ()> {
        self.state().renew(worker, until);
        answer(Ok(()))
    }

    fn load(&self, identity: &ExecutionIdentity) -> StoreFuture<'_, LoadedExecution> {
        answer(self.state().load(identity))
    }

    fn append(&self, append: AppendRequest) -> StoreFuture<'_, AppendOutcome> {
        answer(self.adding(|state| state.append(append)))
    }

    fn enqueue(&self, command: NewCommand) -> StoreFuture<'_, EnqueueOutcome> {
        answer(self.state().post(command))
    }

    fn release(&self, lease: Lease) -> StoreFuture<'_, ()> {
        answer(self.state().release(&lease))
    }
}

impl StoreQuery for MemoryStore {
    fn execution(&self, identity: &ExecutionIdentity) -> StoreFuture<'_, Option<ExecutionSummary>> {
        answer(Ok(self.state().execution(identity)))
    }

    fn executions(
        &self,
        tenant: &TenantId,
        filter: ExecutionFilter,
        page: Pagination,
    ) -> StoreFuture<'_, ListPage<ExecutionSummary>> {
        answer(self.state().executions(tenant, &filter, &page))
    }

    fn entries(
        &self,
        tenant: &TenantId,
        filter: EntryFilter,
        page: Pagination,
    ) -> StoreFuture<'_, ListPage<EntrySummary>> {
        answer(self.state().entries(tenant, &filter, &page))
    }

    fn plan(&self, tenant: &TenantId, id: &PlanId, revision: Option<u32>) -> StoreFuture<'_, Option<SavedPlan>> {
        answer(self.state().plan(tenant, id, revision))
    }

    fn plan_of(&self, execution: &ExecutionIdentity, revision: u32) -> StoreFuture<'_, Option<SavedPlan>> {
        answer(self.state().plan_of(execution, revision))
    }

    fn plans(&self, tenant: &TenantId, filter: PlanFilter, page: Pagination) -> StoreFuture<'_, ListPage<PlanSummary>> {
        answer(self.state().plans(tenant, &filter, &page))
    }

    fn ledger_tenants(&self) -> StoreFuture<'_, Vec<TenantId>> {
        answer(Ok(self.state().tenants.keys().cloned().collect()))
    }

    fn totals(&self, tenant: &TenantId) -> StoreFuture<'_, StoreTotals> {
        answer(Ok(self.state().totals(tenant)))
    }

    fn request(&self, tenant: &TenantId, key: &str) -> StoreFuture<'_, Option<KnownRequest>> {
        answer(Ok(self.state().request(tenant, key)))
    }
}

impl StoreMaintenance for MemoryStore {
    fn erase(&self, erasure: ErasureRequest) -> StoreFuture<'_, ErasedTotals> {
        answer(self.adding(|state| state.erase(erasure)))
    }

    fn clean(&self, cleaning: CleaningRequest) -> StoreFuture<'_, CleanedTotals> {
        answer(self.adding(|state| state.clean(cleaning)))
    }
}
