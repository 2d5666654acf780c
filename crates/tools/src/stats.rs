//! Statistics of the calls of each tool: counts, categories of failure, and latency.

use rutter_core::time::Timestamp;
use rutter_core::tool::report::{LastToolError, LatencyPercentiles, ToolSummary};
use rutter_core::tool::{CallOutcome, FailureCategory};
use std::collections::BTreeMap;
use std::time::Duration;

/// The calls of one tool since the start of the process.
#[derive(Clone, Debug, Default)]
pub struct ToolStats {
    calls: u64,
    done: u64,
    not_done: u64,
    maybe: u64,
    in_flight: u64,
    errors: BTreeMap<FailureCategory, u64>,
    last_error: Option<LastToolError>,
    latency: LatencyHistogram,
}

impl ToolStats {
    pub fn began(&mut self) {
        self.in_flight += 1;
    }

    pub fn left(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// `took` is `None` if the server was not reached. The outcome is already redacted.
    pub fn ended(&mut self, outcome: &CallOutcome, took: Option<Duration>, at: Timestamp) {
        self.calls += 1;
        let failure = match outcome {
            CallOutcome::Done { .. } => {
                self.done += 1;
                None
            }
            CallOutcome::NotDone(failure) => {
                self.not_done += 1;
                Some(failure)
            }
            CallOutcome::Maybe(failure) => {
                self.maybe += 1;
                Some(failure)
            }
        };
        if let Some(failure) = failure {
            *self.errors.entry(failure.category).or_default() += 1;
            self.last_error = Some(LastToolError { at, failure: failure.clone() });
        }
        if let Some(took) = took {
            self.latency.add(took);
        }
    }

    pub fn summary(&self) -> ToolSummary {
        ToolSummary {
            calls: self.calls,
            done: self.done,
            not_done: self.not_done,
            maybe: self.maybe,
            in_flight: self.in_flight,
            errors: self.errors.clone(),
            last_error: self.last_error.clone(),
            latency: self.latency.summary(),
        }
    }
}

/// Counts spans in buckets, each a quarter of a power of two wide: no percentile is off by more than a quarter.
#[derive(Clone, Debug)]
struct LatencyHistogram {
    counts: [u32; BUCKETS],
    total: u64,
}

/// The last one begins at eight hours; longer spans are counted there.
const BUCKETS: usize = 4 * 24;

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram { counts: [0; BUCKETS], total: 0 }
    }
}

impl LatencyHistogram {
    fn add(&mut self, span: Duration) {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let count = &mut self.counts[bucket(ms)];
        *count = count.saturating_add(1);
        self.total += 1;
    }

    fn summary(&self) -> Option<LatencyPercentiles> {
        let at = |percent| self.percentile(percent);
        Some(LatencyPercentiles { p50_ms: at(50)?, p95_ms: at(95)?, p99_ms: at(99)? })
    }

    fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = |count: &u32| {
            seen += u64::from(*count);
            seen >= rank
        };
        self.counts.iter().position(reached).map(last_of)
    }
}

/// Spans up to 3 ms have a bucket each; from there on the two bits after the leading one choose.
fn bucket(ms: u64) -> usize {
    if ms < 4 {
        return usize::try_from(ms).expect("less than four");
    }
    let power = ms.ilog2();
    let quarter = (ms >> (power - 2)) & 3;
    let bucket = u64::from(power - 1) * 4 + quarter;
    usize::try_from(bucket).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// The longest span that belongs into a bucket.
fn last_of(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let (power, quarter) = (bucket / 4 + 1, bucket as u64 % 4);
    ((4 + quarter + 1) << (power - 2)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::tool::ToolFailure;

    #[test]
    fn every_span_is_in_the_bucket_that_ends_at_or_after_it() {
        for ms in (0..5_000).chain([9_999, 60_000, 3_600_000, 30_000_000]) {
            let last = last_of(bucket(ms));
            assert!(last >= ms && last <= ms + ms / 4 + 1, "{ms} ms is counted as up to {last} ms");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_near_what_was_measured() {
        let mut stats = ToolStats::default();
        assert_eq!(stats.summary().latency, None);
        for ms in 1..=1_000 {
            let outcome = CallOutcome::NotDone(ToolFailure::new(FailureCategory::Conflict, "busy"));
            stats.ended(&outcome, Some(Duration::from_millis(ms)), Timestamp(0));
        }
        let LatencyPercentiles { p50_ms, p95_ms, p99_ms } = stats.summary().latency.unwrap();
        for (found, exact) in [(p50_ms, 500), (p95_ms, 950), (p99_ms, 990)] {
            assert!(found >= exact && found <= exact * 5 / 4, "{found} for {exact}");
        }
    }

    #[test]
    fn calls_are_counted_by_how_they_ended() {
        let mut stats = ToolStats::default();
        let failure = |category| ToolFailure::new(category, "no");
        let outcomes = [
            CallOutcome::Done { result: std::sync::Arc::new(serde_json::json!(1)), cost_micros: 0 },
            CallOutcome::NotDone(failure(FailureCategory::Conflict)),
            CallOutcome::Maybe(failure(FailureCategory::Timeout)),
            CallOutcome::Maybe(failure(FailureCategory::Timeout)),
        ];
        for (at, outcome) in outcomes.iter().enumerate() {
            stats.began();
            stats.ended(outcome, None, Timestamp(at as i64));
            stats.left();
        }
        stats.began();
        let summary = stats.summary();
        assert_eq!((summary.calls, summary.done, summary.not_done, summary.maybe), (4, 1, 1, 2));
        assert_eq!(summary.errors, BTreeMap::from([(FailureCategory::Conflict, 1), (FailureCategory::Timeout, 2)]));
        assert_eq!(summary.in_flight, 1);
        assert_eq!(summary.last_error.unwrap().at, Timestamp(3));
        assert_eq!(summary.latency, None);
    }
}
