//! The hash chain of one execution: each entry is bound to everything before it.
//!
//! `hash = SHA-256("rutter/entry/v1" ‖ prev ‖ bytes)`, where the bytes are exactly those that are stored. The
//! first `prev` is a hash of tenant and execution, so that no two executions share a beginning.

use super::codec::{self, ErasedPayload, Stored};
use super::event::Record;
use super::payload::{Commitment, Salt, SealedPayload, Wrong};
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
    /// Whether the hash is that of the bytes and of what they follow.
    pub fn is_linked(&self) -> bool {
        link(self.prev, &self.bytes) == self.hash
    }
}

/// Where a chain ends: its last entry, or 0 and the hash the first will follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub seq: u64,
    pub hash: Hash,
}

/// The chain of one execution, as far as it has been written or read.
#[derive(Clone, Debug)]
pub struct Chain {
    tenant: TenantId,
    execution: ExecutionId,
    head: Head,
}

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("its bytes are not the ones that were hashed")]
    Altered,
    #[error("its bytes cannot be read: {0}")]
    Undecodable(codec::Error),
    #[error("it belongs to execution {execution} of tenant {tenant}")]
    Foreign { tenant: TenantId, execution: ExecutionId },
    #[error("it is kept as entry {kept}, but says it is entry {says}")]
    Renumbered { kept: u64, says: u64 },
    #[error("entry {expected} is missing before it")]
    Missing { expected: u64 },
    #[error("it stands before entry {expected}")]
    Reordered { expected: u64 },
    #[error("there was an entry with its number before")]
    Duplicated,
    #[error("it does not follow from the entry before it")]
    Detached,
    #[error(transparent)]
    Payload(#[from] Wrong),
}

/// The first entry that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {seq}: {why}")]
pub struct Broken {
    pub seq: u64,
    pub why: Why,
}

/// What an intact chain amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intact {
    pub head: Head,
    /// Payloads that were erased: their commitments stand, their bytes are gone.
    pub erased: u64,
}

impl Chain {
    pub fn new(tenant: TenantId, execution: ExecutionId) -> Chain {
        let first = Hash::of_fields(
            "rutter/journal/v1",
            &[tenant.as_str().as_bytes(), execution.as_str().as_bytes()],
        );
        Chain { tenant, execution, head: Head { seq: 0, hash: first } }
    }

    /// Goes on where a chain that is known to be intact ended.
    pub fn resume(tenant: TenantId, execution: ExecutionId, head: Head) -> Chain {
        Chain { tenant, execution, head }
    }

    pub fn head(&self) -> Head {
        self.head
    }

    /// Seals a record into the next entry and splits its payloads off.
    pub fn seal(
        &mut self,
        record: &Record,
        salts: &mut dyn FnMut() -> Salt,
    ) -> Result<(Entry, Vec<SealedPayload>), ErasedPayload> {
        let seq = self.head.seq.saturating_add(1);
        let (stored, payloads) = Stored::split(&self.tenant, &self.execution, seq, record, salts)?;
        let bytes: Arc<[u8]> = stored.encode().into();
        let entry = Entry { seq, prev: self.head.hash, hash: link(self.head.hash, &bytes), bytes };
        self.head = Head { seq, hash: entry.hash };
        Ok((entry, payloads))
    }

    /// Checks that `entry` is the next one and goes on behind it.
    pub fn follow(&mut self, entry: &Entry) -> Result<Stored, Why> {
        let expected = self.head.seq.saturating_add(1);
        if !entry.is_linked() {
            // Whoever keeps no links cannot know what it follows when the one before is gone.
            let is_late = entry.seq > expected && entry.prev == self.head.hash;
            return Err(if is_late { Why::Missing { expected } } else { Why::Altered });
        }
        let stored = codec::decode(&entry.bytes).map_err(Why::Undecodable)?;
        if stored.tenant != self.tenant || stored.execution != self.execution {
            return Err(Why::Foreign { tenant: stored.tenant, execution: stored.execution });
        }
        if stored.seq != entry.seq {
            return Err(Why::Renumbered { kept: entry.seq, says: stored.seq });
        }
        if entry.seq > expected {
            return Err(Why::Missing { expected });
        }
        if entry.seq < expected {
            return Err(Why::Duplicated);
        }
        if entry.prev != self.head.hash {
            return Err(Why::Detached);
        }
        self.head = Head { seq: entry.seq, hash: entry.hash };
        Ok(stored)
    }
}

/// Checks all entries of an execution and their payloads; `find` answers `None` for an erased payload.
pub fn verify_chain(
    tenant: &TenantId,
    execution: &ExecutionId,
    entries: &[Entry],
    find: &dyn Fn(Commitment) -> Option<SealedPayload>,
) -> Result<Intact, Broken> {
    let mut chain = Chain::new(tenant.clone(), execution.clone());
    let mut erased = 0;
    for (at, entry) in entries.iter().enumerate() {
        let broken = |why| Broken { seq: entry.seq, why };
        let stored = chain.follow(entry).map_err(|why| match why {
            Why::Missing { expected } if entries[at..].iter().any(|later| later.seq == expected) => {
                broken(Why::Reordered { expected })
            }
            why => broken(why),
        })?;
        for commitment in stored.commitments() {
            match find(commitment) {
                Some(sealed) => sealed.check(commitment).map_err(|wrong| broken(wrong.into()))?,
                None => erased += 1,
            }
        }
    }
    Ok(Intact { head: chain.head, erased })
}

fn link(prev: Hash, bytes: &[u8]) -> Hash {
    Hash::of(&[b"rutter/entry/v1", &prev.0, bytes])
}

#[cfg(test)]
mod tests;
