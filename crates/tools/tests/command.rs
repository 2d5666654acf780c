//! Commands, with real programs: what they are given, what they may do, and how each end is told.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

#[path = "command/arguments.rs"]
mod arguments;
#[path = "command/bench.rs"]
mod bench;
#[path = "command/config.rs"]
mod config;
#[path = "command/drift.rs"]
mod drift;
#[path = "command/ends.rs"]
mod ends;
#[path = "command/hostile.rs"]
mod hostile;
