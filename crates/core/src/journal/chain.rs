//! The hash chain of one execution: each entry is bound to everything before it.
//!
//! `hash = SHA-256("rutter/entry/v1" ‖ prev ‖ bytes)`, where the bytes are exactly the stored bytes. The
//! first `prev` is a hash of tenant and execution, so that no two executions share a beginning.

use super::codec::{self, ErasedPayload, StoredRecord};
use super::event::EventRecord;
use super::payload::{PayloadMismatch, PayloadSalt, SealedPayload};
use crate::hash::Hash;
use crate::id::{ExecutionId, TenantId};
use std::sync::Arc;

/// One event sealed into the chain. The first has sequence number 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub seq: u64,
    pub bytes: Arc<[u8]>,
    pub prev: Hash,
    pub hash: Hash,
}

impl Entry {
    /// Whether the hash matches the bytes and the previous hash.
    pub fn is_linked(&self) -> bool {
        link(self.prev, &self.bytes) == self.hash
    }
}

/// The end of a chain: its last entry, or 0 and the initial hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHead {
    pub seq: u64,
    pub hash: Hash,
}

/// The chain of one execution, as far as it has been written or read.
#[derive(Clone, Debug)]
pub struct HashChain {
    tenant: TenantId,
    execution: ExecutionId,
    head: ChainHead,
}

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryDefect {
    #[error("its bytes do not match its hash")]
    Altered,
    #[error("its bytes cannot be read: {0}")]
    Undecodable(codec::Error),
    #[error("it belongs to execution {execution} of tenant {tenant}")]
    Foreign { tenant: TenantId, execution: ExecutionId },
    #[error("it is stored as entry {stored_as}, but its bytes say entry {says}")]
    Renumbered { stored_as: u64, says: u64 },
    #[error("entry {expected} is missing before it")]
    Missing { expected: u64 },
    #[error("it comes before entry {expected}")]
    Reordered { expected: u64 },
    #[error("its number was already used by an earlier entry")]
    Duplicated,
    #[error("it does not follow from the entry before it")]
    Detached,
    #[error(transparent)]
    Payload(#[from] PayloadMismatch),
}

impl HashChain {
    pub fn new(tenant: TenantId, execution: ExecutionId) -> HashChain {
        let first = Hash::of_fields("rutter/journal/v1", &[tenant.as_str().as_bytes(), execution.as_str().as_bytes()]);
        HashChain { tenant, execution, head: ChainHead { seq: 0, hash: first } }
    }

    /// Continues at the head of a chain that is known to be intact.
    pub fn resume(tenant: TenantId, execution: ExecutionId, head: ChainHead) -> HashChain {
        HashChain { tenant, execution, head }
    }

    pub fn head(&self) -> ChainHead {
        self.head
    }

    /// Seals a record as the next entry and separates its payloads.
    pub fn seal(
        &mut self,
        record: &EventRecord,
        salts: &mut dyn FnMut() -> PayloadSalt,
    ) -> Result<(Entry, Vec<SealedPayload>), ErasedPayload> {
        let seq = self.head.seq.saturating_add(1);
        let (stored, payloads) = StoredRecord::split(&self.tenant, &self.execution, seq, record, salts)?;
        let bytes: Arc<[u8]> = stored.encode().into();
        let entry = Entry { seq, prev: self.head.hash, hash: link(self.head.hash, &bytes), bytes };
        self.head = ChainHead { seq, hash: entry.hash };
        Ok((entry, payloads))
    }

    /// Checks that `entry` is the next one, decodes it and advances the head.
    pub fn follow(&mut self, entry: &Entry) -> Result<StoredRecord, EntryDefect> {
        let Entry { seq, prev, hash, ref bytes } = *entry;
        let before = self.head;
        self.check(seq, prev, hash, bytes)?;
        codec::decode(bytes).map_err(|error| {
            self.head = before;
            EntryDefect::Undecodable(error)
        })
    }

    /// Checks that these bytes are the next entry and advances the head. The event is not decoded.
    pub fn check(&mut self, seq: u64, prev: Hash, hash: Hash, bytes: &[u8]) -> Result<(), EntryDefect> {
        let expected = self.head.seq.saturating_add(1);
        if link(prev, bytes) != hash {
            // A store without `prev` columns passes our head as `prev`, which is wrong if an entry is missing.
            let is_late = seq > expected && prev == self.head.hash;
            return Err(if is_late { EntryDefect::Missing { expected } } else { EntryDefect::Altered });
        }
        let says = codec::envelope(bytes).map_err(EntryDefect::Undecodable)?;
        if says.tenant != self.tenant.as_str() || says.execution != self.execution.as_str() {
            let (tenant, execution) = (TenantId::new(&says.tenant), ExecutionId::new(&says.execution));
            return Err(EntryDefect::Foreign { tenant, execution });
        }
        if says.seq != seq {
            return Err(EntryDefect::Renumbered { stored_as: seq, says: says.seq });
        }
        if seq > expected {
            return Err(EntryDefect::Missing { expected });
        }
        if seq < expected {
            return Err(EntryDefect::Duplicated);
        }
        if prev != self.head.hash {
            return Err(EntryDefect::Detached);
        }
        self.head = ChainHead { seq, hash };
        Ok(())
    }
}

fn link(prev: Hash, bytes: &[u8]) -> Hash {
    Hash::of(&[b"rutter/entry/v1", &prev.0, bytes])
}

#[cfg(test)]
mod tests;
