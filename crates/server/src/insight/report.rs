//! Counts as people and programs get them: one row for each plan, tool, day or driver.

use rutter_core::insight::day::{Date, Day, Hour, OTHERS};
use rutter_core::insight::histogram::Histogram;
use rutter_core::insight::tally::{Endings, Tally};
use rutter_core::journal::event::{Deviation, Side};
use rutter_core::time::{Timestamp, calendar};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const HOUR_MS: i64 = 3_600_000;
/// Rows of a report; those of which least is known are added up in one.
pub const ROWS_MAX: usize = 1_000;

/// What a row is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    #[default]
    Plan,
    Tool,
    Day,
    Driver,
}

impl By {
    pub const ALL: [By; 4] = [By::Plan, By::Tool, By::Day, By::Driver];

    pub fn as_str(self) -> &'static str {
        match self {
            By::Plan => "plan",
            By::Tool => "tool",
            By::Day => "day",
            By::Driver => "driver",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The first day and the last, by UTC.
    pub from: String,
    pub until: String,
    pub by: By,
    /// Most used first; days in their order.
    pub rows: Vec<Row>,
    /// Everything together, whatever the rows are about.
    pub total: Row,
}

/// Counts and times. A tool has no executions; `null` means that there was nothing to measure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The name of the plan or tool, the day, or `server` or `agent`.
    pub key: String,
    pub opened: u64,
    pub ended: Ended,
    /// Of those that ended, in percent.
    pub completion_rate: Option<f64>,
    /// Ended once more after something was undone.
    pub ended_again: u64,
    /// From the opening to the end.
    pub duration: Option<Times>,
    /// Begun in an execution, on the average.
    pub steps_per_execution: Option<f64>,
    /// From the first attempt of a step to its completion.
    pub step_time: Option<Times>,
    /// From the start of a call to its answer.
    pub attempt_time: Option<Times>,
    pub calls: u64,
    pub retries: u64,
    pub probes: u64,
    pub undo_calls: u64,
    pub succeeded: u64,
    pub failed: u64,
    /// Attempts that failed or were lost, of all that came to an end, in percent.
    pub error_rate: Option<f64>,
    /// Failed attempts by their category.
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
    /// Time waited, by what was waited for.
    pub waits: BTreeMap<String, Times>,
    /// In millionths.
    pub cost_micros: u64,
    /// Of an execution that ended, on the average.
    pub cost_micros_per_execution: Option<f64>,
    pub limits_reached: u64,
    pub drifts: u64,
    pub deviations: BTreeMap<String, u64>,
    pub decisions: u64,
    pub actions: u64,
    /// Plans that were saved, where the row is a day or everything.
    pub plans_saved: Option<u64>,
    /// On the average of the hours that have passed.
    pub plans_per_hour: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ended {
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

/// How long something took, in milliseconds; percentiles are off by at most a tenth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Times {
    pub count: u64,
    pub sum_ms: u64,
    pub mean_ms: u64,
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub p99_ms: u64,
    pub max_ms: u64,
}

/// One hour of the overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HourRow {
    /// Milliseconds since 1970.
    pub start_ms: i64,
    pub opened: u64,
    pub ended: Ended,
    pub plans_saved: u64,
}

/// A report that days are still added to.
pub(super) struct Draft {
    from: Date,
    until: Date,
    by: By,
    tallies: BTreeMap<Arc<str>, Tally>,
    saved_by_day: BTreeMap<Arc<str>, (Date, u64)>,
    total: Tally,
    saved: u64,
}

impl Draft {
    pub fn new(from: Date, until: Date, by: By) -> Draft {
        let (tallies, saved_by_day) = (BTreeMap::new(), BTreeMap::new());
        Draft { from, until, by, tallies, saved_by_day, total: Tally::default(), saved: 0 }
    }

    pub fn add(&mut self, date: Date, day: &Day) {
        self.total.add(&day.server);
        self.total.add(&day.agent);
        self.saved += day.saved();
        let mut put = |name: &Arc<str>, tally: &Tally| match self.tallies.get_mut(name) {
            Some(mine) => mine.add(tally),
            None => {
                self.tallies.insert(name.clone(), tally.clone());
            }
        };
        match self.by {
            By::Plan => day.plans.iter().for_each(|(name, tally)| put(name, tally)),
            By::Tool => day.tools.iter().for_each(|(name, tally)| put(name, tally)),
            By::Day => {
                let name: Arc<str> = date.to_string().into();
                put(&name, &day.total());
                self.saved_by_day.insert(name, (date, day.saved()));
            }
            By::Driver => {
                put(&"server".into(), &day.server);
                put(&"agent".into(), &day.agent);
            }
        }
    }

    pub fn finish(self, now: Timestamp) -> Report {
        let Draft { from, until, by, tallies, saved_by_day, total, saved } = self;
        let mut tallies: Vec<(Arc<str>, Tally)> = tallies.into_iter().collect();
        if by != By::Day {
            tallies = most_used(tallies);
        }
        let mut total = Row::new("total", &total);
        total.count_plans(saved, hours_between(from, until, now));
        let row = |(name, tally): &(Arc<str>, Tally)| {
            let mut row = Row::new(name, tally);
            if let Some((date, saved)) = saved_by_day.get(name) {
                row.count_plans(*saved, hours_between(*date, *date, now));
            }
            row
        };
        let rows = tallies.iter().map(row).collect();
        Report { from: from.to_string(), until: until.to_string(), by, rows, total }
    }
}

/// The most used first, and in one row those there is no room for.
fn most_used(mut tallies: Vec<(Arc<str>, Tally)>) -> Vec<(Arc<str>, Tally)> {
    let uses = |tally: &Tally| (tally.opened, tally.calls(), tally.attempts.values().sum::<u64>());
    // The one that stands for others stands behind them.
    tallies.sort_by(|(name, tally), (other, others)| {
        let (last, other_last) = (&**name == OTHERS, &**other == OTHERS);
        last.cmp(&other_last).then(uses(others).cmp(&uses(tally))).then(name.cmp(other))
    });
    if tallies.len() > ROWS_MAX {
        let mut rest = Tally::default();
        for (_, tally) in tallies.split_off(ROWS_MAX - 1) {
            rest.add(&tally);
        }
        tallies.push((OTHERS.into(), rest));
    }
    tallies
}

/// From the start of the first day to the end of the last, or to now.
fn hours_between(from: Date, until: Date, now: Timestamp) -> f64 {
    let end = until.plus(1).start().min(now);
    (end.since(from.start()).0 as f64 / HOUR_MS as f64).max(1.0)
}

impl Row {
    fn new(key: &str, tally: &Tally) -> Row {
        let closed = tally.succeeded + tally.failed() + tally.lost;
        let ended = tally.ended.all();
        Row {
            key: key.to_owned(),
            opened: tally.opened,
            ended: Ended::new(&tally.ended),
            completion_rate: share(tally.ended.completed, ended),
            ended_again: tally.ended_again,
            duration: Times::new(&tally.duration_ms),
            steps_per_execution: average(tally.steps.sum(), tally.steps.count()),
            step_time: Times::new(&tally.step_ms),
            attempt_time: Times::new(&tally.attempt_ms),
            calls: tally.calls(),
            retries: tally.retries,
            probes: tally.attempts_of(Side::Probe),
            undo_calls: tally.attempts_of(Side::Undo),
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
                .filter_map(|(cause, waits)| Some((cause.as_str().to_owned(), Times::new(waits)?)))
                .collect(),
            cost_micros: tally.cost_micros,
            cost_micros_per_execution: average(tally.cost_micros, ended),
            limits_reached: tally.limits.values().sum(),
            drifts: tally.drifts,
            deviations: (tally.deviations.iter()).map(|(kind, count)| (name_of(*kind), *count)).collect(),
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

impl Ended {
    fn new(endings: &Endings) -> Ended {
        let Endings { completed, partial, failed, cancelled, compensated } = *endings;
        Ended { all: endings.all(), completed, partial, failed, cancelled, compensated }
    }
}

impl Times {
    fn new(histogram: &Histogram) -> Option<Times> {
        let count = histogram.count();
        Some(Times {
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

impl HourRow {
    pub(super) fn new(start: Timestamp, hour: &Hour) -> HourRow {
        let Hour { opened, ended, saved } = hour;
        HourRow { start_ms: start.0, opened: *opened, ended: Ended::new(ended), plans_saved: *saved }
    }

    /// As `2026-11-16T09:00:00.000Z`.
    pub fn start(&self) -> String {
        calendar::utc(Timestamp(self.start_ms))
    }
}

/// As it stands in the journal.
fn name_of(kind: Deviation) -> String {
    json!(kind).as_str().unwrap_or_default().to_owned()
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| rounded(part as f64 * 100.0 / whole as f64))
}

fn average(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| rounded(sum as f64 / count as f64))
}

/// Two digits after the point say enough.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
