//! The MCP surface over a real database and real tools, spoken to in its own protocol.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod deck;
mod finding;
mod ledger;
mod pages;
mod plans;
mod recording;
mod shop;
mod sizes;
mod steering;
