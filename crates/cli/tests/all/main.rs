//! The tests of the program, in one binary: each module runs the real `rutter` and checks its output.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod adversary;
mod begin;
mod browser;
mod builtin;
mod clients;
mod demo;
mod documents;
mod fixture;
mod handover;
mod hostile;
mod inspector;
mod large_values;
mod lines;
mod plan;
mod policy;
mod recipes;
mod scenarios;
mod server;
mod store;
mod torture;
