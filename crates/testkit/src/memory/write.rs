//! Writing: plans, openings, entries, commands. Each is checked completely before anything changes.

use super::holding::check_lease;
use super::state::{
    AnsweredRequest, LEDGER, MemoryExecution, MemoryState, PlanRevisions, StoreResult, StoredRevision, TenantLedger,
    no_execution, open,
};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::PlanId;
use rutter_core::journal::chain::{ChainHead, HashChain};
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::limits;
use rutter_core::plan::Plan;
use rutter_core::port::Error;
use rutter_core::port::journal::{
    AppendOutcome, AppendRequest, EnqueueOutcome, ExecutionOpening, IdempotentRequest, Lease, LoadedExecution,
    NewCommand, NewRevision, OpenOutcome, PlanState, PlanStateChange, PlanStateOutcome, RevisionScope, SaveOutcome,
    SealedEntry, StoredCommand,
};
use std::collections::HashMap;
use std::sync::Arc;

impl MemoryState {
    pub fn save(&mut self, new: NewRevision) -> StoreResult<SaveOutcome> {
        let ledger = self.ledger_mut(&new.tenant);
        let history = ledger.history(&new.id);
        let is_missing = match new.scope {
            RevisionScope::Plan => history.is_some_and(|history| history.state == PlanState::Deleted),
            RevisionScope::Execution => history.is_none(),
        };
        if is_missing {
            return Err(Error::NotFound { what: "plan", id: new.id.to_string() });
        }
        let newest = history.and_then(|history| history.newest());
        let found = newest.map_or(0, |newest| newest.summary.revision);
        if newest.is_some_and(|newest| newest.summary.hash == new.plan.hash) {
            return Ok(SaveOutcome::Already { revision: found });
        }
        if new.scope == RevisionScope::Execution
            && let Ok(same) = ledger.revision(&new.id, new.plan.hash)
        {
            return Ok(SaveOutcome::Already { revision: same.summary.revision });
        }
        if let Some(expected) = new.expected.filter(|expected| *expected != found) {
            let (expected, found) = (u64::from(expected), u64::from(found));
            return Err(Error::Conflict { what: format!("plan {}", new.id), expected, found });
        }
        let revision = history.map_or(0, |history| history.revisions.len() as u32) + 1;
        let mut stored = StoredRevision::new(new.id.clone(), revision, &new.plan, new.actor.clone(), new.at);
        stored.summary.is_for_execution = new.scope == RevisionScope::Execution;
        match ledger.plans.iter_mut().find(|history| history.id == new.id) {
            Some(history) => {
                stored.summary.is_archived = history.state == PlanState::Archived;
                history.revisions.push(stored);
            }
            None => ledger.plans.push(PlanRevisions {
                id: new.id.clone(),
                state: PlanState::Active,
                revisions: vec![stored],
            }),
        }
        let (plan, name) = (new.plan.hash, new.plan.name.clone());
        let event = Event::PlanSaved { id: new.id, revision, plan, name };
        ledger.note(&new.tenant, &EventRecord { at: new.at, actor: new.actor, event });
        Ok(SaveOutcome::New { revision })
    }

    pub fn change_plan(&mut self, change: &PlanStateChange) -> StoreResult<PlanStateOutcome> {
        limit("reason_bytes_max", limits::REASON_BYTES_MAX, change.reason.len())?;
        let missing = || Error::NotFound { what: "plan", id: change.id.to_string() };
        let ledger = self.tenants.get_mut(&change.tenant).ok_or_else(missing)?;
        let users = ledger.executions.iter().filter(|execution| execution.plan == change.id);
        let (ended, open): (Vec<_>, Vec<_>) = users.partition(|execution| execution.row.status.has_ended());
        let (executions, open) = (ended.len() as u64, open.len() as u64);
        let found = ledger.plans.iter().position(|plan| plan.id == change.id && plan.state != PlanState::Deleted);
        let at = found.ok_or_else(missing)?;
        if ledger.plans[at].state == change.to {
            return Ok(PlanStateOutcome { is_new: false, executions: 0 });
        }
        let name = ledger.plans[at].newest().map(|newest| newest.summary.name.clone()).unwrap_or_default();
        let executions = if change.to == PlanState::Deleted { executions } else { 0 };
        match (change.to, open, executions) {
            (PlanState::Deleted, 1.., _) => {
                return Err(Error::InUse { what: "plan", id: change.id.to_string(), executions: open });
            }
            (PlanState::Deleted, 0, 0) => drop(ledger.plans.remove(at)),
            (to, ..) => {
                let history = &mut ledger.plans[at];
                history.state = to;
                for revision in &mut history.revisions {
                    revision.summary.is_archived = to == PlanState::Archived;
                }
            }
        }
        let record = EventRecord { at: change.at, actor: change.actor.clone(), event: change.event(&name) };
        ledger.note(&change.tenant, &record);
        Ok(PlanStateOutcome { is_new: true, executions })
    }

    pub fn open(&mut self, opening: ExecutionOpening) -> StoreResult<OpenOutcome> {
        let ExecutionOpening { identity, plan, request, worker, entries, row } = opening;
        check_entries(HashChain::new(identity.tenant.clone(), identity.execution.clone()).head(), &entries)?;
        if entries.first().is_none_or(|first| first.kind != "execution_opened") {
            return Err(Error::Invalid("a journal begins with execution_opened".into()));
        }
        if identity.execution.as_str() == LEDGER {
            return Err(Error::Invalid(format!("{LEDGER:?} is the ledger's own journal")));
        }
        let number = self.opened + 1;
        let ledger = self.ledger_mut(&identity.tenant);
        if let Some(asked) = answered(ledger, request.as_ref())? {
            return Ok(OpenOutcome::Already { execution: asked.execution.clone() });
        }
        if let Some(stored) = ledger.find(&identity.execution) {
            return match has(stored, &entries) {
                true => Ok(OpenOutcome::Already { execution: identity.execution }),
                false => Err(Error::Conflict {
                    what: format!("execution {}", stored.id),
                    expected: 0,
                    found: stored.head().seq,
                }),
            };
        }
        let opened = ledger.revision(&plan, row.plan)?;
        if ledger.history(&plan).is_none_or(|history| history.state != PlanState::Active) {
            return Err(Error::NotFound { what: "plan", id: plan.to_string() });
        }
        let tags = opened.summary.tags.clone();
        remember(ledger, request, &identity);
        let lines = ledger.place(entries);
        let epoch = u64::from(worker.is_some());
        let lease = worker.clone().map(|worker| Lease { identity: identity.clone(), worker, epoch });
        ledger.executions.push(MemoryExecution {
            id: identity.execution,
            number,
            plan,
            tags,
            row,
            owner: worker,
            epoch,
            lines,
            commands: Vec::new(),
        });
        self.opened = number;
        Ok(OpenOutcome::New { lease })
    }

    pub fn append(&mut self, append: AppendRequest) -> StoreResult<AppendOutcome> {
        let AppendRequest { lease, expected, entries, row, decided_commands: consumed, refused_keys: forgotten } =
            append;
        let identity = &lease.identity;
        check_entries(expected, &entries)?;
        let stored = self.find_execution(identity)?;
        check_lease(stored, &lease)?;
        if !entries.is_empty() && has(stored, &entries) {
            return Ok(AppendOutcome::Already);
        }
        let head = stored.head();
        if head != expected {
            let what = format!("the journal of {}", stored.id);
            return Err(Error::Conflict { what, expected: expected.seq, found: head.seq });
        }
        let plan = stored.plan.clone();
        let ledger = self.ledger_mut(&identity.tenant);
        ledger.revision(&plan, row.plan)?;
        let lines = ledger.place(entries);
        let is_forgotten =
            |key: &String, asked: &AnsweredRequest| forgotten.contains(key) && asked.execution == identity.execution;
        ledger.requests.retain(|key, asked| !is_forgotten(key, asked));
        let retained = self.find_execution_mut(identity)?;
        retained.lines.extend(lines);
        retained.row = row;
        retained.commands.retain(|command| !consumed.contains(&command.number));
        Ok(AppendOutcome::New)
    }

    pub fn post(&mut self, stored_command: NewCommand) -> StoreResult<EnqueueOutcome> {
        let NewCommand { identity, request, actor, at, bytes } = stored_command;
        limit("command_bytes_max", limits::COMMAND_BYTES_MAX, bytes.len())?;
        let number = self.posted + 1;
        let waiting = self.find_execution(&identity)?.commands.len();
        let ledger = self.ledger_mut(&identity.tenant);
        if answered(ledger, request.as_ref())?.is_some() {
            return Ok(EnqueueOutcome::Already);
        }
        limit("commands_max", limits::COMMANDS_MAX, waiting + 1)?;
        remember(ledger, request, &identity);
        self.find_execution_mut(&identity)?.commands.push(StoredCommand { number, actor, at, bytes });
        self.posted = number;
        Ok(EnqueueOutcome::New { command: number })
    }

    pub fn load(&self, identity: &ExecutionIdentity) -> StoreResult<LoadedExecution> {
        let retained = self.find_execution(identity)?;
        let ledger = self.tenants.get(&identity.tenant).ok_or_else(|| no_execution(&identity.execution))?;
        let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
        let mut plans: HashMap<_, Arc<Plan>> = HashMap::new();
        let mut records = Vec::new();
        for line in &retained.lines {
            let sealed = &line.sealed;
            let damaged = |why: String| Error::Corrupt(format!("entry {}: {why}", sealed.entry.seq));
            let stored = chain.follow(&sealed.entry).map_err(|why| damaged(why.to_string()))?;
            let mut record = open(stored, &sealed.payloads).map_err(damaged)?;
            if let Some(plan) = record.event.plan()
                && !plans.contains_key(&plan.hash)
            {
                plans.insert(plan.hash, find_plan(ledger, &retained.plan, plan.hash)?.rebuild()?);
            }
            record.event.supply_plan(&|hash| plans.get(&hash).cloned());
            records.push(record);
        }
        let (head, plan) = (retained.head(), retained.plan.clone());
        Ok(LoadedExecution { head, plan, records, commands: retained.commands.clone() })
    }
}

fn find_plan<'a>(
    ledger: &'a TenantLedger,
    id: &PlanId,
    hash: rutter_core::hash::Hash,
) -> StoreResult<&'a StoredRevision> {
    ledger.revision(id, hash).map_err(|missing| Error::Corrupt(missing.to_string()))
}

/// The earlier result of this request; another request under its key is refused.
fn answered<'a>(
    ledger: &'a TenantLedger,
    request: Option<&IdempotentRequest>,
) -> StoreResult<Option<&'a AnsweredRequest>> {
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

fn remember(ledger: &mut TenantLedger, request: Option<IdempotentRequest>, identity: &ExecutionIdentity) {
    if let Some(IdempotentRequest { key, digest }) = request {
        ledger.requests.insert(key, AnsweredRequest { digest, execution: identity.execution.clone() });
    }
}

/// Whether exactly these entries were written before.
fn has(stored: &MemoryExecution, entries: &[SealedEntry]) -> bool {
    entries.iter().all(|sealed| {
        let line = usize::try_from(sealed.entry.seq).ok().and_then(|seq| stored.lines.get(seq.checked_sub(1)?));
        line.is_some_and(|line| line.sealed.entry.hash == sealed.entry.hash)
    })
}

/// Checks the entries by themselves: that they follow each other, and that none is too large.
fn check_entries(mut head: ChainHead, entries: &[SealedEntry]) -> StoreResult<()> {
    limit("append_entries_max", limits::APPEND_ENTRIES_MAX, entries.len())?;
    entries.iter().try_for_each(|sealed| {
        let entry = &sealed.entry;
        limit("entry_bytes_max", limits::ENTRY_BYTES_MAX, entry.bytes.len())?;
        for payload in &sealed.payloads {
            limit("payload_bytes_max", limits::PAYLOAD_BYTES_MAX, payload.bytes.len())?;
        }
        if entry.seq != head.seq.saturating_add(1) || entry.prev != head.hash || !entry.is_linked() {
            return Err(Error::Invalid(format!("entry {} does not follow from entry {}", entry.seq, head.seq)));
        }
        head = ChainHead { seq: entry.seq, hash: entry.hash };
        Ok(())
    })
}

fn limit(limit: &'static str, max: usize, found: usize) -> StoreResult<()> {
    match found <= max {
        true => Ok(()),
        false => Err(Error::Limit { limit, max: max as u64, found: found as u64 }),
    }
}
