//! Webhooks and alerts with real parts: a database on disk, an engine, tools, and receivers on real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod alerts;
#[path = "../mcp/ground.rs"]
mod ground;
mod receiver;
mod retries;
mod rules;
mod settings;
mod stage;
mod tamper;
mod troubles;
mod webhooks;
