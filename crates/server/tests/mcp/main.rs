//! The MCP surface over a real database and real tools, spoken to in its own protocol.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod deck;
mod drafting;
mod finding;
mod ground;
mod ledger;
mod pages;
mod plans;
mod prompts;
mod recording;
mod resources;
mod shop;
mod sizes;
mod steering;
mod subscriptions;
mod summaries;
mod tickets;
