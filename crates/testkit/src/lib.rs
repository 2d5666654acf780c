//! What the tests of Rutter share: chance that can be repeated, and the simulator.

pub mod chance;
pub mod simulator;
