//! Who somebody is and what they may do, however they come in.

pub mod scope;

pub use scope::{Scope, Scopes};

/// A browser whose cookie let a request in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Browser {
    /// What its forms must carry.
    pub csrf: String,
}
