//! The server and its clients: `rutter mcp`, `serve`, `stop`, and commands while the database is in use. Real
//! processes, real sockets; effects are counted in a file.
#![cfg(target_os = "linux")]

mod agent;
mod daemon;
mod doors;
pub(crate) mod fixture;
mod front;
mod going_on;
mod keys;
mod optimize;
mod plans;
mod reasons;
mod sent;
mod through;
mod verbs;
mod views;
mod web;
