//! The HTTP API over a real port, a real database and real tools.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod documents;
mod executions;
mod fuzzing;
#[path = "../mcp/ground.rs"]
mod ground;
mod harbour;
mod ledger;
mod limits;
mod manual;
mod plans;
mod records;
mod service;
mod settings;
mod signals;
mod streams;
mod tools;
