//! What a store keeps about an execution beside its journal, so that it can be listed and found when due.

use super::view::Status;
use super::{Execution, Phase};
use crate::hash::Hash;
use crate::plan::Driver;
use crate::time::Timestamp;
use serde::Serialize;

/// Derived from the state; a store that compares it with a replay finds out whether it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub status: Status,
    pub driver: Driver,
    pub plan: Hash,
    pub revision: u32,
    /// Steps that have come to rest, and all of them.
    pub settled: u32,
    pub total: u32,
    /// How many things wait for somebody to say something.
    pub questions: u32,
    pub opened_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub last_at: Timestamp,
    /// When somebody must look at it, should its worker disappear; `None` until something is asked of it.
    pub due_at: Option<Timestamp>,
}

impl Execution {
    pub fn row(&self) -> Row {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        // What runs, and what could begin, cannot wait for a timer when nobody is there to see it through.
        let at_once = self.phase == Phase::Pending
            || !self.agenda.running.is_empty()
            || !self.agenda.to_judge.is_empty()
            || self.wants_room();
        Row {
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
            // A time long past is as good as now, and does not change with every entry.
            due_at: if at_once { Some(self.opened_at) } else { self.wake_at() },
        }
    }
}
