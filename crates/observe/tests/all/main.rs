//! Analytics, metrics, traces, webhooks and alerts of real executions.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod insight;
mod watch;
