//! What happened, in order, sealed so that nobody can change it quietly.

pub mod event;
pub mod payload;
