//! Finding and removing what was kept.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod cleaning;
mod entries;
mod erasing;
mod executions;
mod paging;
mod plans;
mod stage;
