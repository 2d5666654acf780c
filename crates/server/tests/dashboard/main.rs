//! The dashboard over a real database, real tools and real HTTP.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod answers;
#[allow(dead_code, reason = "the other surface's tests use more of it")]
#[path = "../mcp/deck.rs"]
mod deck;
#[path = "../mcp/ground.rs"]
mod ground;
mod harbour;
mod journal;
mod lists;
mod markup;
mod pages;
#[allow(dead_code, reason = "the other surface's tests use more of it")]
#[path = "../mcp/shop.rs"]
mod shop;
mod steering;
#[path = "../watch/tamper.rs"]
mod tamper;
mod texts;
