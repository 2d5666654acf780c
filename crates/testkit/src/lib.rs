//! What the tests of Rutter share: chance that can be repeated, the simulator, one execution on stage, a store in
//! memory, the suite that every store must pass, and the torture of the real program.

pub mod chance;
pub mod conformance;
pub mod memory;
pub mod on_disk;
pub mod panic;
pub mod scene;
pub mod simulator;
pub mod torture;
