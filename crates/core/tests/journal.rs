//! The journal as others meet it: its bytes for ever, its exports, and what tampering with them shows.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

#[path = "journal/golden.rs"]
mod golden;
#[path = "journal/ledger.rs"]
mod ledger;
#[path = "journal/samples.rs"]
mod samples;
#[path = "journal/tamper.rs"]
mod tamper;
