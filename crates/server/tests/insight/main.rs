//! Counts, metrics and traces of real executions over a real database and real tools.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod counting;
#[allow(dead_code, reason = "other tests use more of what is shared")]
#[path = "../mcp/ground.rs"]
mod ground;
mod metrics;
mod stage;
mod traces;
