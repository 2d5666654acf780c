//! Built-ins, on real files, with real receivers: one effect for each key, and nothing lost at a kill.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

#[path = "builtin/bench.rs"]
mod bench;
#[path = "builtin/memory.rs"]
mod memory;
#[path = "builtin/notify.rs"]
mod notify;
#[path = "builtin/receiver.rs"]
mod receiver;
#[path = "builtin/timer.rs"]
mod timer;
