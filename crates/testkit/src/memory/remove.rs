//! Removing: payloads, or whole executions. The hashes, which a real ledger keeps, nobody here asks for.

use super::holding::is_free;
use super::state::{Kept, Outcome, State};
use rutter_core::execution::view::Status;
use rutter_core::journal::event::{Event, Record, Removed};
use rutter_core::port::Error;
use rutter_core::port::upkeep::{Cleaned, CleanedPart, Cleaning, Erased, Erasure};

impl State {
    pub fn erase(&mut self, erasure: Erasure) -> Outcome<Erased> {
        let Erasure { identity, entries, actor, at, reason } = erasure;
        let kept = self.kept_mut(&identity)?;
        let wanted = |seq: u64| entries.as_ref().is_none_or(|entries| entries.contains(&seq));
        let erased = count(kept, wanted);
        if erased.payloads > 0 {
            forget(kept, wanted);
            let (execution, payloads) = (identity.execution, erased.payloads);
            let event = Event::PayloadsErased { execution, payloads, reason };
            self.ledger_mut(&identity.tenant).note(&identity.tenant, &Record { at, actor, event });
        }
        Ok(erased)
    }

    pub fn clean(&mut self, cleaning: Cleaning) -> Outcome<Cleaned> {
        if let Some(open) = cleaning.statuses.iter().find(|status| !status.has_ended()) {
            return Err(Error::Invalid(format!("executions that are {} have not ended", open.as_str())));
        }
        let ended = Status::ALL.into_iter().filter(|status| status.has_ended());
        let wanted =
            ended.filter(|status| cleaning.statuses.is_empty() || cleaning.statuses.contains(status));
        Ok(wanted.fold(Cleaned::default(), |sum, status| {
            let more = self.clean_batch(&cleaning, status);
            Cleaned {
                executions: sum.executions + more.executions,
                entries: sum.entries + more.entries,
                payloads: sum.payloads + more.payloads,
                bytes: sum.bytes + more.bytes,
            }
        }))
    }

    /// Cleans up what has one status, longest untouched first.
    fn clean_batch(&mut self, cleaning: &Cleaning, status: Status) -> Cleaned {
        let Cleaning { tenant, untouched_since, what, dry_run, actor, at, reason, .. } = cleaning;
        let workers = &self.workers;
        let is_wanted = |kept: &Kept| {
            let is_old = kept.row.status == status && kept.row.last_at < *untouched_since;
            is_old && kept.letters.is_empty() && is_free(kept, workers, *at)
        };
        let ledger = self.tenants.entry(tenant.clone()).or_default();
        let mut batch: Vec<&mut Kept> = ledger.executions.iter_mut().filter(|kept| is_wanted(kept)).collect();
        batch.sort_by_key(|kept| (kept.row.last_at, kept.number));
        let (mut cleaned, mut events, mut removed) = (Cleaned::default(), Vec::new(), Vec::new());
        for kept in batch {
            let Erased { payloads, bytes } = count(kept, |_| true);
            let execution = kept.id.clone();
            match what {
                CleanedPart::Payloads if payloads == 0 => continue,
                CleanedPart::Payloads => {
                    events.push(Event::PayloadsErased { execution, payloads, reason: reason.clone() });
                }
                CleanedPart::Executions => {
                    let (entries, head) = (kept.lines.len() as u64, kept.head().hash);
                    cleaned.entries += entries;
                    removed.push(Removed { execution, entries, head });
                }
            }
            cleaned.executions += 1;
            cleaned.payloads += payloads;
            cleaned.bytes += bytes;
            if !dry_run {
                forget(kept, |_| true);
            }
        }
        if *dry_run {
            return cleaned;
        }
        ledger.executions.retain(|kept| removed.iter().all(|gone| gone.execution != kept.id));
        if !removed.is_empty() {
            events.push(Event::ExecutionsRemoved { executions: removed, reason: reason.clone() });
        }
        for event in events {
            ledger.note(tenant, &Record { at: *at, actor: actor.clone(), event });
        }
        cleaned
    }
}

fn count(kept: &Kept, wanted: impl Fn(u64) -> bool) -> Erased {
    let lines = kept.lines.iter().filter(|line| wanted(line.sealed.entry.seq));
    let payloads = lines.flat_map(|line| &line.sealed.payloads);
    payloads.fold(Erased::default(), |sum, payload| Erased {
        payloads: sum.payloads + 1,
        bytes: sum.bytes + payload.bytes.len() as u64,
    })
}

fn forget(kept: &mut Kept, wanted: impl Fn(u64) -> bool) {
    let lines = kept.lines.iter_mut().filter(|line| wanted(line.sealed.entry.seq));
    lines.for_each(|line| line.sealed.payloads.clear());
}
