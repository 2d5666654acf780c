//! What the tests of Rutter share: chance that can be repeated, the simulator, and one execution on stage.

pub mod chance;
pub mod scene;
pub mod simulator;
