//! Payloads: what was sent, what came back, what somebody showed as evidence.

use serde_json::Value;
use std::sync::Arc;

/// A payload in memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    Present(Arc<Value>),
    /// Its bytes are gone; the commitment in the entry still stands.
    Erased,
}

impl Payload {
    pub fn value(&self) -> Option<&Arc<Value>> {
        match self {
            Payload::Present(value) => Some(value),
            Payload::Erased => None,
        }
    }
}
