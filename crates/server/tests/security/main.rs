//! What must not get through: counted cases, asked of a real server over real connections.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]
#![allow(dead_code, reason = "other tests use more of what is shared")]

#[path = "../mcp/deck.rs"]
mod deck;
mod forgery;
mod framing;
#[path = "../mcp/ground.rs"]
mod ground;
mod harbour;
mod names;
mod programs;
mod rights;
mod routes;
mod sizes;
mod slow;
