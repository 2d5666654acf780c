//! The row that a store has for an execution beside its journal, to list it and to find it when it is due.

use super::view::ExecutionStatus;
use super::{Execution, ExecutionPhase};
use crate::hash::Hash;
use crate::journal::event::Deviation;
use crate::plan::Driver;
use crate::text::{cut, spelled};
use crate::time::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// The length of the line about its end.
const ENDING_CHARS_MAX: usize = 1_000;

/// Derived from the state; a comparison with a replay shows whether a stored row was altered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    /// Why it did not complete, is being stopped, or what it waits for; `None` in rows of older versions.
    pub cause: Option<String>,
    /// Steps that are completed and were not undone; `None` in rows of older versions.
    pub completed: Option<u32>,
    /// Once it has ended: its state in one line.
    pub ending: Option<String>,
    /// How often it departed from its plan, by kind; `None` in rows of older versions.
    pub deviations: Option<BTreeMap<Deviation, u32>>,
}

impl ExecutionProjection {
    /// What is to be said besides its status and its count: why it is where it is, and what it left behind.
    pub fn remark(&self) -> Option<&str> {
        let Some(ending) = &self.ending else { return self.cause.as_deref() };
        let rest = ending.strip_prefix(self.status.as_str()).unwrap_or(ending);
        match self.status {
            // One that completed has no cause, only what follows the count.
            ExecutionStatus::Completed => rest.split_once("; ").map(|(_, rest)| rest),
            _ => Some(rest.trim_start_matches([':', ',', ' '])),
        }
    }

    /// What its deviations are called in a list, each kind once: `second effect`, `2 forbidden`.
    pub fn deviation_marks(&self) -> Vec<String> {
        let mark = |(kind, count): (&Deviation, &u32)| match (spelled(kind).replace('_', " "), count) {
            (kind, 1) => kind,
            (kind, count) => format!("{count} {kind}"),
        };
        self.deviations.iter().flatten().map(mark).collect()
    }

    /// The state in one line, as in every answer.
    pub fn summary(&self) -> String {
        if let Some(ending) = &self.ending {
            return ending.clone();
        }
        let cause = self.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        let (status, total) = (self.status.as_str(), self.total);
        let steps = if total == 1 { "step" } else { "steps" };
        match self.completed {
            Some(completed) => format!("{status}{cause}, {completed} of {total} {steps} completed"),
            None => format!("{status}{cause}, {} of {total} {steps} settled", self.settled),
        }
    }
}

impl Execution {
    fn deviation_counts(&self) -> BTreeMap<Deviation, u32> {
        let mut counts = BTreeMap::new();
        for (kind, ..) in &self.deviations {
            *counts.entry(*kind).or_default() += 1;
        }
        counts
    }

    pub fn row(&self) -> ExecutionProjection {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        // Without a worker, open attempts and parts that could start are due at once, without a timer.
        let at_once = self.phase == ExecutionPhase::Pending
            || (self.held.is_none() && !self.agenda.running.is_empty())
            || (self.held.is_none() && !self.agenda.to_evaluate.is_empty())
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
            cause: self.cause(),
            completed: Some(count(self.steps.iter().filter(|state| state.status() == "completed").count())),
            ending: self.outcome().map(|_| cut(&self.view().summary(), ENDING_CHARS_MAX)),
            deviations: Some(self.deviation_counts()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_deviation_is_one_mark() {
        let row = |deviations: Option<BTreeMap<Deviation, u32>>| ExecutionProjection {
            status: ExecutionStatus::Completed,
            driver: Driver::Agent,
            plan: Hash::ZERO,
            revision: 1,
            settled: 1,
            total: 1,
            questions: 0,
            opened_at: Timestamp(0),
            started_at: None,
            last_at: Timestamp(0),
            due_at: None,
            cause: None,
            completed: None,
            ending: None,
            deviations,
        };
        let counts = [(Deviation::SecondEffect, 1), (Deviation::Forbidden, 2)];
        assert_eq!(row(Some(counts.into())).deviation_marks(), ["2 forbidden", "second effect"]);
        assert!(row(Some(BTreeMap::new())).deviation_marks().is_empty() && row(None).deviation_marks().is_empty());
    }
}
