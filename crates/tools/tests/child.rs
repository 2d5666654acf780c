//! Children: what they can reach, and that none of them outlives us.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

#[path = "child/bench.rs"]
mod bench;
#[path = "child/reach.rs"]
mod reach;
#[path = "child/survivors.rs"]
mod survivors;
