//! Clients that others wrote come to Rutter over pipes and over HTTP, and each tells one whole story.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]
#![cfg(target_os = "linux")]

mod agents;
mod harbour;
mod installed;
mod story;
