//! The journal of a simulated process: it seals and appends, and after a crash the next one claims and loads.

use crate::chance::SeededRandom;
use rutter_core::actor::Actor;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::{PlanId, WorkerId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::plan::Plan;
use rutter_core::port::Error;
use rutter_core::port::journal::{
    AppendOutcome, AppendRequest, ClaimRequest, ExecutionOpening, Journal, Lease, LoadedExecution, NewCommand,
    NewRevision, OpenOutcome, RevisionScope, SealedEntry,
};
use rutter_core::time::{Millis, Timestamp};
use rutter_store::wait;
use std::sync::Arc;

pub struct SimulatedJournal<'a> {
    journal: &'a dyn Journal,
    plan: PlanId,
    /// The appended records, before they were sealed.
    pub records: Vec<EventRecord>,
    pub hand: WriterHandle,
    /// Commands the process knows of and has not answered.
    commands: Vec<u64>,
    /// Until when the process's lease is valid.
    alive_until: Timestamp,
}

/// What a process needs to write: its lease, and its idea of the journal's end.
#[derive(Clone, Debug)]
pub struct WriterHandle {
    pub lease: Lease,
    pub chain: HashChain,
}

impl std::fmt::Debug for SimulatedJournal<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimulatedJournal").field("hand", &self.hand).field("records", &self.records).finish()
    }
}

impl<'a> SimulatedJournal<'a> {
    /// Saves the plan and opens the execution, as its first worker.
    pub fn open(
        journal: &'a dyn Journal,
        identity: ExecutionIdentity,
        plan: &Arc<Plan>,
        opened: EventRecord,
        row: ExecutionProjection,
        chance: &mut SeededRandom,
    ) -> Result<SimulatedJournal<'a>, String> {
        let worker = worker(1);
        let lease = Lease { identity: identity.clone(), worker: worker.clone(), epoch: 1 };
        let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
        let entries = seal(&mut chain, std::slice::from_ref(&opened), chance);
        let hand = WriterHandle { lease: lease.clone(), chain };
        let (plan_id, records, stored_commands) = (PlanId::new("plan_1"), vec![opened], Vec::new());
        let alive_until = row.opened_at;
        let journal_writer =
            SimulatedJournal { journal, plan: plan_id, records, hand, commands: stored_commands, alive_until };
        journal_writer.save(plan)?;
        wait(journal.renew(&worker, alive_until)).map_err(error_text)?;
        let (plan, worker) = (journal_writer.plan.clone(), Some(worker));
        let opening = ExecutionOpening { identity, plan, request: None, worker, entries, row };
        match wait(journal.open(opening)).map_err(error_text)? {
            OpenOutcome::New { lease: Some(given) } if given == lease => Ok(journal_writer),
            other => Err(format!("a new execution was answered with {other:?}")),
        }
    }

    /// Saves a plan before any entry refers to it.
    pub fn save(&self, plan: &Arc<Plan>) -> Result<(), String> {
        let (tenant, actor) = (self.hand.lease.identity.tenant.clone(), Actor::agent("pilot"));
        let (id, plan) = (self.plan.clone(), plan.clone());
        let new = NewRevision { tenant, id, plan, expected: None, scope: RevisionScope::Plan, actor, at: Timestamp(0) };
        wait(self.journal.save(new)).map(|_| ()).map_err(error_text)
    }

    /// Appends as the process that holds the execution.
    pub fn append(
        &mut self,
        records: &[EventRecord],
        row: ExecutionProjection,
        chance: &mut SeededRandom,
    ) -> Result<(), Error> {
        let mut hand = self.hand.clone();
        let consumed = std::mem::take(&mut self.commands);
        append(self.journal, &mut hand, records, row, consumed, chance)?;
        self.hand = hand;
        self.records.extend_from_slice(records);
        Ok(())
    }

    /// Appends as a process that may have lost its lease. Its writes must not count.
    pub fn append_as(
        &self,
        mut hand: WriterHandle,
        records: &[EventRecord],
        row: ExecutionProjection,
    ) -> Result<(), Error> {
        append(self.journal, &mut hand, records, row, Vec::new(), &mut SeededRandom::new(0))
    }

    /// Another process takes over, and reads the journal back.
    pub fn take_over(&mut self, now: Timestamp) -> Result<Execution, String> {
        let identity = self.hand.lease.identity.clone();
        let worker = worker(self.hand.lease.epoch + 1);
        // A moment later the lease of the last worker has expired.
        let now = now.max(self.alive_until).plus(Millis(1));
        self.alive_until = now;
        wait(self.journal.renew(&worker, now)).map_err(error_text)?;
        let claim = || ClaimRequest { worker: worker.clone(), now, limit: 2 };
        let mut leases = wait(self.journal.claim(claim())).map_err(error_text)?;
        if leases.is_empty() {
            // Nothing is due: no worker would look at it before a command arrives.
            let (actor, bytes) = (Actor::person("operator"), b"go on".to_vec());
            let command = NewCommand { identity: identity.clone(), request: None, actor, at: now, bytes };
            wait(self.journal.enqueue(command)).map_err(error_text)?;
            leases = wait(self.journal.claim(claim())).map_err(error_text)?;
        }
        let lease = leases.pop().filter(|lease| lease.identity == identity && leases.is_empty());
        let lease = lease.ok_or("an execution that is due was not claimed, or not alone")?;
        if lease.epoch != self.hand.lease.epoch + 1 {
            return Err(format!("epoch {} follows {}", lease.epoch, self.hand.lease.epoch));
        }
        let loaded = self.load()?;
        self.commands = loaded.commands.iter().map(|stored_command| stored_command.number).collect();
        let (tenant, execution) = (identity.tenant.clone(), identity.execution.clone());
        self.hand = WriterHandle { lease, chain: HashChain::resume(tenant, execution, loaded.head) };
        let replayed = Execution::replay(identity, &loaded.records);
        replayed.map_err(|error| format!("the journal does not replay: {error}"))
    }

    /// Reads everything back, which must equal what was appended.
    pub fn load(&self) -> Result<LoadedExecution, String> {
        let loaded = wait(self.journal.load(&self.hand.lease.identity)).map_err(error_text)?;
        if loaded.records != self.records || loaded.head != self.hand.chain.head() {
            return Err("the journal read back differs from what was appended".into());
        }
        Ok(loaded)
    }
}

fn append(
    journal: &dyn Journal,
    hand: &mut WriterHandle,
    records: &[EventRecord],
    row: ExecutionProjection,
    consumed: Vec<u64>,
    chance: &mut SeededRandom,
) -> Result<(), Error> {
    let expected = hand.chain.head();
    let entries = seal(&mut hand.chain, records, chance);
    let append = AppendRequest {
        lease: hand.lease.clone(),
        expected,
        entries,
        row,
        decided_commands: consumed,
        refused_keys: Vec::new(),
    };
    match wait(journal.append(append))? {
        AppendOutcome::New => Ok(()),
        AppendOutcome::Already => Err(Error::Corrupt("new entries were already present".into())),
    }
}

fn seal(chain: &mut HashChain, records: &[EventRecord], chance: &mut SeededRandom) -> Vec<SealedEntry> {
    let mut salts = || {
        let mut salt = [0; 16];
        salt[..8].copy_from_slice(&chance.draw().to_be_bytes());
        salt[8..].copy_from_slice(&chance.draw().to_be_bytes());
        PayloadSalt(salt)
    };
    let sealed = records.iter().map(|record| SealedEntry::seal(chain, record, &mut salts));
    sealed.map(|sealed| sealed.expect("live payloads are present")).collect()
}

/// Each epoch has its own worker.
fn worker(epoch: u64) -> WorkerId {
    WorkerId::new(&format!("worker_{epoch}"))
}

fn error_text(error: Error) -> String {
    format!("{}: {error}", error.code())
}
