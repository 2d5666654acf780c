//! Keeping executions: who may write, and what was written. Acknowledged means: on disk.

use super::Answer;
use crate::actor::Actor;
use crate::execution::Identity;
use crate::execution::row::Row;
use crate::hash::Hash;
use crate::id::{ExecutionId, PlanId, TenantId, WorkerId};
use crate::journal::chain::{Chain, Entry, Head};
use crate::journal::codec::ErasedPayload;
use crate::journal::event::Record;
use crate::journal::payload::{Salt, SealedPayload};
use crate::plan::Plan;
use crate::time::Timestamp;
use std::sync::Arc;

pub trait Journal: Send + Sync {
    /// Keeps a plan as the next revision of its id. Bytes and tools that are the newest already are not kept twice,
    /// whatever was expected. A new revision is recorded in the ledger's own journal.
    fn save(&self, plan: NewPlan) -> Answer<'_, Saved>;

    /// Begins the journal of a new execution, whose plan must have been saved. A request that was made before, or
    /// the same entries under the same name, are answered with [`Opened::Already`]; another use of the name is a
    /// [`super::Error::Conflict`].
    fn open(&self, opening: Opening) -> Answer<'_, Opened>;

    /// Takes up to `limit` executions that are due and that no living worker holds, of any tenant, longest due first.
    /// Each gets the next epoch. A worker renews before it claims: one that never did counts as dead.
    fn claim(&self, claim: Claim) -> Answer<'_, Vec<Lease>>;

    /// Says that a worker lives, and until when it may be believed to, that moment included. It is never shortened.
    fn renew(&self, worker: &WorkerId, until: Timestamp) -> Answer<'_, ()>;

    /// Reads an execution back, each entry checked against the chain. That of another tenant is not found.
    fn load(&self, identity: &Identity) -> Answer<'_, Loaded>;

    /// Appends in one piece or not at all: entries, payloads, row, consumed letters.
    ///
    /// Refused as [`super::Error::Fenced`] when the lease is no longer the newest, and as
    /// [`super::Error::Conflict`] when the journal does not end at `expected`. The same entries once more
    /// are answered with [`Appended::Already`] and change nothing, even if the journal has gone on since. Without
    /// entries only the row changes, and letters are answered. The row's plan must have been saved.
    fn append(&self, append: Append) -> Answer<'_, Appended>;

    /// Puts a letter into an execution's inbox and makes the execution due, until the letter is answered; an
    /// execution that has ended too.
    fn post(&self, letter: NewLetter) -> Answer<'_, Posted>;

    /// Gives an execution back, for any worker to take. Doing so again does no harm while nobody has taken it.
    fn release(&self, lease: Lease) -> Answer<'_, ()>;
}

/// A request that may come twice: the same key means the same request, and `digest` tells if it is not. A tenant's
/// keys are of visible ASCII, and shared by openings and letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub key: String,
    pub digest: Hash,
}

#[derive(Clone, Debug)]
pub struct NewPlan {
    pub tenant: TenantId,
    pub id: PlanId,
    pub plan: Arc<Plan>,
    /// The newest revision the author has seen; `None` does not ask.
    pub expected: Option<u32>,
    pub actor: Actor,
    pub at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    New { revision: u32 },
    Already { revision: u32 },
}

impl Saved {
    pub fn revision(self) -> u32 {
        match self {
            Saved::New { revision } | Saved::Already { revision } => revision,
        }
    }
}

/// An event sealed for its journal, with what a store looks at without reading the bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    pub entry: Entry,
    /// In the order of their commitments in the event.
    pub payloads: Vec<SealedPayload>,
    pub kind: &'static str,
    pub at: Timestamp,
    pub actor: Actor,
    pub words: Option<String>,
}

impl Sealed {
    pub fn seal(
        chain: &mut Chain,
        record: &Record,
        salts: &mut dyn FnMut() -> Salt,
    ) -> Result<Sealed, ErasedPayload> {
        let (entry, payloads) = chain.seal(record, salts)?;
        let (kind, words) = (record.event.kind(), record.event.words());
        Ok(Sealed { entry, payloads, kind, at: record.at, actor: record.actor.clone(), words })
    }
}

#[derive(Clone, Debug)]
pub struct Opening {
    pub identity: Identity,
    pub plan: PlanId,
    /// Whoever asks twice with one key gets the execution of the first time.
    pub request: Option<Request>,
    /// Who drives it from the start; `None` leaves it to whoever claims it.
    pub worker: Option<WorkerId>,
    pub entries: Vec<Sealed>,
    pub row: Row,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    New {
        lease: Option<Lease>,
    },
    /// There was such a request before, and it opened this execution.
    Already {
        execution: ExecutionId,
    },
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub worker: WorkerId,
    pub now: Timestamp,
    pub limit: u32,
}

/// The right of one worker to write one execution. A later epoch ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub identity: Identity,
    pub worker: WorkerId,
    pub epoch: u64,
}

#[derive(Clone, Debug)]
pub struct Loaded {
    pub head: Head,
    pub plan: PlanId,
    /// With their payloads, and with the plans they name.
    pub records: Vec<Record>,
    /// Oldest first.
    pub letters: Vec<Letter>,
}

#[derive(Clone, Debug)]
pub struct Append {
    pub lease: Lease,
    pub expected: Head,
    pub entries: Vec<Sealed>,
    pub row: Row,
    /// Letters that these entries answer; a number that is no letter of this execution is left alone.
    pub consumed: Vec<u64>,
    /// Keys of letters that were refused: nothing came of them, so the same may be asked again. Those of
    /// other executions are left alone.
    pub forgotten: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    New,
    /// These very entries were there already.
    Already,
}

#[derive(Clone, Debug)]
pub struct NewLetter {
    pub identity: Identity,
    pub request: Option<Request>,
    pub actor: Actor,
    pub at: Timestamp,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    New { letter: u64 },
    Already,
}

/// Something asked of an execution that its worker has not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    pub number: u64,
    pub actor: Actor,
    pub at: Timestamp,
    pub bytes: Vec<u8>,
}
