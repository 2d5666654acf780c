//! Analytics reports: one row per plan, tool, day or driver.

use rutter_core::insight::day::{CalendarDate, DailyTally, HourlyTally, OTHERS};
use rutter_core::insight::histogram::MergeableHistogram;
use rutter_core::insight::tally::{ActivityTally, OutcomeCounts};
use rutter_core::journal::event::CallSide;
use rutter_core::text::spelled;
use rutter_core::time::{Timestamp, calendar};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const HOUR_MS: i64 = 3_600_000;
/// The most rows in a report; the least used beyond it are summed in one row.
pub const ROWS_MAX: usize = 1_000;

/// How rows are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportGrouping {
    #[default]
    Plan,
    Tool,
    Day,
    Driver,
}

impl ReportGrouping {
    pub const ALL: [ReportGrouping; 4] =
        [ReportGrouping::Plan, ReportGrouping::Tool, ReportGrouping::Day, ReportGrouping::Driver];

    pub fn as_str(self) -> &'static str {
        match self {
            ReportGrouping::Plan => "plan",
            ReportGrouping::Tool => "tool",
            ReportGrouping::Day => "day",
            ReportGrouping::Driver => "driver",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InsightReport {
    /// The first and the last day, in UTC.
    pub from: String,
    pub until: String,
    pub by: ReportGrouping,
    /// Most used first; days in order.
    pub rows: Vec<ReportRow>,
    /// The sum over everything, however rows are grouped.
    pub total: ReportRow,
}

/// Counts and durations. A tool has no executions; `null` means that there was nothing to measure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReportRow {
    /// The name of the plan or tool, the day, `server` or `agent`.
    pub key: String,
    pub opened: u64,
    pub ended: EndedCounts,
    /// Completed executions, in percent of those that ended.
    pub completion_rate: Option<f64>,
    /// Executions that ended once more after a later compensation.
    pub ended_again: u64,
    /// From the start of an execution to its end.
    pub duration: Option<DurationStats>,
    /// Average number of steps started per execution.
    pub steps_per_execution: Option<f64>,
    /// From the first attempt of a step to its completion.
    pub step_time: Option<DurationStats>,
    /// From the start of a call to its response.
    pub attempt_time: Option<DurationStats>,
    pub calls: u64,
    pub retries: u64,
    pub probes: u64,
    pub undo_calls: u64,
    pub succeeded: u64,
    pub failed: u64,
    /// Failed and lost attempts, in percent of all attempts that ended.
    pub error_rate: Option<f64>,
    /// Failed attempts by category.
    pub failures: BTreeMap<String, u64>,
    pub steps_failed: u64,
    pub steps_skipped: u64,
    pub lost: u64,
    pub doubts: u64,
    pub late_answers: u64,
    pub compensations: u64,
    pub compensated: u64,
    pub compensations_failed: u64,
    pub replans: u64,
    pub handovers: u64,
    pub approvals: ApprovalCounts,
    /// Time spent waiting, by cause.
    pub waits: BTreeMap<String, DurationStats>,
    /// In millionths of the currency unit.
    pub cost_micros: u64,
    /// Average per ended execution.
    pub cost_micros_per_execution: Option<f64>,
    pub limits_reached: u64,
    pub drifts: u64,
    pub deviations: BTreeMap<String, u64>,
    pub decisions: u64,
    pub actions: u64,
    /// Plans saved; only where the row is a day or the total.
    pub plans_saved: Option<u64>,
    /// Average over the hours that have passed.
    pub plans_per_hour: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EndedCounts {
    pub all: u64,
    pub completed: u64,
    pub partial: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub compensated: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApprovalCounts {
    pub asked: u64,
    pub granted: u64,
    pub denied: u64,
    pub expired: u64,
}

/// Durations in milliseconds; percentiles are accurate to ten percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DurationStats {
    pub count: u64,
    pub sum_ms: u64,
    pub mean_ms: u64,
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub p99_ms: u64,
    pub max_ms: u64,
}

/// Counts of one hour, for the overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HourlyCounts {
    /// Milliseconds since 1970.
    pub start_ms: i64,
    pub opened: u64,
    pub ended: EndedCounts,
    pub plans_saved: u64,
}

/// A report under construction.
#[derive(Debug)]
pub struct ReportBuilder {
    from: CalendarDate,
    until: CalendarDate,
    by: ReportGrouping,
    tallies: BTreeMap<Arc<str>, ActivityTally>,
    saved_by_day: BTreeMap<Arc<str>, (CalendarDate, u64)>,
    total: ActivityTally,
    saved: u64,
}

impl ReportBuilder {
    pub fn new(from: CalendarDate, until: CalendarDate, by: ReportGrouping) -> ReportBuilder {
        let (tallies, saved_by_day) = (BTreeMap::new(), BTreeMap::new());
        ReportBuilder { from, until, by, tallies, saved_by_day, total: ActivityTally::default(), saved: 0 }
    }

    pub fn add(&mut self, date: CalendarDate, day: &DailyTally) {
        self.total.add(&day.server);
        self.total.add(&day.agent);
        self.saved += day.saved();
        let mut put = |name: &Arc<str>, tally: &ActivityTally| match self.tallies.get_mut(name) {
            Some(mine) => mine.add(tally),
            None => {
                self.tallies.insert(name.clone(), tally.clone());
            }
        };
        match self.by {
            ReportGrouping::Plan => day.plans.iter().for_each(|(name, tally)| put(name, tally)),
            ReportGrouping::Tool => day.tools.iter().for_each(|(name, tally)| put(name, tally)),
            ReportGrouping::Day => {
                let name: Arc<str> = date.to_string().into();
                put(&name, &day.total());
                self.saved_by_day.insert(name, (date, day.saved()));
            }
            ReportGrouping::Driver => {
                put(&"server".into(), &day.server);
                put(&"agent".into(), &day.agent);
            }
        }
    }

    pub fn finish(self, now: Timestamp) -> InsightReport {
        let ReportBuilder { from, until, by, tallies, saved_by_day, total, saved } = self;
        let mut tallies: Vec<(Arc<str>, ActivityTally)> = tallies.into_iter().collect();
        if by != ReportGrouping::Day {
            tallies = most_used(tallies);
        }
        let mut total = ReportRow::new("total", &total);
        total.count_plans(saved, hours_between(from, until, now));
        let row = |(name, tally): &(Arc<str>, ActivityTally)| {
            let mut row = ReportRow::new(name, tally);
            if let Some((date, saved)) = saved_by_day.get(name) {
                row.count_plans(*saved, hours_between(*date, *date, now));
            }
            row
        };
        let rows = tallies.iter().map(row).collect();
        InsightReport { from: from.to_string(), until: until.to_string(), by, rows, total }
    }
}

/// The most used first; the rest summed in one row.
fn most_used(mut tallies: Vec<(Arc<str>, ActivityTally)>) -> Vec<(Arc<str>, ActivityTally)> {
    let uses = |tally: &ActivityTally| (tally.opened, tally.calls(), tally.attempts.values().sum::<u64>());
    // The row that sums others comes last.
    tallies.sort_by(|(name, tally), (other, others)| {
        let (last, other_last) = (&**name == OTHERS, &**other == OTHERS);
        last.cmp(&other_last).then(uses(others).cmp(&uses(tally))).then(name.cmp(other))
    });
    if tallies.len() > ROWS_MAX {
        let mut rest = ActivityTally::default();
        for (_, tally) in tallies.split_off(ROWS_MAX - 1) {
            rest.add(&tally);
        }
        tallies.push((OTHERS.into(), rest));
    }
    tallies
}

/// The hours from the start of the first day to the end of the last, or to now.
fn hours_between(from: CalendarDate, until: CalendarDate, now: Timestamp) -> f64 {
    let end = until.plus(1).start().min(now);
    (end.since(from.start()).0 as f64 / HOUR_MS as f64).max(1.0)
}

impl ReportRow {
    fn new(key: &str, tally: &ActivityTally) -> ReportRow {
        let closed = tally.succeeded + tally.failed() + tally.lost;
        let ended = tally.ended.all();
        ReportRow {
            key: key.to_owned(),
            opened: tally.opened,
            ended: EndedCounts::new(&tally.ended),
            completion_rate: share(tally.ended.completed, ended),
            ended_again: tally.ended_again,
            duration: DurationStats::new(&tally.duration_ms),
            steps_per_execution: average(tally.steps.sum(), tally.steps.count()),
            step_time: DurationStats::new(&tally.step_ms),
            attempt_time: DurationStats::new(&tally.attempt_ms),
            calls: tally.calls(),
            retries: tally.retries,
            probes: tally.attempts_of(CallSide::Probe),
            undo_calls: tally.attempts_of(CallSide::Undo),
            succeeded: tally.succeeded,
            failed: tally.failed(),
            error_rate: share(tally.failed() + tally.lost, closed),
            failures: tally.failures.iter().map(|(category, n)| (category.as_str().to_owned(), *n)).collect(),
            steps_failed: tally.steps_failed,
            steps_skipped: tally.steps_skipped,
            lost: tally.lost,
            doubts: tally.doubts,
            late_answers: tally.late_answers,
            compensations: tally.compensations,
            compensated: tally.compensated,
            compensations_failed: tally.compensations_failed,
            replans: tally.replans,
            handovers: tally.handovers,
            approvals: ApprovalCounts {
                asked: tally.approvals.asked,
                granted: tally.approvals.granted,
                denied: tally.approvals.denied,
                expired: tally.approvals.expired,
            },
            waits: (tally.waits_ms.iter())
                .filter_map(|(cause, waits)| Some((cause.as_str().to_owned(), DurationStats::new(waits)?)))
                .collect(),
            cost_micros: tally.cost_micros,
            cost_micros_per_execution: average(tally.cost_micros, ended),
            limits_reached: tally.limits.values().sum(),
            drifts: tally.drifts,
            deviations: (tally.deviations.iter()).map(|(kind, count)| (spelled(kind), *count)).collect(),
            decisions: tally.decisions,
            actions: tally.actions,
            plans_saved: None,
            plans_per_hour: None,
        }
    }

    fn count_plans(&mut self, saved: u64, hours: f64) {
        self.plans_saved = Some(saved);
        self.plans_per_hour = Some(rounded(saved as f64 / hours));
    }
}

impl EndedCounts {
    fn new(endings: &OutcomeCounts) -> EndedCounts {
        let OutcomeCounts { completed, partial, failed, cancelled, compensated } = *endings;
        EndedCounts { all: endings.all(), completed, partial, failed, cancelled, compensated }
    }
}

impl DurationStats {
    fn new(histogram: &MergeableHistogram) -> Option<DurationStats> {
        let count = histogram.count();
        Some(DurationStats {
            count,
            sum_ms: histogram.sum(),
            mean_ms: histogram.sum().checked_div(count)?,
            p50_ms: histogram.percentile(50)?,
            p95_ms: histogram.percentile(95)?,
            p99_ms: histogram.percentile(99)?,
            max_ms: histogram.max(),
        })
    }
}

impl HourlyCounts {
    pub fn new(start: Timestamp, hour: &HourlyTally) -> HourlyCounts {
        let HourlyTally { opened, ended, saved } = hour;
        HourlyCounts { start_ms: start.0, opened: *opened, ended: EndedCounts::new(ended), plans_saved: *saved }
    }

    /// The start, such as `2026-11-16T09:00:00.000Z`.
    pub fn start(&self) -> String {
        calendar::utc(Timestamp(self.start_ms))
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| rounded(part as f64 * 100.0 / whole as f64))
}

fn average(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| rounded(sum as f64 / count as f64))
}

/// Rounds to two decimals.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
