//! Charts of the analytics, each with its data.

use super::period::ReportPeriod;
use super::{money, ms, percent};
use crate::drawing::chart::{self, ChartBar, ChartSeries, RankedBar, StackedChart};
use crate::drawing::status::StatusTone;
use crate::format;
use rutter_observe::insight::report::{
    DurationStats, EndedCounts, HourlyCounts, InsightReport, ReportGrouping, ReportRow,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The longest bars; the table of the page has the rest.
const RANKED_MAX: usize = 10;

pub(super) struct ChartFigure {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) svg: String,
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) csv: String,
}

pub(super) fn all(
    period: &ReportPeriod,
    plans: &InsightReport,
    tools: &InsightReport,
    days: &InsightReport,
    hours: Option<&[HourlyCounts]>,
) -> Vec<ChartFigure> {
    let mut figures = vec![throughput(period, days, hours)];
    let by_plan = (period, plans, ReportGrouping::Plan);
    let by_tool = (period, tools, ReportGrouping::Tool);
    figures.extend(slowest("plan-times", "Duration by plan", by_plan, |row| row.duration));
    figures.extend(slowest("tool-times", "Call duration by tool", by_tool, |row| row.attempt_time));
    figures.extend(failing("plan-failures", "Executions not completed", by_plan));
    figures.extend(failing("tool-failures", "Failed calls", by_tool));
    figures.extend(classes(period, &plans.total.failures));
    figures.extend(waits(period, &plans.total.waits));
    figures.extend(retries(period, tools));
    figures.extend(cost(period, plans));
    figures
}

fn throughput(period: &ReportPeriod, days: &InsightReport, hours: Option<&[HourlyCounts]>) -> ChartFigure {
    let series = [
        ChartSeries { name: "completed", tone: StatusTone::Ok },
        ChartSeries { name: "partial", tone: StatusTone::Warn },
        ChartSeries { name: "failed", tone: StatusTone::Bad },
        ChartSeries { name: "cancelled or undone", tone: StatusTone::Muted },
    ];
    let values =
        |ended: &EndedCounts| vec![ended.completed, ended.partial, ended.failed, ended.cancelled + ended.compensated];
    let bars: Vec<ChartBar> = match hours {
        Some(hours) => {
            let label = |row: &HourlyCounts| row.start().get(11..16).unwrap_or_default().to_owned();
            hours.iter().map(|row| ChartBar { label: label(row), values: values(&row.ended) }).collect()
        }
        None => {
            let label = |row: &ReportRow| row.key.get(5..).unwrap_or(&row.key).to_owned();
            days.rows.iter().map(|row| ChartBar { label: label(row), values: values(&row.ended) }).collect()
        }
    };
    let title = if hours.is_some() { "Ended executions by hour" } else { "Ended executions by day" };
    let chart = StackedChart { title, unit: "execution", series: &series, bars: &bars };
    let cells = |bar: &ChartBar| {
        let counts = bar.values.iter().map(|count| format::count(*count));
        std::iter::once(bar.label.clone()).chain(counts).collect()
    };
    ChartFigure {
        id: "throughput",
        title,
        svg: chart::stacked(&chart),
        heads: vec!["When (UTC)", "Completed", "Partial", "Failed", "Cancelled or undone"],
        rows: bars.iter().map(cells).collect(),
        csv: period.csv(ReportGrouping::Day),
    }
}

type ReportSelection<'a> = (&'a ReportPeriod, &'a InsightReport, ReportGrouping);

fn slowest(
    id: &'static str,
    title: &'static str,
    (period, report, by): ReportSelection<'_>,
    of: fn(&ReportRow) -> Option<DurationStats>,
) -> Option<ChartFigure> {
    let mut rows: Vec<(&ReportRow, DurationStats)> =
        report.rows.iter().filter_map(|row| Some((row, of(row)?))).collect();
    rows.sort_by_key(|(_, times)| Reverse(times.p95_ms));
    rows.truncate(RANKED_MAX);
    let bar = |(row, times): &(&ReportRow, DurationStats)| RankedBar {
        label: row.key.clone(),
        value: times.p95_ms as f64,
        words: ms(Some(times.p95_ms)),
        tone: StatusTone::Run,
    };
    let cells = |(row, times): &(&ReportRow, DurationStats)| {
        let spans = [times.p50_ms, times.p95_ms, times.p99_ms, times.max_ms].map(|span| ms(Some(span)));
        [row.key.clone(), format::count(times.count)].into_iter().chain(spans).collect()
    };
    figure(
        id,
        title,
        rows.iter().map(bar).collect(),
        vec!["Name", "Count", "p50", "p95", "p99", "Longest"],
        rows.iter().map(cells).collect(),
        period.csv(by),
    )
}

fn failing(id: &'static str, title: &'static str, (period, report, by): ReportSelection<'_>) -> Option<ChartFigure> {
    // The rate is relative to ended executions, or to ended calls.
    let share = |row: &ReportRow| match by {
        ReportGrouping::Tool => {
            row.error_rate.map(|rate| (rate, row.failed + row.lost, row.succeeded + row.failed + row.lost))
        }
        _ => row.completion_rate.map(|rate| (100.0 - rate, row.ended.all - row.ended.completed, row.ended.all)),
    };
    let mut rows: Vec<(&ReportRow, (f64, u64, u64))> =
        report.rows.iter().filter_map(|row| Some((row, share(row).filter(|(_, wrong, _)| *wrong > 0)?))).collect();
    rows.sort_by(|(_, (one, ..)), (_, (other, ..))| other.total_cmp(one));
    rows.truncate(RANKED_MAX);
    let bar = |(row, (rate, wrong, all)): &(&ReportRow, (f64, u64, u64))| RankedBar {
        label: row.key.clone(),
        value: *rate,
        words: format!("{} ({wrong} of {all})", percent(Some(*rate))),
        tone: StatusTone::Bad,
    };
    let cells = |(row, (rate, wrong, all)): &(&ReportRow, (f64, u64, u64))| {
        vec![row.key.clone(), percent(Some(*rate)), format::count(*wrong), format::count(*all)]
    };
    let bars = rows.iter().map(bar).collect();
    figure(id, title, bars, vec!["Name", "Rate", "Count", "Total"], rows.iter().map(cells).collect(), period.csv(by))
}

fn classes(period: &ReportPeriod, failures: &BTreeMap<String, u64>) -> Option<ChartFigure> {
    let mut rows: Vec<(&String, u64)> = failures.iter().map(|(name, count)| (name, *count)).collect();
    rows.sort_by_key(|(name, count)| (Reverse(*count), *name));
    let bar = |(name, count): &(&String, u64)| RankedBar {
        label: name.replace('_', " "),
        value: *count as f64,
        words: format::count(*count),
        tone: StatusTone::Bad,
    };
    let cells = |(name, count): &(&String, u64)| vec![name.replace('_', " "), format::count(*count)];
    let bars = rows.iter().map(bar).collect();
    let table = rows.iter().map(cells).collect();
    figure(
        "classes",
        "Failed attempts by category",
        bars,
        vec!["Class", "Attempts"],
        table,
        period.csv(ReportGrouping::Tool),
    )
}

fn waits(period: &ReportPeriod, waits: &BTreeMap<String, DurationStats>) -> Option<ChartFigure> {
    let mut rows: Vec<(&String, &DurationStats)> = waits.iter().collect();
    rows.sort_by_key(|(_, times)| Reverse(times.sum_ms));
    let bar = |(cause, times): &(&String, &DurationStats)| RankedBar {
        label: cause.replace('_', " "),
        value: times.sum_ms as f64,
        words: ms(Some(times.sum_ms)),
        tone: StatusTone::Wait,
    };
    let cells = |(cause, times): &(&String, &DurationStats)| {
        let spans = [times.sum_ms, times.p50_ms, times.p95_ms, times.max_ms].map(|span| ms(Some(span)));
        [cause.replace('_', " "), format::count(times.count)].into_iter().chain(spans).collect()
    };
    let bars = rows.iter().map(bar).collect();
    let heads = vec!["For", "Count", "Together", "p50", "p95", "Longest"];
    figure(
        "waits",
        "Waiting time by cause",
        bars,
        heads,
        rows.iter().map(cells).collect(),
        period.csv(ReportGrouping::Plan),
    )
}

fn retries(period: &ReportPeriod, tools: &InsightReport) -> Option<ChartFigure> {
    let mut rows: Vec<&ReportRow> = tools.rows.iter().filter(|row| row.retries > 0).collect();
    rows.sort_by_key(|row| Reverse(row.retries));
    rows.truncate(RANKED_MAX);
    let bar = |row: &&ReportRow| RankedBar {
        label: row.key.clone(),
        value: row.retries as f64,
        words: format::count(row.retries),
        tone: StatusTone::Warn,
    };
    let cells = |row: &&ReportRow| vec![row.key.clone(), format::count(row.retries), format::count(row.calls)];
    let bars = rows.iter().map(bar).collect();
    let table = rows.iter().map(cells).collect();
    figure(
        "retries",
        "Retries by tool",
        bars,
        vec!["Tool", "Retries", "Calls"],
        table,
        period.csv(ReportGrouping::Tool),
    )
}

fn cost(period: &ReportPeriod, plans: &InsightReport) -> Option<ChartFigure> {
    let mut rows: Vec<&ReportRow> = plans.rows.iter().filter(|row| row.cost_micros > 0).collect();
    rows.sort_by_key(|row| Reverse(row.cost_micros));
    rows.truncate(RANKED_MAX);
    let bar = |row: &&ReportRow| RankedBar {
        label: row.key.clone(),
        value: row.cost_micros as f64,
        words: money(row.cost_micros),
        tone: StatusTone::Run,
    };
    let cells = |row: &&ReportRow| {
        let each = row.cost_micros_per_execution.unwrap_or_default() as u64;
        vec![row.key.clone(), money(row.cost_micros), money(each)]
    };
    let bars = rows.iter().map(bar).collect();
    let table = rows.iter().map(cells).collect();
    figure(
        "cost",
        "Cost by plan",
        bars,
        vec!["Plan", "Total", "Per execution"],
        table,
        period.csv(ReportGrouping::Plan),
    )
}

/// Without anything to compare there is no chart.
fn figure(
    id: &'static str,
    title: &'static str,
    bars: Vec<RankedBar>,
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    csv: String,
) -> Option<ChartFigure> {
    let svg = chart::ranked(title, &bars);
    (!bars.is_empty()).then_some(ChartFigure { id, title, svg, heads, rows, csv })
}
