//! Who somebody is and what they may do, however they come in.

pub mod scope;

pub use scope::{Scope, Scopes};
