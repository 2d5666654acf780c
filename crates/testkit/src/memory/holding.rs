//! Leases: claiming and releasing.

use super::state::{MemoryExecution, MemoryState, StoreResult};
use rutter_core::id::WorkerId;
use rutter_core::port::Error;
use rutter_core::port::journal::{ClaimRequest, Lease};
use rutter_core::time::Timestamp;
use std::collections::HashMap;

impl MemoryState {
    /// A promise is never shortened: of two renewals the longer one counts.
    pub fn renew(&mut self, worker: &WorkerId, until: Timestamp) {
        let known = self.workers.entry(worker.clone()).or_insert(until);
        *known = until.max(*known);
    }

    pub fn claim(&mut self, claim: &ClaimRequest) -> Vec<Lease> {
        let workers = &self.workers;
        let mut due = Vec::new();
        for (tenant, ledger) in &mut self.tenants {
            for stored in &mut ledger.executions {
                if let Some(at) = stored.due_at().filter(|at| *at <= claim.now && is_free(stored, workers, claim.now)) {
                    due.push((at, stored.number, tenant, stored));
                }
            }
        }
        due.sort_by_key(|(at, number, ..)| (*at, *number));
        due.truncate(usize::try_from(claim.limit).unwrap_or(usize::MAX));
        let take = |(_, _, tenant, retained): (_, _, _, &mut MemoryExecution)| {
            retained.epoch += 1;
            retained.owner = Some(claim.worker.clone());
            Lease { identity: retained.identity(tenant), worker: claim.worker.clone(), epoch: retained.epoch }
        };
        due.into_iter().map(take).collect()
    }

    pub fn release(&mut self, lease: &Lease) -> StoreResult<()> {
        let stored = self.find_execution_mut(&lease.identity)?;
        if stored.owner.is_none() && stored.epoch == lease.epoch {
            return Ok(());
        }
        check_lease(stored, lease)?;
        stored.owner = None;
        Ok(())
    }
}

/// No worker holds it, or its holder's lease has expired. A worker that never renewed counts as dead.
pub(super) fn is_free(stored: &MemoryExecution, workers: &HashMap<WorkerId, Timestamp>, now: Timestamp) -> bool {
    stored.owner.as_ref().is_none_or(|owner| workers.get(owner).is_none_or(|until| *until < now))
}

pub(super) fn check_lease(stored: &MemoryExecution, lease: &Lease) -> StoreResult<()> {
    match stored.owner.as_ref() == Some(&lease.worker) && stored.epoch == lease.epoch {
        true => Ok(()),
        false => Err(Error::Fenced { execution: stored.id.clone(), epoch: stored.epoch }),
    }
}
