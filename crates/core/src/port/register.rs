//! Small things an installation remembers beside its journals: keys, webhooks, alerts, how far somebody has read.
//!
//! A note has a version that counts its changes. Several notes are changed in one piece or not at all, and what
//! somebody should be able to look up later goes into the ledger's own journal with them.

use super::Answer;
use super::query::{Listing, Page};
use crate::id::TenantId;
use crate::journal::event::Record;
use crate::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;

pub trait Register: Send + Sync {
    fn find(&self, tenant: &TenantId, kind: Kind, id: &str) -> Answer<'_, Option<Note>>;

    /// All of a kind, by id.
    fn list(&self, tenant: &TenantId, kind: Kind, page: Page) -> Answer<'_, Listing<Note>>;

    /// All changes or none. A version that is not the expected one is a [`super::Error::Conflict`].
    fn write(&self, changes: Changes) -> Answer<'_, ()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Who may come in, by the hash of a secret.
    Key,
    /// A browser that was let in, by the hash of its cookie.
    Session,
    /// A link that lets one browser in once.
    Link,
    /// Where events are sent.
    Webhook,
    /// When somebody is to be told.
    Rule,
    /// What somebody was, or is to be, told.
    Alert,
    /// What nobody is told for a while.
    Silence,
    /// What was counted on one day.
    Tally,
    /// How far somebody has come in the ledger.
    Mark,
    /// The answer to a request that may come again.
    Reply,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Key,
        Kind::Session,
        Kind::Link,
        Kind::Webhook,
        Kind::Rule,
        Kind::Alert,
        Kind::Silence,
        Kind::Tally,
        Kind::Mark,
        Kind::Reply,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Key => "key",
            Kind::Session => "session",
            Kind::Link => "link",
            Kind::Webhook => "webhook",
            Kind::Rule => "rule",
            Kind::Alert => "alert",
            Kind::Silence => "silence",
            Kind::Tally => "tally",
            Kind::Mark => "mark",
            Kind::Reply => "reply",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    pub id: String,
    /// 1 when it was new, and one more with every change.
    pub version: u64,
    pub changed_at: Timestamp,
    pub value: Arc<Value>,
}

#[derive(Clone, Debug)]
pub struct Changes {
    pub tenant: TenantId,
    pub at: Timestamp,
    pub changes: Vec<Change>,
    /// What stands in the ledger's own journal about it; it carries no payload.
    pub record: Option<Record>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub kind: Kind,
    pub id: String,
    /// The version that was seen, 0 for none; `None` does not ask.
    pub expected: Option<u64>,
    /// `None` removes it; removing what is not there does no harm.
    pub value: Option<Value>,
}

impl Change {
    pub fn put(kind: Kind, id: &str, value: Value) -> Change {
        Change { kind, id: id.to_owned(), expected: None, value: Some(value) }
    }

    pub fn remove(kind: Kind, id: &str) -> Change {
        Change { kind, id: id.to_owned(), expected: None, value: None }
    }

    pub fn expecting(mut self, version: u64) -> Change {
        self.expected = Some(version);
        self
    }
}
