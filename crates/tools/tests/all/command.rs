//! Commands, with real programs: what they get, what they may do, and the outcome of each end.
#![cfg(target_os = "linux")]

mod arguments;
mod config;
mod drift;
mod ends;
mod fixture;
mod hostile;
