//! Who holds what: claiming and giving back.

use super::state::{Kept, Outcome, State};
use rutter_core::id::WorkerId;
use rutter_core::port::Error;
use rutter_core::port::journal::{Claim, Lease};
use rutter_core::time::Timestamp;
use std::collections::HashMap;

impl State {
    /// Nothing that was promised is taken back: of two renewals the longer one counts.
    pub fn renew(&mut self, worker: &WorkerId, until: Timestamp) {
        let known = self.workers.entry(worker.clone()).or_insert(until);
        *known = until.max(*known);
    }

    pub fn claim(&mut self, claim: &Claim) -> Vec<Lease> {
        let workers = &self.workers;
        let mut due = Vec::new();
        for (tenant, ledger) in &mut self.tenants {
            for kept in &mut ledger.executions {
                if let Some(at) =
                    kept.due_at().filter(|at| *at <= claim.now && is_free(kept, workers, claim.now))
                {
                    due.push((at, kept.number, tenant, kept));
                }
            }
        }
        due.sort_by_key(|(at, number, ..)| (*at, *number));
        due.truncate(usize::try_from(claim.limit).unwrap_or(usize::MAX));
        let take = |(_, _, tenant, kept): (_, _, _, &mut Kept)| {
            kept.epoch += 1;
            kept.owner = Some(claim.worker.clone());
            Lease { identity: kept.identity(tenant), worker: claim.worker.clone(), epoch: kept.epoch }
        };
        due.into_iter().map(take).collect()
    }

    pub fn release(&mut self, lease: &Lease) -> Outcome<()> {
        let kept = self.kept_mut(&lease.identity)?;
        if kept.owner.is_none() && kept.epoch == lease.epoch {
            return Ok(());
        }
        check_lease(kept, lease)?;
        kept.owner = None;
        Ok(())
    }
}

/// Nobody holds it, or whoever does has not been heard of. A worker that never renewed counts as dead.
fn is_free(kept: &Kept, workers: &HashMap<WorkerId, Timestamp>, now: Timestamp) -> bool {
    kept.owner.as_ref().is_none_or(|owner| workers.get(owner).is_none_or(|until| *until < now))
}

pub(super) fn check_lease(kept: &Kept, lease: &Lease) -> Outcome<()> {
    match kept.owner.as_ref() == Some(&lease.worker) && kept.epoch == lease.epoch {
        true => Ok(()),
        false => Err(Error::Fenced { execution: kept.id.clone(), epoch: kept.epoch }),
    }
}
