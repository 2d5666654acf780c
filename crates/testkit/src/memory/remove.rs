//! Removing: payloads, or whole executions. The hashes, which a real ledger keeps, nobody here asks for.

use super::state::{Kept, Outcome, State};
use rutter_core::journal::event::{Event, Record, Removed};
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
        let Cleaning { tenant, statuses, untouched_since, what, dry_run, actor, at, reason } = cleaning;
        let ledger = self.ledger_mut(&tenant);
        let is_wanted = |kept: &Kept| {
            let status = kept.row.status;
            status.has_ended()
                && (statuses.is_empty() || statuses.contains(&status))
                && kept.row.last_at < untouched_since
                && kept.letters.is_empty()
        };
        let mut cleaned = Cleaned::default();
        let mut events = Vec::new();
        let mut removed = Vec::new();
        for kept in ledger.executions.iter_mut().filter(|kept| is_wanted(kept)) {
            let Erased { payloads, bytes } = count(kept, |_| true);
            match what {
                CleanedPart::Payloads if payloads == 0 => continue,
                CleanedPart::Payloads => {
                    let (execution, reason) = (kept.id.clone(), reason.clone());
                    events.push(Event::PayloadsErased { execution, payloads, reason });
                }
                CleanedPart::Executions => {
                    let (execution, entries, head) =
                        (kept.id.clone(), kept.lines.len() as u64, kept.head().hash);
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
        if dry_run {
            return Ok(cleaned);
        }
        ledger.executions.retain(|kept| removed.iter().all(|gone| gone.execution != kept.id));
        ledger.requests.retain(|_, asked| removed.iter().all(|gone| gone.execution != asked.execution));
        if !removed.is_empty() {
            events.push(Event::ExecutionsRemoved { executions: removed, reason });
        }
        for event in events {
            ledger.note(&tenant, &Record { at, actor: actor.clone(), event });
        }
        Ok(cleaned)
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
