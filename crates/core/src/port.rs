//! Ports: what the engine needs from stores and tools. Each port is small; its implementations know only the core.
//!
//! [`journal`] stores executions and lets one worker at a time write each; [`query`] searches them, [`feed`] follows
//! the ledger as it grows, [`proof`] proves that nothing was altered; [`upkeep`] removes old executions; [`tools`]
//! calls the tools that plans name; [`register`] stores small items, [`outbox`] deliveries; [`alert_commands`] runs
//! the operator's alert commands. All methods return futures: a store may be a file or a remote database.

pub mod alert_commands;
pub mod error;
pub mod feed;
pub mod journal;
pub mod outbox;
pub mod proof;
pub mod query;
pub mod register;
pub mod tools;
pub mod upkeep;

pub use error::Error;

use std::pin::Pin;

/// The result of a store's port.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;
