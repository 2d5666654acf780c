//! Counts, metrics and traces of real executions over a real database and real tools.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod counting;
mod metrics;
mod stage;
mod traces;
