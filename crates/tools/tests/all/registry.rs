//! The registry: what it offers, and the one path every call takes.

mod breaker;
mod catalog;
mod definitions;
mod ending;
pub mod fixture;
mod hostile;
mod path;
mod report;
mod secrets;
mod trouble;
