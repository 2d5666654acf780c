//! The tests of the core and the store that need the simulator or both stores, in one binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod checker;
mod conformance;
mod differential;
mod disk;
mod execution;
mod insight;
mod optimize;
mod preview;
mod simulation;
