//! Removing: payloads, or whole executions. The hashes, which a real ledger keeps, are not needed here.

use super::holding::is_free;
use super::state::{MemoryExecution, MemoryState, StoreResult};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::PlanId;
use rutter_core::journal::event::{Event, EventRecord, RemovedExecution};
use rutter_core::port::Error;
use rutter_core::port::journal::PlanState;
use rutter_core::port::upkeep::{CleanedPart, CleanedTotals, CleaningRequest, ErasedTotals, ErasureRequest};

impl MemoryState {
    pub fn erase(&mut self, erasure: ErasureRequest) -> StoreResult<ErasedTotals> {
        let ErasureRequest { identity, entries, actor, at, reason } = erasure;
        let stored = self.find_execution_mut(&identity)?;
        let wanted = |seq: u64| entries.as_ref().is_none_or(|entries| entries.contains(&seq));
        let erased = count(stored, wanted);
        if erased.payloads > 0 {
            forget(stored, wanted);
            let (execution, payloads) = (identity.execution, erased.payloads);
            let event = Event::PayloadsErased { execution, payloads, reason };
            self.ledger_mut(&identity.tenant).note(&identity.tenant, &EventRecord { at, actor, event });
        }
        Ok(erased)
    }

    pub fn clean(&mut self, cleaning: CleaningRequest) -> StoreResult<CleanedTotals> {
        if let Some(open) = cleaning.statuses.iter().find(|status| !status.has_ended()) {
            return Err(Error::Invalid(format!("executions that are {} have not ended", open.as_str())));
        }
        let ended = ExecutionStatus::ALL.into_iter().filter(|status| status.has_ended());
        let wanted = ended.filter(|status| cleaning.statuses.is_empty() || cleaning.statuses.contains(status));
        Ok(wanted.fold(CleanedTotals::default(), |sum, status| {
            let more = self.clean_batch(&cleaning, status);
            CleanedTotals {
                executions: sum.executions + more.executions,
                entries: sum.entries + more.entries,
                payloads: sum.payloads + more.payloads,
                bytes: sum.bytes + more.bytes,
            }
        }))
    }

    /// Removes executions with one status, longest untouched first.
    fn clean_batch(&mut self, cleaning: &CleaningRequest, status: ExecutionStatus) -> CleanedTotals {
        let CleaningRequest { tenant, untouched_since, what, dry_run, actor, at, reason, .. } = cleaning;
        let workers = &self.workers;
        let is_wanted = |stored: &MemoryExecution| {
            let is_old = stored.row.status == status && stored.row.last_at < *untouched_since;
            is_old && stored.commands.is_empty() && is_free(stored, workers, *at)
        };
        let ledger = self.tenants.entry(tenant.clone()).or_default();
        let mut batch: Vec<&mut MemoryExecution> =
            ledger.executions.iter_mut().filter(|retained| is_wanted(retained)).collect();
        batch.sort_by_key(|existing| (existing.row.last_at, existing.number));
        let (mut cleaned, mut events, mut removed) = (CleanedTotals::default(), Vec::new(), Vec::new());
        for saved in batch {
            let ErasedTotals { payloads, bytes } = count(saved, |_| true);
            let execution = saved.id.clone();
            match what {
                CleanedPart::Payloads if payloads == 0 => continue,
                CleanedPart::Payloads => {
                    events.push(Event::PayloadsErased { execution, payloads, reason: reason.clone() });
                }
                CleanedPart::Executions => {
                    let (entries, head) = (saved.lines.len() as u64, saved.head().hash);
                    cleaned.entries += entries;
                    removed.push(RemovedExecution { execution, entries, head });
                }
            }
            cleaned.executions += 1;
            cleaned.payloads += payloads;
            cleaned.bytes += bytes;
            if !dry_run {
                forget(saved, |_| true);
            }
        }
        if *dry_run {
            return cleaned;
        }
        ledger.executions.retain(|kept| removed.iter().all(|gone| gone.execution != kept.id));
        let is_used = |plan: &PlanId| ledger.executions.iter().any(|kept| kept.plan == *plan);
        ledger.plans.retain(|plan| plan.state != PlanState::Deleted || is_used(&plan.id));
        if !removed.is_empty() {
            events.push(Event::ExecutionsRemoved { executions: removed, reason: reason.clone() });
        }
        for event in events {
            ledger.note(tenant, &EventRecord { at: *at, actor: actor.clone(), event });
        }
        cleaned
    }
}

fn count(stored: &MemoryExecution, wanted: impl Fn(u64) -> bool) -> ErasedTotals {
    let lines = stored.lines.iter().filter(|line| wanted(line.sealed.entry.seq));
    let payloads = lines.flat_map(|line| &line.sealed.payloads);
    payloads.fold(ErasedTotals::default(), |sum, payload| ErasedTotals {
        payloads: sum.payloads + 1,
        bytes: sum.bytes + payload.bytes.len() as u64,
    })
}

fn forget(stored: &mut MemoryExecution, wanted: impl Fn(u64) -> bool) {
    let lines = stored.lines.iter_mut().filter(|line| wanted(line.sealed.entry.seq));
    lines.for_each(|line| line.sealed.payloads.clear());
}
