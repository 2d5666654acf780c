//! The dashboard over real HTTP, and its drawings.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod dashboard;
mod drawing;
