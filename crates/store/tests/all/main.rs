//! The tests of the store, in one binary: durability, ledger and queries.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod durable;
mod ledger;
mod query;
