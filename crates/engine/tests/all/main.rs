//! The tests of the engine, in one binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod driving;
