//! The simulator and what the tests of Rutter share.

pub mod scene;
