//! Keys, links and sessions against a real database: who gets in, for how long, and what is left of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]
#![allow(dead_code, reason = "other tests use more of what is shared")]

#[path = "../mcp/deck.rs"]
mod deck;
#[path = "../mcp/ground.rs"]
mod ground;
#[path = "../security/harbour.rs"]
mod harbour;
mod keys;
mod sessions;
