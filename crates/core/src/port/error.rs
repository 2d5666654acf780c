//! Errors of a store, and how to react to them.

use crate::id::ExecutionId;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("another worker holds execution {execution}, at epoch {epoch}")]
    Fenced { execution: ExecutionId, epoch: u64 },
    #[error("{what} is at {found}, expected {expected}")]
    Conflict { what: String, expected: u64, found: u64 },
    #[error("there is no {what} {id:?}")]
    NotFound { what: &'static str, id: String },
    #[error("the request key {key:?} was already used for a different request")]
    KeyReused { key: String },
    #[error("{what} {id} is in use: executions of it that have not ended: {executions}")]
    InUse { what: &'static str, id: String, executions: u64 },
    #[error("{limit} is {max}, this has {found}")]
    Limit { limit: &'static str, max: u64, found: u64 },
    #[error("{0}")]
    Invalid(String),

    #[error("the write queue is full")]
    Overloaded,
    #[error("the disk is full: {0}")]
    DiskFull(String),
    #[error("the store is read-only: {0}")]
    ReadOnly(String),
    /// A commit failed, and it may or may not have been written.
    #[error("it is unknown whether this was written: {0}")]
    Unknown(String),
    #[error("the stored data is damaged: {0}")]
    Corrupt(String),
    #[error("the store failed: {0}")]
    Io(String),
    #[error("the store is closed")]
    Closed,

    #[error("process {pid} has {path} open")]
    Locked { path: String, pid: String },
    #[error("the database has schema {found}, this program knows {known}")]
    Schema { found: u64, known: u64 },
    #[error("SQLite {found} is older than {oldest} and can damage a database")]
    Engine { found: String, oldest: &'static str },
    #[error("the query is too broad: {0}")]
    TooBroad(String),
}

/// How to react to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorReaction {
    /// Refuse the request: the caller asked for something impossible.
    Refuse,
    /// The same request may succeed a little later.
    Retry,
    /// Reload the head first: the entries may have been written.
    Reload,
    /// The operator must repair the store first.
    Stop,
}

/// Every code; a test compares them with the documentation.
pub const CODES: &[&str] = &[
    "store.fenced",
    "store.conflict",
    "store.not_found",
    "store.key_reused",
    "store.in_use",
    "store.limit",
    "store.invalid",
    "store.overloaded",
    "store.disk_full",
    "store.read_only",
    "store.unknown",
    "store.corrupt",
    "store.io",
    "store.closed",
    "store.locked",
    "store.schema",
    "store.engine",
    "store.too_broad",
];

impl Error {
    /// Stable and documented in docs/errors.md.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Fenced { .. } => "store.fenced",
            Error::Conflict { .. } => "store.conflict",
            Error::NotFound { .. } => "store.not_found",
            Error::KeyReused { .. } => "store.key_reused",
            Error::InUse { .. } => "store.in_use",
            Error::Limit { .. } => "store.limit",
            Error::Invalid(_) => "store.invalid",
            Error::Overloaded => "store.overloaded",
            Error::DiskFull(_) => "store.disk_full",
            Error::ReadOnly(_) => "store.read_only",
            Error::Unknown(_) => "store.unknown",
            Error::Corrupt(_) => "store.corrupt",
            Error::Io(_) => "store.io",
            Error::Closed => "store.closed",
            Error::Locked { .. } => "store.locked",
            Error::Schema { .. } => "store.schema",
            Error::Engine { .. } => "store.engine",
            Error::TooBroad(_) => "store.too_broad",
        }
    }

    pub fn reaction(&self) -> ErrorReaction {
        match self {
            Error::Conflict { .. }
            | Error::NotFound { .. }
            | Error::KeyReused { .. }
            | Error::InUse { .. }
            | Error::Limit { .. }
            | Error::Invalid(_)
            | Error::TooBroad(_) => ErrorReaction::Refuse,
            Error::Overloaded | Error::DiskFull(_) => ErrorReaction::Retry,
            Error::Fenced { .. } | Error::Unknown(_) => ErrorReaction::Reload,
            Error::ReadOnly(_)
            | Error::Corrupt(_)
            | Error::Io(_)
            | Error::Closed
            | Error::Locked { .. }
            | Error::Schema { .. }
            | Error::Engine { .. } => ErrorReaction::Stop,
        }
    }
}
