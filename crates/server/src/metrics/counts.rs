//! What is counted since the process started, from what the engine records and what the surfaces tell.

use super::Delivered;
use rutter_core::id::{ExecutionId, PartId, ToolName};
use rutter_core::journal::event::{EndedAs, Event, Record, Side, Then};
use rutter_core::time::Timestamp;
use rutter_engine::{Happening, Live};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Values of a label that people can make more of; what comes later is counted as [`OTHER`].
pub(super) const VALUES_MAX: usize = 500;
pub(super) const OTHER: &str = "other";
/// Executions whose times are measured at once.
const EXECUTIONS_MAX: usize = 20_000;

/// Upper bounds in milliseconds.
const BOUNDS_MS: [u64; 14] =
    [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000];

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub executions: BTreeMap<&'static str, u64>,
    pub execution_time: Times,
    pub tools: BTreeMap<Arc<str>, Tool>,
    /// How late what had a time of its own began.
    pub timer_lag: Times,
    pub replans: u64,
    pub approvals: BTreeMap<&'static str, u64>,
    pub requests: BTreeMap<(&'static str, u16), u64>,
    pub deliveries: BTreeMap<Delivered, u64>,
    /// Happenings that were not heard because there were too many.
    pub missed: u64,
    under_way: HashMap<ExecutionId, UnderWay>,
}

/// How the steps and calls of one tool went.
#[derive(Debug, Default)]
pub(super) struct Tool {
    pub steps: BTreeMap<&'static str, u64>,
    pub attempts: BTreeMap<(&'static str, &'static str), u64>,
    pub step_time: Times,
}

/// A histogram with fixed bounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    counts: [u64; BOUNDS_MS.len()],
    pub count: u64,
    sum_ms: u64,
}

#[derive(Debug, Default)]
struct UnderWay {
    opened_at: Option<Timestamp>,
    parts: HashMap<PartId, Part>,
}

#[derive(Debug, Default)]
struct Part {
    tool: Option<ToolName>,
    began_at: Option<Timestamp>,
    /// When it was to be tried again, or an approval was to end.
    due_at: Option<Timestamp>,
}

impl Times {
    pub fn record(&mut self, took_ms: u64) {
        if let Some(at) = BOUNDS_MS.iter().position(|bound| took_ms <= *bound) {
            self.counts[at] += 1;
        }
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(took_ms);
    }

    /// In seconds, cumulative.
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

impl Counts {
    pub fn hear(&mut self, happening: &Happening) {
        let Live::Recorded { records, .. } = &happening.live else { return };
        let execution = &happening.identity.execution;
        for record in records.iter() {
            self.count(execution, record);
        }
    }

    fn count(&mut self, execution: &ExecutionId, record: &Record) {
        let at = record.at;
        match &record.event {
            Event::ExecutionOpened { .. } => {
                *self.executions.entry("opened").or_default() += 1;
                self.under_way(execution, |under_way| under_way.opened_at = Some(at));
            }
            Event::ExecutionEnded { outcome, .. } => {
                *self.executions.entry(status_of(*outcome)).or_default() += 1;
                let opened_at = self.under_way.remove(execution).and_then(|under_way| under_way.opened_at);
                if let Some(opened_at) = opened_at {
                    self.execution_time.record(at.since(opened_at).0);
                }
            }
            Event::AttemptStarted { part, side, tool, .. } => {
                let due_at = self.part(execution, part, |known| {
                    known.tool = Some(tool.clone());
                    if matches!(side, Side::Do | Side::Fallback) {
                        known.began_at.get_or_insert(at);
                    }
                    known.due_at.take()
                });
                self.timer(due_at.flatten(), at);
            }
            Event::AttemptSucceeded { part, side, .. } => self.succeeded(execution, part, *side, at),
            Event::AttemptFailed { part, side, then, .. } => {
                self.not_succeeded(execution, part, *side, "failed", *then);
            }
            Event::AttemptLost { part, side, then, .. } => {
                self.not_succeeded(execution, part, *side, "lost", *then);
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

    fn succeeded(&mut self, execution: &ExecutionId, part: &PartId, side: Side, at: Timestamp) {
        let known = self.part(execution, part, |known| (known.tool.clone(), known.began_at.take()));
        let (name, began_at) = known.unwrap_or_default();
        let tool = self.tool(name.as_ref());
        *tool.attempts.entry((side_of(side), "succeeded")).or_default() += 1;
        match side {
            Side::Do | Side::Fallback => {
                *tool.steps.entry("completed").or_default() += 1;
                if let Some(began_at) = began_at {
                    tool.step_time.record(at.since(began_at).0);
                }
            }
            Side::Undo => *tool.steps.entry("compensated").or_default() += 1,
            Side::Probe => {}
        }
    }

    fn not_succeeded(
        &mut self,
        execution: &ExecutionId,
        part: &PartId,
        side: Side,
        outcome: &'static str,
        then: Then,
    ) {
        let known = self.part(execution, part, |known| {
            match then {
                Then::RetryAt(when) => known.due_at = Some(when),
                Then::GiveUp => known.began_at = None,
                Then::FallBack | Then::InDoubt => {}
            }
            known.tool.clone()
        });
        let tool = self.tool(known.flatten().as_ref());
        *tool.attempts.entry((side_of(side), outcome)).or_default() += 1;
        let status = match (side, then) {
            (Side::Probe, _) | (_, Then::RetryAt(_) | Then::FallBack) => return,
            (_, Then::InDoubt) => "in_doubt",
            (Side::Undo, Then::GiveUp) => "compensation_failed",
            (Side::Do | Side::Fallback, Then::GiveUp) => "failed",
        };
        *tool.steps.entry(status).or_default() += 1;
    }

    fn timer(&mut self, due_at: Option<Timestamp>, at: Timestamp) {
        if let Some(due_at) = due_at.filter(|due_at| *due_at <= at) {
            self.timer_lag.record(at.since(due_at).0);
        }
    }

    fn tool(&mut self, name: Option<&ToolName>) -> &mut Tool {
        // One that was started before this process is not known by name.
        let name = name.map_or(OTHER, |name| name.as_str());
        let is_known = self.tools.contains_key(name);
        let name = if is_known || self.tools.len() < VALUES_MAX { name } else { OTHER };
        self.tools.entry(name.into()).or_default()
    }

    fn part<T>(
        &mut self,
        execution: &ExecutionId,
        part: &PartId,
        change: impl FnOnce(&mut Part) -> T,
    ) -> Option<T> {
        self.under_way(execution, |under_way| change(under_way.parts.entry(part.clone()).or_default()))
    }

    fn under_way<T>(
        &mut self,
        execution: &ExecutionId,
        change: impl FnOnce(&mut UnderWay) -> T,
    ) -> Option<T> {
        if self.under_way.len() >= EXECUTIONS_MAX && !self.under_way.contains_key(execution) {
            return None;
        }
        Some(change(self.under_way.entry(execution.clone()).or_default()))
    }
}

fn status_of(outcome: EndedAs) -> &'static str {
    match outcome {
        EndedAs::Completed => "completed",
        EndedAs::Partial => "partial",
        EndedAs::Failed => "failed",
        EndedAs::Cancelled => "cancelled",
        EndedAs::Compensated => "compensated",
    }
}

fn side_of(side: Side) -> &'static str {
    match side {
        Side::Do => "do",
        Side::Fallback => "fallback",
        Side::Undo => "undo",
        Side::Probe => "probe",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_beyond_the_bound_share_a_label() {
        for (tools, labels) in [(VALUES_MAX - 1, 499), (VALUES_MAX, 500), (VALUES_MAX + 1, 501)] {
            let mut counts = Counts::default();
            for tool in 0..tools {
                counts.tool(Some(&ToolName::new(&format!("server.tool_{tool}"))));
            }
            counts.tool(Some(&ToolName::new("server.tool_7")));
            assert_eq!((counts.tools.len(), counts.tools.contains_key(OTHER)), (labels, labels > VALUES_MAX));
        }
    }

    #[test]
    fn a_value_is_in_every_bucket_it_does_not_exceed() {
        let mut times = Times::default();
        for took_ms in [5, 6, 400_000] {
            times.record(took_ms);
        }
        let buckets = times.buckets();
        assert_eq!((buckets[0], buckets[1], buckets[13].1), ((0.005, 1), (0.01, 2), 2));
        assert_eq!((times.count, times.sum()), (3, 400.011));
    }
}
