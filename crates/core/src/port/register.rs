//! The register: small items stored beside the journals, such as API keys, webhooks, alerts, read positions, and the
//! data of the built-in tools.
//!
//! An item has a version that counts its changes. Several items change atomically, together with an entry in the
//! ledger's own journal where the change must be auditable.

use super::StoreFuture;
use super::query::{ListPage, Pagination};
use crate::id::TenantId;
use crate::journal::event::EventRecord;
use crate::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;

pub trait Register: Send + Sync {
    fn find(&self, tenant: &TenantId, kind: RegisterKind, id: &str) -> StoreFuture<'_, Option<RegisterItem>>;

    /// All items of a kind, ordered by id.
    fn list(&self, tenant: &TenantId, kind: RegisterKind, page: Pagination) -> StoreFuture<'_, ListPage<RegisterItem>>;

    /// The number of items of a kind.
    fn count(&self, tenant: &TenantId, kind: RegisterKind) -> StoreFuture<'_, u64>;

    /// The tenants that have items of a kind, ordered by name.
    fn tenants(&self, kind: RegisterKind) -> StoreFuture<'_, Vec<TenantId>>;

    /// Applies all changes or none. An unexpected version is a [`super::Error::Conflict`].
    fn write(&self, changes: RegisterWrite) -> StoreFuture<'_, ()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegisterKind {
    /// An API key, by the hash of its secret.
    Key,
    /// A browser session, by the hash of its cookie.
    Session,
    /// A one-time sign-in link.
    Link,
    /// A destination for events.
    Webhook,
    /// An alert rule.
    Rule,
    /// An alert.
    Alert,
    /// A silence, which mutes alerts for a while.
    Silence,
    /// The counts of one day.
    Tally,
    /// The ledger position of a reader.
    Mark,
    /// The reply to a request with an idempotency key.
    Reply,
    /// A timer of `timer.set` that has not fired, by the hash of its name.
    Timer,
    /// The reply to a call of a built-in tool, by the hash of the call's key.
    ToolReply,
    /// A text of `memory.store`.
    Memory,
    /// A notification that was delivered.
    Notification,
    /// The last known definition of a tool, by its name.
    Definition,
}

impl RegisterKind {
    pub const ALL: [RegisterKind; 15] = [
        RegisterKind::Key,
        RegisterKind::Session,
        RegisterKind::Link,
        RegisterKind::Webhook,
        RegisterKind::Rule,
        RegisterKind::Alert,
        RegisterKind::Silence,
        RegisterKind::Tally,
        RegisterKind::Mark,
        RegisterKind::Reply,
        RegisterKind::Timer,
        RegisterKind::ToolReply,
        RegisterKind::Memory,
        RegisterKind::Notification,
        RegisterKind::Definition,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RegisterKind::Key => "key",
            RegisterKind::Session => "session",
            RegisterKind::Link => "link",
            RegisterKind::Webhook => "webhook",
            RegisterKind::Rule => "rule",
            RegisterKind::Alert => "alert",
            RegisterKind::Silence => "silence",
            RegisterKind::Tally => "tally",
            RegisterKind::Mark => "mark",
            RegisterKind::Reply => "reply",
            RegisterKind::Timer => "timer",
            RegisterKind::ToolReply => "tool_reply",
            RegisterKind::Memory => "memory",
            RegisterKind::Notification => "notification",
            RegisterKind::Definition => "definition",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct RegisterItem {
    pub id: String,
    /// 1 when created, plus one with every change.
    pub version: u64,
    pub changed_at: Timestamp,
    pub value: Arc<Value>,
}

#[derive(Clone, Debug)]
pub struct RegisterWrite {
    pub tenant: TenantId,
    pub at: Timestamp,
    pub changes: Vec<RegisterChange>,
    /// The entry for the ledger's own journal; it has no payload.
    pub record: Option<EventRecord>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RegisterChange {
    pub kind: RegisterKind,
    pub id: String,
    /// The version the caller has seen, 0 if there was no item; `None` skips the check.
    pub expected: Option<u64>,
    /// `None` removes the item; removing a missing item is not an error.
    pub value: Option<Value>,
}

impl RegisterChange {
    pub fn put(kind: RegisterKind, id: &str, value: Value) -> RegisterChange {
        RegisterChange { kind, id: id.to_owned(), expected: None, value: Some(value) }
    }

    pub fn remove(kind: RegisterKind, id: &str) -> RegisterChange {
        RegisterChange { kind, id: id.to_owned(), expected: None, value: None }
    }

    pub fn expecting(mut self, version: u64) -> RegisterChange {
        self.expected = Some(version);
        self
    }
}
