//! The MCP server with a real database and real tools, called over its protocol.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod mcp;
mod references;
