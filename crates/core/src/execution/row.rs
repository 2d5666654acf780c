//! The row that a store has for an execution beside its journal, to list it and to find it when it is due.

use super::view::ExecutionStatus;
use super::{Execution, ExecutionPhase};
use crate::hash::Hash;
use crate::plan::Driver;
use crate::time::Timestamp;
use serde::Serialize;

/// Derived from the state; a comparison with a replay shows whether a stored row was altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExecutionProjection {
    pub status: ExecutionStatus,
    pub driver: Driver,
    pub plan: Hash,
    pub revision: u32,
    /// The number of settled steps, and of all steps.
    pub settled: u32,
    pub total: u32,
    /// The number of open questions.
    pub questions: u32,
    pub opened_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub last_at: Timestamp,
    /// When another worker must take over if this one disappears; `None` until the next command.
    pub due_at: Option<Timestamp>,
}

impl Execution {
    pub fn row(&self) -> ExecutionProjection {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        // Without a worker, open attempts and parts that could start are due at once, without a timer.
        let at_once = self.phase == ExecutionPhase::Pending
            || !self.agenda.running.is_empty()
            || !self.agenda.to_evaluate.is_empty()
            || self.wants_room();
        ExecutionProjection {
            status: self.status(),
            driver: self.driver,
            plan: self.plan.hash,
            revision: self.revision,
            settled: count(self.steps.len() - self.unsettled),
            total: count(self.steps.len()),
            questions: count(self.questions().len()),
            opened_at: self.opened_at,
            started_at: self.started_at,
            last_at: self.last_at,
            // A time long past means now, and does not change with every entry.
            due_at: if at_once { Some(self.opened_at) } else { self.wake_at() },
        }
    }
}
