//! The ledger: what is signed, what is found when somebody changes it, and what a copy of it is worth.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod backup;
mod fixture;
mod following;
mod proving;
mod released;
mod signing;
mod tamper;
