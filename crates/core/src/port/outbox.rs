//! What is still to be sent to somebody else's server, and what became of it.

use super::Answer;
use super::query::{Listing, Page};
use crate::id::TenantId;
use crate::journal::event::Record;
use crate::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};

pub trait Outbox: Send + Sync {
    /// How far a reader of the ledger has come; 0 when it has not begun.
    fn mark(&self, tenant: &TenantId, reader: &str) -> Answer<'_, u64>;

    /// Puts deliveries in and moves the reader's mark, in one piece: after a crash nothing is missing or there twice.
    /// A mark that is not where it is said to be is a [`super::Error::Conflict`].
    fn put(&self, tenant: &TenantId, moved: Option<Moved>, deliveries: Vec<NewDelivery>) -> Answer<'_, ()>;

    /// What is to be tried now, of any tenant, longest due first; to some destinations nothing is to be sent now.
    fn due(&self, now: Timestamp, besides: &[String], limit: u32) -> Answer<'_, Vec<Delivery>>;

    /// When the next one is due, if any is pending.
    fn next_due(&self) -> Answer<'_, Option<Timestamp>>;

    /// Records a try and what follows from it, in one piece with what the ledger's own journal is to say of it. One that
    /// is not pending any more is left alone.
    fn tried(
        &self,
        number: u64,
        attempt: DeliveryAttempt,
        then: Then,
        record: Option<Record>,
    ) -> Answer<'_, ()>;

    /// Newest first.
    fn deliveries(
        &self,
        tenant: &TenantId,
        filter: DeliveryFilter,
        page: Page,
    ) -> Answer<'_, Listing<Delivery>>;

    /// With every try; `None` when there is none of that number.
    fn delivery(
        &self,
        tenant: &TenantId,
        number: u64,
    ) -> Answer<'_, Option<(Delivery, Vec<DeliveryAttempt>)>>;

    /// Makes one that was delivered or given up pending again, and says so in the ledger's own journal. False when there is
    /// none; one that is pending stays as it is.
    fn again(
        &self,
        tenant: &TenantId,
        number: u64,
        at: Timestamp,
        record: Option<Record>,
    ) -> Answer<'_, bool>;

    /// How many have which state, to one destination or all.
    fn counts(&self, tenant: &TenantId, destination: Option<&str>) -> Answer<'_, DeliveryCounts>;

    /// Removes those that are delivered or given up and were last touched before; answers how many.
    fn prune(&self, tenant: &TenantId, before: Timestamp) -> Answer<'_, u64>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub reader: String,
    pub from: u64,
    pub to: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// The id of a webhook.
    pub destination: String,
    /// What the receiver tells doubles by; one destination gets each event once.
    pub event: String,
    /// The type of the event, for lists.
    pub kind: String,
    pub body: Vec<u8>,
    pub due_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub number: u64,
    pub tenant: TenantId,
    pub destination: String,
    pub event: String,
    pub kind: String,
    pub body: Vec<u8>,
    pub state: DeliveryState,
    pub attempts: u32,
    pub created_at: Timestamp,
    pub due_at: Option<Timestamp>,
    /// How the last try went.
    pub last: Option<DeliveryAttempt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    Pending,
    Delivered,
    /// Given up; a person may send it again.
    Dead,
}

impl DeliveryState {
    pub const ALL: [DeliveryState; 3] =
        [DeliveryState::Pending, DeliveryState::Delivered, DeliveryState::Dead];

    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryState::Pending => "pending",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Dead => "dead",
        }
    }
}

/// One try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryAttempt {
    pub at: Timestamp,
    pub took_ms: u64,
    /// What the receiver answered, if it did.
    pub status: Option<u16>,
    /// In words: the beginning of the answer, or why there is none.
    pub outcome: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Delivered,
    Again { at: Timestamp },
    Dead,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub destination: Option<String>,
    pub state: Option<DeliveryState>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeliveryCounts {
    pub pending: u64,
    pub delivered: u64,
    pub dead: u64,
}

/// Sends one request to somebody else's server: never to an address it must not reach, never twice by itself.
pub trait Post: Send + Sync {
    /// Whether this address may be sent to at all, as far as one can tell without asking for its name.
    fn check(&self, url: &str) -> Result<(), String>;

    fn send(&self, parcel: Parcel) -> super::tools::Reply<'_, Receipt>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub timeout: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    Answered {
        status: u16,
        /// What the receiver asked to wait.
        retry_after: Option<Millis>,
        /// The beginning of what it said.
        text: String,
    },
    /// It may or may not have arrived.
    Failed { why: String },
    /// The address must not be reached; nothing was sent.
    Refused { why: String },
}
