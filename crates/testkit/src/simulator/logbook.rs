//! A simulated process at its journal: it seals, appends, and after a crash the next one claims and loads.

use crate::chance::Chance;
use rutter_core::actor::Actor;
use rutter_core::execution::row::Row;
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::{PlanId, WorkerId};
use rutter_core::journal::chain::Chain;
use rutter_core::journal::event::Record;
use rutter_core::journal::payload::Salt;
use rutter_core::plan::Plan;
use rutter_core::port::Error;
use rutter_core::port::journal::{
    Append, Appended, Claim, Journal, Lease, Loaded, NewLetter, NewPlan, Opened, Opening, Sealed,
};
use rutter_core::time::{Millis, Timestamp};
use rutter_store::wait;
use std::sync::Arc;

pub struct Logbook<'a> {
    journal: &'a dyn Journal,
    plan: PlanId,
    /// What was appended, as it was before it was sealed.
    pub records: Vec<Record>,
    pub hand: Hand,
    /// Letters the process knows of and has not answered.
    letters: Vec<u64>,
    /// Until when the process is believed to live.
    alive_until: Timestamp,
}

/// What a process needs to write: its lease, and where it believes the journal ends.
#[derive(Clone, Debug)]
pub struct Hand {
    pub lease: Lease,
    pub chain: Chain,
}

impl std::fmt::Debug for Logbook<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logbook").field("hand", &self.hand).field("records", &self.records).finish()
    }
}

impl<'a> Logbook<'a> {
    /// Saves the plan and opens the execution, as its first worker.
    pub fn open(
        journal: &'a dyn Journal,
        identity: Identity,
        plan: &Arc<Plan>,
        opened: Record,
        row: Row,
        chance: &mut Chance,
    ) -> Result<Logbook<'a>, String> {
        let worker = worker(1);
        let lease = Lease { identity: identity.clone(), worker: worker.clone(), epoch: 1 };
        let mut chain = Chain::new(identity.tenant.clone(), identity.execution.clone());
        let entries = seal(&mut chain, std::slice::from_ref(&opened), chance);
        let hand = Hand { lease: lease.clone(), chain };
        let (plan_id, records, letters) = (PlanId::new("plan_1"), vec![opened], Vec::new());
        let alive_until = row.opened_at;
        let logbook = Logbook { journal, plan: plan_id, records, hand, letters, alive_until };
        logbook.save(plan)?;
        wait(journal.renew(&worker, alive_until)).map_err(told)?;
        let (plan, worker) = (logbook.plan.clone(), Some(worker));
        let opening = Opening { identity, plan, request: None, worker, entries, row };
        match wait(journal.open(opening)).map_err(told)? {
            Opened::New { lease: Some(given) } if given == lease => Ok(logbook),
            other => Err(format!("a new execution was answered with {other:?}")),
        }
    }

    /// Keeps a plan before any entry names it.
    pub fn save(&self, plan: &Arc<Plan>) -> Result<(), String> {
        let (tenant, actor) = (self.hand.lease.identity.tenant.clone(), Actor::agent("pilot"));
        let (id, plan) = (self.plan.clone(), plan.clone());
        let new = NewPlan { tenant, id, plan, expected: None, actor, at: Timestamp(0) };
        wait(self.journal.save(new)).map(|_| ()).map_err(told)
    }

    /// Appends as the process that holds the execution.
    pub fn append(&mut self, records: &[Record], row: Row, chance: &mut Chance) -> Result<(), Error> {
        let mut hand = self.hand.clone();
        let consumed = std::mem::take(&mut self.letters);
        append(self.journal, &mut hand, records, row, consumed, chance)?;
        self.hand = hand;
        self.records.extend_from_slice(records);
        Ok(())
    }

    /// Appends as a process that may not hold it any more. What it writes must not count.
    pub fn append_as(&self, mut hand: Hand, records: &[Record], row: Row) -> Result<(), Error> {
        append(self.journal, &mut hand, records, row, Vec::new(), &mut Chance::new(0))
    }

    /// Another process takes over what the last one has left, and reads it back.
    pub fn take_over(&mut self, now: Timestamp) -> Result<Execution, String> {
        let identity = self.hand.lease.identity.clone();
        let worker = worker(self.hand.lease.epoch + 1);
        // A moment later nobody believes any more that the last worker lives.
        let now = now.max(self.alive_until).plus(Millis(1));
        self.alive_until = now;
        wait(self.journal.renew(&worker, now)).map_err(told)?;
        let claim = || Claim { worker: worker.clone(), now, limit: 2 };
        let mut leases = wait(self.journal.claim(claim())).map_err(told)?;
        if leases.is_empty() {
            // Nothing is due: nobody would look at it before something is asked of it.
            let (actor, bytes) = (Actor::person("operator"), b"go on".to_vec());
            let letter = NewLetter { identity: identity.clone(), request: None, actor, at: now, bytes };
            wait(self.journal.post(letter)).map_err(told)?;
            leases = wait(self.journal.claim(claim())).map_err(told)?;
        }
        let lease = leases.pop().filter(|lease| lease.identity == identity && leases.is_empty());
        let lease = lease.ok_or("an execution that is due was not claimed, or not alone")?;
        if lease.epoch != self.hand.lease.epoch + 1 {
            return Err(format!("epoch {} follows {}", lease.epoch, self.hand.lease.epoch));
        }
        let loaded = self.load()?;
        self.letters = loaded.letters.iter().map(|letter| letter.number).collect();
        let (tenant, execution) = (identity.tenant.clone(), identity.execution.clone());
        self.hand = Hand { lease, chain: Chain::resume(tenant, execution, loaded.head) };
        let replayed = Execution::replay(identity, &loaded.records);
        replayed.map_err(|error| format!("the journal does not replay: {error}"))
    }

    /// Reads everything back, which must be what was appended.
    pub fn load(&self) -> Result<Loaded, String> {
        let loaded = wait(self.journal.load(&self.hand.lease.identity)).map_err(told)?;
        if loaded.records != self.records || loaded.head != self.hand.chain.head() {
            return Err("the journal read back is not what was appended".into());
        }
        Ok(loaded)
    }
}

fn append(
    journal: &dyn Journal,
    hand: &mut Hand,
    records: &[Record],
    row: Row,
    consumed: Vec<u64>,
    chance: &mut Chance,
) -> Result<(), Error> {
    let expected = hand.chain.head();
    let entries = seal(&mut hand.chain, records, chance);
    let append =
        Append { lease: hand.lease.clone(), expected, entries, row, consumed, forgotten: Vec::new() };
    match wait(journal.append(append))? {
        Appended::New => Ok(()),
        Appended::Already => Err(Error::Corrupt("entries that are new were there already".into())),
    }
}

fn seal(chain: &mut Chain, records: &[Record], chance: &mut Chance) -> Vec<Sealed> {
    let mut salts = || {
        let mut salt = [0; 16];
        salt[..8].copy_from_slice(&chance.draw().to_be_bytes());
        salt[8..].copy_from_slice(&chance.draw().to_be_bytes());
        Salt(salt)
    };
    let sealed = records.iter().map(|record| Sealed::seal(chain, record, &mut salts));
    sealed.map(|sealed| sealed.expect("live payloads are present")).collect()
}

/// Each epoch has a worker of its own.
fn worker(epoch: u64) -> WorkerId {
    WorkerId::new(&format!("worker_{epoch}"))
}

fn told(error: Error) -> String {
    format!("{}: {error}", error.code())
}
