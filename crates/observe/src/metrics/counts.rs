//! Counters since the process started, from the engine's updates and from the surfaces.

use super::DeliveryOutcome;
use rutter_core::id::{ExecutionId, PartId, ToolName};
use rutter_core::journal::attempts::{AttemptChange, AttemptEnd, ClosedAttempt, OpenAttempts};
use rutter_core::journal::event::{AttemptFollowUp, CallSide, Event, EventRecord};
use rutter_core::time::Timestamp;
use rutter_engine::{ExecutionUpdate, UpdateContent};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The most values of a label that users can add to; further ones are counted as [`OTHER`].
pub const VALUES_MAX: usize = 500;
pub const OTHER: &str = "other";
/// Executions whose durations are measured at the same time.
const EXECUTIONS_MAX: usize = 20_000;

/// Upper bounds in milliseconds.
const BOUNDS_MS: [u64; 14] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000];

#[derive(Debug, Default)]
pub struct MetricCounts {
    pub executions: BTreeMap<&'static str, u64>,
    pub execution_time: TimeHistogram,
    pub tools: BTreeMap<Arc<str>, ToolCounts>,
    /// How late timers fired.
    pub timer_lag: TimeHistogram,
    pub replans: u64,
    pub approvals: BTreeMap<&'static str, u64>,
    /// Refusals of acts, by the scope they need.
    pub refusals: BTreeMap<&'static str, u64>,
    pub requests: BTreeMap<(&'static str, u16), u64>,
    pub deliveries: BTreeMap<DeliveryOutcome, u64>,
    /// Updates that were missed because too many came at once.
    pub missed: u64,
    under_way: HashMap<ExecutionId, RunningExecution>,
}

/// Counts of the steps and calls of one tool.
#[derive(Debug, Default)]
pub struct ToolCounts {
    pub steps: BTreeMap<&'static str, u64>,
    pub attempts: BTreeMap<(&'static str, &'static str), u64>,
    pub step_time: TimeHistogram,
}

/// A histogram with fixed bounds.
#[derive(Clone, Debug, Default)]
pub struct TimeHistogram {
    counts: [u64; BOUNDS_MS.len()],
    pub count: u64,
    sum_ms: u64,
}

#[derive(Debug, Default)]
struct RunningExecution {
    opened_at: Option<Timestamp>,
    attempts: OpenAttempts,
    parts: HashMap<PartId, OpenPart>,
}

#[derive(Debug, Default)]
struct OpenPart {
    began_at: Option<Timestamp>,
    /// When the retry or the expiry of an approval was due.
    due_at: Option<Timestamp>,
}

impl TimeHistogram {
    pub fn record(&mut self, took_ms: u64) {
        if let Some(at) = BOUNDS_MS.iter().position(|bound| took_ms <= *bound) {
            self.counts[at] += 1;
        }
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(took_ms);
    }

    /// Cumulative, with bounds in seconds.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let mut sum = 0;
        let bucket = |(bound, count): (&u64, &u64)| {
            sum += count;
            (*bound as f64 / 1_000.0, sum)
        };
        BOUNDS_MS.iter().zip(&self.counts).map(bucket).collect()
    }

    pub fn sum(&self) -> f64 {
        self.sum_ms as f64 / 1_000.0
    }
}

impl MetricCounts {
    pub fn count_update(&mut self, update: &ExecutionUpdate) {
        let UpdateContent::Recorded { first, records, .. } = &update.content else { return };
        let execution = &update.identity.execution;
        for (seq, record) in (*first..).zip(records.iter()) {
            self.count(execution, seq, record);
        }
    }

    fn count(&mut self, execution: &ExecutionId, seq: u64, record: &EventRecord) {
        let at = record.at;
        match self.pair(execution, seq, record) {
            Some(AttemptChange::Started(key)) => {
                let due_at = self.part(execution, &key.part, |known| {
                    if matches!(key.side, CallSide::Do | CallSide::Fallback) {
                        known.began_at.get_or_insert(at);
                    }
                    known.due_at.take()
                });
                self.timer(due_at.flatten(), at);
            }
            Some(AttemptChange::Closed(closed)) => self.attempt_ended(execution, &closed),
            Some(AttemptChange::Abandoned(_) | AttemptChange::AnsweredLate { .. }) | None => {}
        }
        match &record.event {
            Event::ExecutionOpened { .. } => {
                *self.executions.entry("opened").or_default() += 1;
                self.under_way(execution, |under_way| under_way.opened_at = Some(at));
            }
            Event::ExecutionEnded { outcome, .. } => {
                *self.executions.entry(outcome.as_str()).or_default() += 1;
                let opened_at = self.under_way.remove(execution).and_then(|under_way| under_way.opened_at);
                if let Some(opened_at) = opened_at {
                    self.execution_time.record(at.since(opened_at).0);
                }
            }
            Event::ApprovalRequested { part, expires_at, .. } => {
                *self.approvals.entry("asked").or_default() += 1;
                self.part(execution, part, |known| known.due_at = Some(*expires_at));
            }
            Event::ApprovalGranted { part, .. } => {
                *self.approvals.entry("granted").or_default() += 1;
                self.part(execution, part, |known| known.due_at = None);
            }
            Event::ApprovalDenied { .. } => *self.approvals.entry("denied").or_default() += 1,
            Event::ApprovalExpired { part, .. } => {
                *self.approvals.entry("expired").or_default() += 1;
                let due_at = self.part(execution, part, |known| known.due_at.take());
                self.timer(due_at.flatten(), at);
            }
            Event::Replanned { .. } => self.replans += 1,
            _ => {}
        }
    }

    /// Tracks an execution while there is something to measure.
    fn pair(&mut self, execution: &ExecutionId, seq: u64, record: &EventRecord) -> Option<AttemptChange> {
        let pair = |attempts: &mut OpenAttempts| attempts.apply(seq, record.at, &record.event);
        match &record.event {
            Event::AttemptStarted { .. } => {
                self.under_way(execution, |under_way| pair(&mut under_way.attempts)).flatten()
            }
            _ => match self.under_way.get_mut(execution) {
                Some(under_way) => pair(&mut under_way.attempts),
                None => pair(&mut OpenAttempts::default()),
            },
        }
    }

    fn attempt_ended(&mut self, execution: &ExecutionId, closed: &ClosedAttempt) {
        let (part, side) = (&closed.key.part, closed.key.side);
        let began_at = self.part(execution, part, |known| match closed.end.then() {
            Some(AttemptFollowUp::RetryAt(when)) => {
                known.due_at = Some(when);
                None
            }
            Some(AttemptFollowUp::GiveUp) | None => known.began_at.take(),
            Some(AttemptFollowUp::FallBack | AttemptFollowUp::InDoubt | AttemptFollowUp::Withdrawn) => None,
        });
        let tool = self.tool(closed.tool());
        *tool.attempts.entry((side.as_str(), closed.end.as_str())).or_default() += 1;
        let status = match (side, closed.end.then()) {
            (CallSide::Probe, _)
            | (_, Some(AttemptFollowUp::RetryAt(_) | AttemptFollowUp::FallBack | AttemptFollowUp::Withdrawn)) => return,
            (_, Some(AttemptFollowUp::InDoubt)) => "in_doubt",
            (CallSide::Undo, Some(AttemptFollowUp::GiveUp)) => "compensation_failed",
            (CallSide::Do | CallSide::Fallback, Some(AttemptFollowUp::GiveUp)) => "failed",
            (CallSide::Undo, None) => "compensated",
            (CallSide::Do | CallSide::Fallback, None) => "completed",
        };
        *tool.steps.entry(status).or_default() += 1;
        if let (AttemptEnd::Succeeded { .. }, CallSide::Do | CallSide::Fallback, Some(began_at)) =
            (&closed.end, side, began_at.flatten())
        {
            tool.step_time.record(closed.ended_at.since(began_at).0);
        }
    }

    fn timer(&mut self, due_at: Option<Timestamp>, at: Timestamp) {
        if let Some(due_at) = due_at.filter(|due_at| *due_at <= at) {
            self.timer_lag.record(at.since(due_at).0);
        }
    }

    fn tool(&mut self, name: Option<&ToolName>) -> &mut ToolCounts {
        // The tool of an attempt started before this process is unknown.
        let name = name.map_or(OTHER, |name| name.as_str());
        let is_known = self.tools.contains_key(name);
        let name = if is_known || self.tools.len() < VALUES_MAX { name } else { OTHER };
        self.tools.entry(name.into()).or_default()
    }

    fn part<T>(
        &mut self,
        execution: &ExecutionId,
        part: &PartId,
        change: impl FnOnce(&mut OpenPart) -> T,
    ) -> Option<T> {
        self.under_way(execution, |under_way| change(under_way.parts.entry(part.clone()).or_default()))
    }

    fn under_way<T>(&mut self, execution: &ExecutionId, change: impl FnOnce(&mut RunningExecution) -> T) -> Option<T> {
        if self.under_way.len() >= EXECUTIONS_MAX && !self.under_way.contains_key(execution) {
            return None;
        }
        Some(change(self.under_way.entry(execution.clone()).or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_beyond_the_bound_share_a_label() {
        for (tools, labels) in [(VALUES_MAX - 1, 499), (VALUES_MAX, 500), (VALUES_MAX + 1, 501)] {
            let mut counts = MetricCounts::default();
            for tool in 0..tools {
                counts.tool(Some(&ToolName::new(&format!("server.tool_{tool}"))));
            }
            counts.tool(Some(&ToolName::new("server.tool_7")));
            assert_eq!((counts.tools.len(), counts.tools.contains_key(OTHER)), (labels, labels > VALUES_MAX));
        }
    }

    #[test]
    fn a_value_is_in_every_bucket_it_does_not_exceed() {
        let mut times = TimeHistogram::default();
        for took_ms in [5, 6, 400_000] {
            times.record(took_ms);
        }
        let buckets = times.buckets();
        assert_eq!((buckets[0], buckets[1], buckets[13].1), ((0.005, 1), (0.01, 2), 2));
        assert_eq!((times.count, times.sum()), (3, 400.011));
    }
}
