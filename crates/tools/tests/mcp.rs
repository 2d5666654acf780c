//! The connector to MCP servers: with real servers, with hostile ones, and with one that speaks the newest protocol.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

#[path = "mcp/harness.rs"]
mod harness;
#[path = "mcp/hostile.rs"]
mod hostile;
#[path = "mcp/http.rs"]
mod http;
#[path = "mcp/modern.rs"]
mod modern;
#[path = "mcp/real.rs"]
mod real;
