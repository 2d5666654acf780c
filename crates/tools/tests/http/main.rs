//! HTTP tools against real sockets: what the server saw, what it did, and what we say about it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod answers;
mod canaries;
mod configuration;
mod outcomes;
mod redirects;
mod registry;
mod slots;
mod stage;
