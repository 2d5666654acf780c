//! Room for calls: how many at once, at which rate, and who is next.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod crowd;
mod grants;
mod places;
mod random;
mod rates;
mod turns;
