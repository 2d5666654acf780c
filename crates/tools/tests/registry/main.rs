//! The registry: what it offers, and the one path every call takes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod breaker;
mod catalog;
mod ending;
mod hostile;
mod path;
mod report;
mod secrets;
mod stage;
mod trouble;
