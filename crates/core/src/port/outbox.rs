//! The outbox of webhook deliveries: pending ones and the results of their attempts.

use super::StoreFuture;
use super::query::{ListPage, Pagination};
use crate::id::TenantId;
use crate::journal::event::EventRecord;
use crate::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};

pub trait DeliveryOutbox: Send + Sync {
    /// The ledger position of a reader; 0 when it has read nothing yet.
    fn reader_position(&self, tenant: &TenantId, reader: &str) -> StoreFuture<'_, u64>;

    /// Adds deliveries and advances the reader's position atomically: a crash neither loses nor doubles a delivery.
    /// A position other than the expected one is a [`super::Error::Conflict`].
    fn put(&self, tenant: &TenantId, moved: Option<ReaderAdvance>, deliveries: Vec<NewDelivery>)
    -> StoreFuture<'_, ()>;

    /// Deliveries due now, of any tenant, longest due first; none to the destinations in `besides`.
    fn due(&self, now: Timestamp, besides: &[String], limit: u32) -> StoreFuture<'_, Vec<Delivery>>;

    /// When the next pending delivery is due.
    fn next_due(&self) -> StoreFuture<'_, Option<Timestamp>>;

    /// Records an attempt, its follow-up and the entry for the ledger's own journal atomically. A delivery that is no
    /// longer pending is left alone.
    fn record_attempt(
        &self,
        number: u64,
        attempt: DeliveryAttempt,
        then: DeliveryFollowUp,
        record: Option<EventRecord>,
    ) -> StoreFuture<'_, ()>;

    /// Newest first.
    fn deliveries(
        &self,
        tenant: &TenantId,
        filter: DeliveryFilter,
        page: Pagination,
    ) -> StoreFuture<'_, ListPage<Delivery>>;

    /// A delivery with all its attempts; `None` when there is none with this number.
    fn delivery(&self, tenant: &TenantId, number: u64) -> StoreFuture<'_, Option<(Delivery, Vec<DeliveryAttempt>)>>;

    /// Makes a delivered or dead delivery pending again and records that in the ledger's own journal. Returns false
    /// when there is no such delivery; a pending one is left alone.
    fn resend(
        &self,
        tenant: &TenantId,
        number: u64,
        at: Timestamp,
        record: Option<EventRecord>,
    ) -> StoreFuture<'_, bool>;

    /// Deliveries by state, for one destination or for all.
    fn counts(&self, tenant: &TenantId, destination: Option<&str>) -> StoreFuture<'_, DeliveryCounts>;

    /// Removes delivered and dead deliveries last changed before this time; returns how many.
    fn prune(&self, tenant: &TenantId, before: Timestamp) -> StoreFuture<'_, u64>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderAdvance {
    pub reader: String,
    pub from: u64,
    pub to: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// The id of a webhook.
    pub destination: String,
    /// The id by which the receiver detects duplicates; a destination gets each event once.
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
    /// The last attempt.
    pub last: Option<DeliveryAttempt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    Pending,
    Delivered,
    /// Given up; a person may resend it.
    Dead,
}

impl DeliveryState {
    pub const ALL: [DeliveryState; 3] = [DeliveryState::Pending, DeliveryState::Delivered, DeliveryState::Dead];

    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryState::Pending => "pending",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Dead => "dead",
        }
    }
}

/// One attempt to deliver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryAttempt {
    pub at: Timestamp,
    pub took_ms: u64,
    /// The HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// The beginning of the response, or why there is none.
    pub outcome: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryFollowUp {
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

/// Sends one HTTP request to an external server: never to a forbidden address, and without retries.
pub trait HttpSender: Send + Sync {
    /// Whether this URL is allowed, as far as can be known without a DNS lookup.
    fn check(&self, url: &str) -> Result<(), String>;

    fn send(&self, delivery: OutgoingRequest) -> super::tools::PortFuture<'_, SendOutcome>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingRequest {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub timeout: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    Answered {
        status: u16,
        /// The wait the receiver asked for.
        retry_after: Option<Millis>,
        /// The beginning of the response.
        text: String,
    },
    /// The request may or may not have arrived.
    Failed { why: String },
    /// The address is forbidden; nothing was sent.
    Refused { why: String },
}
