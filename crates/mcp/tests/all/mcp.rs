//! The MCP server with a real database and real tools, called over its protocol.

mod drafting;
mod finding;
mod ledger;
mod pages;
mod plans;
mod prompts;
mod questions;
mod recording;
mod resources;
mod rights;
mod sizes;
mod steering;
mod subscriptions;
mod summaries;
mod tickets;
