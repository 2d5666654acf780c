//! Built-ins, with a real database, with real receivers: one effect for each key, and nothing lost at a kill.
#![cfg(target_os = "linux")]

mod bench;
mod import;
mod memory;
mod notify;
mod receiver;
mod register;
mod repeat;
mod timer;
