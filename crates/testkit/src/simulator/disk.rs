//! The journal's place in the simulation: sealed entries, payloads apart, one owner at a time.

use super::mutation::{self, DriverMutation};
use crate::chance::Chance;
use rutter_core::execution::Identity;
use rutter_core::hash::Hash;
use rutter_core::journal::chain::{self, Chain, Entry};
use rutter_core::journal::event::Record;
use rutter_core::journal::payload::{Commitment, Salt, SealedPayload};
use rutter_core::plan::Plan;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug)]
pub struct Disk {
    identity: Identity,
    chain: Chain,
    /// What was appended, as it was before it was sealed.
    pub records: Vec<Record>,
    entries: Vec<Entry>,
    payloads: HashMap<Commitment, SealedPayload>,
    pub plans: HashMap<Hash, Arc<Plan>>,
    epoch: u64,
}

/// Somebody else owns the execution, or has written since.
#[derive(Debug, PartialEq, Eq)]
pub struct Fenced;

impl Disk {
    pub fn new(identity: Identity) -> Disk {
        Disk {
            chain: Chain::new(identity.tenant.clone(), identity.execution.clone()),
            identity,
            records: Vec::new(),
            entries: Vec::new(),
            payloads: HashMap::new(),
            plans: HashMap::new(),
            epoch: 0,
        }
    }

    /// Makes the caller the only owner; all earlier ones are fenced from now on.
    pub fn claim(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// Appends in one piece, or not at all.
    pub fn append(
        &mut self,
        epoch: u64,
        head: usize,
        records: &[Record],
        chance: &mut Chance,
    ) -> Result<(), Fenced> {
        let owns = (epoch, head) == (self.epoch, self.records.len());
        if !owns && !mutation::is_active(DriverMutation::SkipFence) {
            return Err(Fenced);
        }
        for record in records {
            let mut salts = || {
                let mut salt = [0; 16];
                salt[..8].copy_from_slice(&chance.draw().to_be_bytes());
                salt[8..].copy_from_slice(&chance.draw().to_be_bytes());
                Salt(salt)
            };
            let (entry, payloads) = self.chain.seal(record, &mut salts).expect("live payloads are present");
            self.entries.push(entry);
            self.payloads.extend(payloads.into_iter().map(|payload| (payload.commitment, payload)));
            self.records.push(record.clone());
        }
        Ok(())
    }

    /// Reads everything back from the sealed bytes.
    pub fn read_back(&self) -> Result<Vec<Record>, String> {
        let find = |commitment: Commitment| self.payloads.get(&commitment).cloned();
        let (tenant, execution) = (&self.identity.tenant, &self.identity.execution);
        chain::verify_chain(tenant, execution, &self.entries, &find).map_err(|broken| broken.to_string())?;
        let mut chain = Chain::new(tenant.clone(), execution.clone());
        self.entries
            .iter()
            .map(|entry| {
                let stored = chain.follow(entry).map_err(|why| why.to_string())?;
                let mut record = stored.open(&find).map_err(|wrong| wrong.to_string())?;
                record.event.supply_plan(&|hash| self.plans.get(&hash).cloned());
                Ok(record)
            })
            .collect()
    }
}
