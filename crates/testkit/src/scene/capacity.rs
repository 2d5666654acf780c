//! The capacity for calls in a scenario, where servers can be paused.

use rutter_core::execution::input::{CallCapacity, CallRoom};
use rutter_core::id::ToolName;
use rutter_core::time::Timestamp;
use rutter_core::tool::{FailureCategory, ToolFailure};
use std::collections::BTreeMap;

/// Why a server that is paused takes no calls.
pub fn paused() -> ToolFailure {
    ToolFailure::new(FailureCategory::Unavailable, "the circuit breaker is open")
}

/// The capacity at one moment.
pub(super) struct SceneCapacity<'a> {
    pub now: Timestamp,
    pub room: u32,
    pub paused: &'a BTreeMap<ToolName, Timestamp>,
}

impl CallCapacity for SceneCapacity<'_> {
    fn try_acquire(&mut self, tool: &ToolName) -> CallRoom {
        match self.paused.get(tool).filter(|until| **until > self.now) {
            Some(until) => CallRoom::Paused { until: *until, failure: paused() },
            None => self.room.try_acquire(tool),
        }
    }

    fn try_acquire_paused(&mut self, tool: &ToolName) -> bool {
        self.room.try_acquire_paused(tool)
    }
}
