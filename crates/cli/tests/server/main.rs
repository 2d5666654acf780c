//! The server and those who come to it: `rutter mcp`, `serve`, `stop`, and commands that find the database taken. Real
//! processes, real sockets; what took effect is counted in a file.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]
#![cfg(target_os = "linux")]

mod agent;
mod daemon;
mod front;
mod keys;
mod stage;
mod through;
mod web;
