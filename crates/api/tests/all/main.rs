//! The HTTP API, authentication and attacks, on real ports with a real database and real tools.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod api;
mod auth;
mod security;
