//! Writing: plans, openings, entries, letters. Each is checked whole before anything changes.

use super::holding::check_lease;
use super::state::{Asked, History, Kept, LEDGER, Ledger, Outcome, Revision, State, no_execution, open};
use rutter_core::execution::Identity;
use rutter_core::id::PlanId;
use rutter_core::journal::chain::{Chain, Head};
use rutter_core::journal::event::{Event, Record};
use rutter_core::limits;
use rutter_core::plan::Plan;
use rutter_core::port::Error;
use rutter_core::port::journal::{
    Append, Appended, Lease, Letter, Loaded, NewLetter, NewPlan, Opened, Opening, Posted, Request, Saved,
    Sealed,
};
use std::collections::HashMap;
use std::sync::Arc;

impl State {
    pub fn save(&mut self, new: NewPlan) -> Outcome<Saved> {
        let ledger = self.ledger_mut(&new.tenant);
        let newest = ledger.history(&new.id).and_then(|history| history.revisions.last());
        let found = newest.map_or(0, |newest| newest.summary.revision);
        if newest.is_some_and(|newest| newest.summary.hash == new.plan.hash) {
            return Ok(Saved::Already { revision: found });
        }
        if let Some(expected) = new.expected.filter(|expected| *expected != found) {
            let (expected, found) = (u64::from(expected), u64::from(found));
            return Err(Error::Conflict { what: format!("plan {}", new.id), expected, found });
        }
        let revision = found + 1;
        let kept = Revision::new(new.id.clone(), revision, &new.plan, new.actor.clone(), new.at);
        match ledger.plans.iter_mut().find(|history| history.id == new.id) {
            Some(history) => history.revisions.push(kept),
            None => ledger.plans.push(History { id: new.id.clone(), revisions: vec![kept] }),
        }
        let (plan, name) = (new.plan.hash, new.plan.name.clone());
        let event = Event::PlanSaved { id: new.id, revision, plan, name };
        ledger.note(&new.tenant, &Record { at: new.at, actor: new.actor, event });
        Ok(Saved::New { revision })
    }

    pub fn open(&mut self, opening: Opening) -> Outcome<Opened> {
        let Opening { identity, plan, request, worker, entries, row } = opening;
        check_entries(Chain::new(identity.tenant.clone(), identity.execution.clone()).head(), &entries)?;
        if entries.first().is_none_or(|first| first.kind != "execution_opened") {
            return Err(Error::Invalid("a journal begins with execution_opened".into()));
        }
        if identity.execution.as_str() == LEDGER {
            return Err(Error::Invalid(format!("{LEDGER:?} is the ledger's own journal")));
        }
        let number = self.opened + 1;
        let ledger = self.ledger_mut(&identity.tenant);
        if let Some(asked) = answered(ledger, request.as_ref())? {
            return Ok(Opened::Already { execution: asked.execution.clone() });
        }
        if let Some(kept) = ledger.find(&identity.execution) {
            return match has(kept, &entries) {
                true => Ok(Opened::Already { execution: identity.execution }),
                false => Err(Error::Conflict {
                    what: format!("execution {}", kept.id),
                    expected: 0,
                    found: kept.head().seq,
                }),
            };
        }
        let tags = ledger.revision(&plan, row.plan)?.summary.tags.clone();
        remember(ledger, request, &identity);
        let lines = ledger.place(entries);
        let epoch = u64::from(worker.is_some());
        let lease = worker.clone().map(|worker| Lease { identity: identity.clone(), worker, epoch });
        ledger.executions.push(Kept {
            id: identity.execution,
            number,
            plan,
            tags,
            row,
            owner: worker,
            epoch,
            lines,
            letters: Vec::new(),
        });
        self.opened = number;
        Ok(Opened::New { lease })
    }

    pub fn append(&mut self, append: Append) -> Outcome<Appended> {
        let Append { lease, expected, entries, row, consumed, forgotten } = append;
        let identity = &lease.identity;
        check_entries(expected, &entries)?;
        let kept = self.kept(identity)?;
        check_lease(kept, &lease)?;
        if !entries.is_empty() && has(kept, &entries) {
            return Ok(Appended::Already);
        }
        let head = kept.head();
        if head != expected {
            let what = format!("the journal of {}", kept.id);
            return Err(Error::Conflict { what, expected: expected.seq, found: head.seq });
        }
        let plan = kept.plan.clone();
        let ledger = self.ledger_mut(&identity.tenant);
        ledger.revision(&plan, row.plan)?;
        let lines = ledger.place(entries);
        let is_forgotten =
            |key: &String, asked: &Asked| forgotten.contains(key) && asked.execution == identity.execution;
        ledger.requests.retain(|key, asked| !is_forgotten(key, asked));
        let kept = self.kept_mut(identity)?;
        kept.lines.extend(lines);
        kept.row = row;
        kept.letters.retain(|letter| !consumed.contains(&letter.number));
        Ok(Appended::New)
    }

    pub fn post(&mut self, letter: NewLetter) -> Outcome<Posted> {
        let NewLetter { identity, request, actor, at, bytes } = letter;
        limit("letter_bytes_max", limits::LETTER_BYTES_MAX, bytes.len())?;
        let number = self.posted + 1;
        let waiting = self.kept(&identity)?.letters.len();
        let ledger = self.ledger_mut(&identity.tenant);
        if answered(ledger, request.as_ref())?.is_some() {
            return Ok(Posted::Already);
        }
        limit("letters_max", limits::LETTERS_MAX, waiting + 1)?;
        remember(ledger, request, &identity);
        self.kept_mut(&identity)?.letters.push(Letter { number, actor, at, bytes });
        self.posted = number;
        Ok(Posted::New { letter: number })
    }

    pub fn load(&self, identity: &Identity) -> Outcome<Loaded> {
        let kept = self.kept(identity)?;
        let ledger = self.tenants.get(&identity.tenant).ok_or_else(|| no_execution(&identity.execution))?;
        let mut chain = Chain::new(identity.tenant.clone(), identity.execution.clone());
        let mut plans: HashMap<_, Arc<Plan>> = HashMap::new();
        let mut records = Vec::new();
        for line in &kept.lines {
            let sealed = &line.sealed;
            let damaged = |why: String| Error::Corrupt(format!("entry {}: {why}", sealed.entry.seq));
            let stored = chain.follow(&sealed.entry).map_err(|why| damaged(why.to_string()))?;
            let mut record = open(stored, &sealed.payloads).map_err(damaged)?;
            if let Event::ExecutionOpened { plan, .. } | Event::Replanned { plan, .. } = &record.event
                && !plans.contains_key(&plan.hash)
            {
                plans.insert(plan.hash, find_plan(ledger, &kept.plan, plan.hash)?.rebuild()?);
            }
            record.event.supply_plan(&|hash| plans.get(&hash).cloned());
            records.push(record);
        }
        let (head, plan) = (kept.head(), kept.plan.clone());
        Ok(Loaded { head, plan, records, letters: kept.letters.clone() })
    }
}

fn find_plan<'a>(ledger: &'a Ledger, id: &PlanId, hash: rutter_core::hash::Hash) -> Outcome<&'a Revision> {
    ledger.revision(id, hash).map_err(|missing| Error::Corrupt(missing.to_string()))
}

/// What became of this request before; another request under its key is refused.
fn answered<'a>(ledger: &'a Ledger, request: Option<&Request>) -> Outcome<Option<&'a Asked>> {
    let Some(request) = request else { return Ok(None) };
    limit("request_key_bytes_max", limits::REQUEST_KEY_BYTES_MAX, request.key.len())?;
    if request.key.is_empty() || !request.key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::Invalid("a request key has visible ASCII characters only".into()));
    }
    match ledger.requests.get(&request.key) {
        Some(asked) if asked.digest != request.digest => Err(Error::KeyReused { key: request.key.clone() }),
        asked => Ok(asked),
    }
}

fn remember(ledger: &mut Ledger, request: Option<Request>, identity: &Identity) {
    if let Some(Request { key, digest }) = request {
        ledger.requests.insert(key, Asked { digest, execution: identity.execution.clone() });
    }
}

/// Whether these very entries were written before.
fn has(kept: &Kept, entries: &[Sealed]) -> bool {
    entries.iter().all(|sealed| {
        let line = usize::try_from(sealed.entry.seq).ok().and_then(|seq| kept.lines.get(seq.checked_sub(1)?));
        line.is_some_and(|line| line.sealed.entry.hash == sealed.entry.hash)
    })
}

/// Checks the entries by themselves: that they follow each other from there on, and that none is too large.
fn check_entries(mut head: Head, entries: &[Sealed]) -> Outcome<()> {
    limit("append_entries_max", limits::APPEND_ENTRIES_MAX, entries.len())?;
    entries.iter().try_for_each(|sealed| {
        let entry = &sealed.entry;
        limit("entry_bytes_max", limits::ENTRY_BYTES_MAX, entry.bytes.len())?;
        for payload in &sealed.payloads {
            limit("payload_bytes_max", limits::PAYLOAD_BYTES_MAX, payload.bytes.len())?;
        }
        if entry.seq != head.seq.saturating_add(1) || entry.prev != head.hash || !entry.is_linked() {
            return Err(Error::Invalid(format!(
                "entry {} does not follow from entry {}",
                entry.seq, head.seq
            )));
        }
        head = Head { seq: entry.seq, hash: entry.hash };
        Ok(())
    })
}

fn limit(limit: &'static str, max: usize, found: usize) -> Outcome<()> {
    match found <= max {
        true => Ok(()),
        false => Err(Error::Limit { limit, max: max as u64, found: found as u64 }),
    }
}
