//! Third-party clients connect to Rutter over stdio and over HTTP, and each runs one whole session.
#![cfg(target_os = "linux")]

mod agents;
pub mod fixture;
mod installed;
mod story;
