//! A journal that fails to write now and then, in front of a real one.

use rutter_core::execution::Identity;
use rutter_core::id::WorkerId;
use rutter_core::port::journal::{
    Append, Appended, Claim, Journal, Lease, Loaded, NewLetter, NewPlan, Opened, Opening, Posted, Saved,
};
use rutter_core::port::{Answer, Error};
use rutter_core::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Flaky {
    pub journal: Arc<dyn Journal>,
    /// Appends that are still to fail.
    pub failures: AtomicU32,
    pub error: Error,
}

impl Journal for Flaky {
    fn save(&self, plan: NewPlan) -> Answer<'_, Saved> {
        self.journal.save(plan)
    }

    fn open(&self, opening: Opening) -> Answer<'_, Opened> {
        self.journal.open(opening)
    }

    fn claim(&self, claim: Claim) -> Answer<'_, Vec<Lease>> {
        self.journal.claim(claim)
    }

    fn renew(&self, worker: &WorkerId, until: Timestamp) -> Answer<'_, ()> {
        self.journal.renew(worker, until)
    }

    fn load(&self, identity: &Identity) -> Answer<'_, Loaded> {
        self.journal.load(identity)
    }

    fn append(&self, append: Append) -> Answer<'_, Appended> {
        let fails = |left: u32| left.checked_sub(1);
        match self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fails) {
            Ok(_) => Box::pin(std::future::ready(Err(self.error.clone()))),
            Err(_) => self.journal.append(append),
        }
    }

    fn post(&self, letter: NewLetter) -> Answer<'_, Posted> {
        self.journal.post(letter)
    }

    fn release(&self, lease: Lease) -> Answer<'_, ()> {
        self.journal.release(lease)
    }
}
