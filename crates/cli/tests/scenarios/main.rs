//! What a buyer would try, with the real program and tools that have real effects. What happened is read from the log of
//! the tools; what the program says about it comes second.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod answer;
mod bulk;
mod incident;
mod lost_answer;
mod migration;
mod off_boarding;
mod order;
mod release;
mod settings;
mod stage;
mod steering;
mod trip;
mod wheel;
