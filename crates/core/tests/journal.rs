//! The journal as others meet it: its bytes for ever, its exports, and what tampering with them shows.

#[path = "journal/golden.rs"]
mod golden;
#[path = "journal/ledger.rs"]
mod ledger;
#[path = "journal/samples.rs"]
mod samples;
#[path = "journal/tamper.rs"]
mod tamper;
