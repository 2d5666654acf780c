//! Shared by the tests of Rutter: repeatable randomness, an adversary, the simulator, one execution under test, a store
//! in memory, the suite that every store must pass, a failing disk, deliberate mistakes, and the torture of the real
//! program.

pub mod adversary;
pub mod chance;
pub mod conformance;
pub mod disk;
pub mod memory;
pub mod mutants;
pub mod on_disk;
pub mod panic;
pub mod scene;
#[cfg(feature = "server")]
pub mod server;
pub mod simulator;
pub mod torture;
