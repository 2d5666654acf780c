//! The tests of the connectors and the registry, in one binary: real processes, real sockets, hostile servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod bell;
mod builtin;
mod child;
mod command;
mod fixture;
mod guard;
mod http;
mod limit;
mod mcp;
mod post;
mod registry;
mod secret;
