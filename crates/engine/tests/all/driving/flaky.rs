//! A journal that fails to write now and then, in front of a real one.

use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::WorkerId;
use rutter_core::port::journal::{
    AppendOutcome, AppendRequest, ClaimRequest, EnqueueOutcome, ExecutionOpening, Journal, Lease, LoadedExecution,
    NewCommand, NewRevision, OpenOutcome, PlanStateChange, PlanStateOutcome, SaveOutcome,
};
use rutter_core::port::{Error, StoreFuture};
use rutter_core::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::watch;

pub struct Flaky {
    pub journal: Arc<dyn Journal>,
    /// Appends that are still to fail.
    pub failures: AtomicU32,
    pub error: Error,
    /// Nothing is loaded before so many commands were stored.
    pub commands_before_load: u32,
    pub posted: watch::Sender<u32>,
}

impl Journal for Flaky {
    fn save(&self, plan: NewRevision) -> StoreFuture<'_, SaveOutcome> {
        self.journal.save(plan)
    }

    fn change_plan(&self, change: PlanStateChange) -> StoreFuture<'_, PlanStateOutcome> {
        self.journal.change_plan(change)
    }

    fn open(&self, opening: ExecutionOpening) -> StoreFuture<'_, OpenOutcome> {
        self.journal.open(opening)
    }

    fn claim(&self, claim: ClaimRequest) -> StoreFuture<'_, Vec<Lease>> {
        self.journal.claim(claim)
    }

    fn renew(&self, worker: &WorkerId, until: Timestamp) -> StoreFuture<'_, ()> {
        self.journal.renew(worker, until)
    }

    fn load(&self, identity: &ExecutionIdentity) -> StoreFuture<'_, LoadedExecution> {
        let (mut form, wanted) = (self.posted.subscribe(), self.commands_before_load);
        let identity = identity.clone();
        Box::pin(async move {
            let _ = form.wait_for(|form_request| *form_request >= wanted).await;
            self.journal.load(&identity).await
        })
    }

    fn append(&self, append: AppendRequest) -> StoreFuture<'_, AppendOutcome> {
        let fails = |left: u32| left.checked_sub(1);
        match self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fails) {
            Ok(_) => Box::pin(std::future::ready(Err(self.error.clone()))),
            Err(_) => self.journal.append(append),
        }
    }

    fn enqueue(&self, command: NewCommand) -> StoreFuture<'_, EnqueueOutcome> {
        Box::pin(async move {
            let answer = self.journal.enqueue(command).await;
            self.posted.send_modify(|form| *form += 1);
            answer
        })
    }

    fn release(&self, lease: Lease) -> StoreFuture<'_, ()> {
        self.journal.release(lease)
    }
}
