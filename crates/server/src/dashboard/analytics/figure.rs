//! Pictures of what was counted, each with the numbers it was made from.

use super::period::Period;
use super::{money, ms, percent};
use crate::dashboard::format;
use crate::drawing::chart::{self, Bar, Ranked, Series, Stacked};
use crate::drawing::status::Tone;
use crate::insight::report::{By, Ended, HourRow, Report, Row, Times};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The longest bars; the table of the page has the rest.
const RANKED_MAX: usize = 10;

pub(super) struct Figure {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) svg: String,
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) csv: String,
}

pub(super) fn all(
    period: &Period,
    plans: &Report,
    tools: &Report,
    days: &Report,
    hours: Option<&[HourRow]>,
) -> Vec<Figure> {
    let mut figures = vec![throughput(period, days, hours)];
    let by_plan = (period, plans, By::Plan);
    let by_tool = (period, tools, By::Tool);
    figures.extend(slowest("plan-times", "How long plans take", by_plan, |row| row.duration));
    figures.extend(slowest("tool-times", "How long calls take", by_tool, |row| row.attempt_time));
    figures.extend(failing("plan-failures", "Executions that did not complete", by_plan));
    figures.extend(failing("tool-failures", "Calls that failed", by_tool));
    figures.extend(classes(period, &plans.total.failures));
    figures.extend(waits(period, &plans.total.waits));
    figures.extend(retries(period, tools));
    figures.extend(cost(period, plans));
    figures
}

fn throughput(period: &Period, days: &Report, hours: Option<&[HourRow]>) -> Figure {
    let series = [
        Series { name: "completed", tone: Tone::Ok },
        Series { name: "partial", tone: Tone::Warn },
        Series { name: "failed", tone: Tone::Bad },
        Series { name: "cancelled or undone", tone: Tone::Muted },
    ];
    let values = |ended: &Ended| {
        vec![ended.completed, ended.partial, ended.failed, ended.cancelled + ended.compensated]
    };
    let bars: Vec<Bar> = match hours {
        Some(hours) => {
            let label = |row: &HourRow| row.start().get(11..16).unwrap_or_default().to_owned();
            hours.iter().map(|row| Bar { label: label(row), values: values(&row.ended) }).collect()
        }
        None => {
            let label = |row: &Row| row.key.get(5..).unwrap_or(&row.key).to_owned();
            days.rows.iter().map(|row| Bar { label: label(row), values: values(&row.ended) }).collect()
        }
    };
    let title =
        if hours.is_some() { "Executions that ended, by hour" } else { "Executions that ended, by day" };
    let chart = Stacked { title, unit: "execution", series: &series, bars: &bars };
    let cells = |bar: &Bar| {
        let counts = bar.values.iter().map(|count| format::count(*count));
        std::iter::once(bar.label.clone()).chain(counts).collect()
    };
    Figure {
        id: "throughput",
        title,
        svg: chart::stacked(&chart),
        heads: vec!["When (UTC)", "Completed", "Partial", "Failed", "Cancelled or undone"],
        rows: bars.iter().map(cells).collect(),
        csv: period.csv(By::Day),
    }
}

type Rows<'a> = (&'a Period, &'a Report, By);

fn slowest(
    id: &'static str,
    title: &'static str,
    (period, report, by): Rows<'_>,
    of: fn(&Row) -> Option<Times>,
) -> Option<Figure> {
    let mut rows: Vec<(&Row, Times)> = report.rows.iter().filter_map(|row| Some((row, of(row)?))).collect();
    rows.sort_by_key(|(_, times)| Reverse(times.p95_ms));
    rows.truncate(RANKED_MAX);
    let bar = |(row, times): &(&Row, Times)| Ranked {
        label: row.key.clone(),
        value: times.p95_ms as f64,
        words: ms(Some(times.p95_ms)),
        tone: Tone::Run,
    };
    let cells = |(row, times): &(&Row, Times)| {
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

fn failing(id: &'static str, title: &'static str, (period, report, by): Rows<'_>) -> Option<Figure> {
    // Of executions those that ended, of calls those that came to an end.
    let share = |row: &Row| match by {
        By::Tool => {
            row.error_rate.map(|rate| (rate, row.failed + row.lost, row.succeeded + row.failed + row.lost))
        }
        _ => {
            row.completion_rate.map(|rate| (100.0 - rate, row.ended.all - row.ended.completed, row.ended.all))
        }
    };
    let mut rows: Vec<(&Row, (f64, u64, u64))> = report
        .rows
        .iter()
        .filter_map(|row| Some((row, share(row).filter(|(_, wrong, _)| *wrong > 0)?)))
        .collect();
    rows.sort_by(|(_, (one, ..)), (_, (other, ..))| other.total_cmp(one));
    rows.truncate(RANKED_MAX);
    let bar = |(row, (rate, wrong, all)): &(&Row, (f64, u64, u64))| Ranked {
        label: row.key.clone(),
        value: *rate,
        words: format!("{} ({wrong} of {all})", percent(Some(*rate))),
        tone: Tone::Bad,
    };
    let cells = |(row, (rate, wrong, all)): &(&Row, (f64, u64, u64))| {
        vec![row.key.clone(), percent(Some(*rate)), format::count(*wrong), format::count(*all)]
    };
    let bars = rows.iter().map(bar).collect();
    figure(
        id,
        title,
        bars,
        vec!["Name", "Share", "Of these", "All"],
        rows.iter().map(cells).collect(),
        period.csv(by),
    )
}

fn classes(period: &Period, failures: &BTreeMap<String, u64>) -> Option<Figure> {
    let mut rows: Vec<(&String, u64)> = failures.iter().map(|(name, count)| (name, *count)).collect();
    rows.sort_by_key(|(name, count)| (Reverse(*count), *name));
    let bar = |(name, count): &(&String, u64)| Ranked {
        label: name.replace('_', " "),
        value: *count as f64,
        words: format::count(*count),
        tone: Tone::Bad,
    };
    let cells = |(name, count): &(&String, u64)| vec![name.replace('_', " "), format::count(*count)];
    let bars = rows.iter().map(bar).collect();
    let table = rows.iter().map(cells).collect();
    figure("classes", "Why attempts failed", bars, vec!["Class", "Attempts"], table, period.csv(By::Tool))
}

fn waits(period: &Period, waits: &BTreeMap<String, Times>) -> Option<Figure> {
    let mut rows: Vec<(&String, &Times)> = waits.iter().collect();
    rows.sort_by_key(|(_, times)| Reverse(times.sum_ms));
    let bar = |(cause, times): &(&String, &Times)| Ranked {
        label: cause.replace('_', " "),
        value: times.sum_ms as f64,
        words: ms(Some(times.sum_ms)),
        tone: Tone::Wait,
    };
    let cells = |(cause, times): &(&String, &Times)| {
        let spans = [times.sum_ms, times.p50_ms, times.p95_ms, times.max_ms].map(|span| ms(Some(span)));
        [cause.replace('_', " "), format::count(times.count)].into_iter().chain(spans).collect()
    };
    let bars = rows.iter().map(bar).collect();
    let heads = vec!["For", "Count", "Together", "p50", "p95", "Longest"];
    figure(
        "waits",
        "What was waited for",
        bars,
        heads,
        rows.iter().map(cells).collect(),
        period.csv(By::Plan),
    )
}

fn retries(period: &Period, tools: &Report) -> Option<Figure> {
    let mut rows: Vec<&Row> = tools.rows.iter().filter(|row| row.retries > 0).collect();
    rows.sort_by_key(|row| Reverse(row.retries));
    rows.truncate(RANKED_MAX);
    let bar = |row: &&Row| Ranked {
        label: row.key.clone(),
        value: row.retries as f64,
        words: format::count(row.retries),
        tone: Tone::Warn,
    };
    let cells = |row: &&Row| vec![row.key.clone(), format::count(row.retries), format::count(row.calls)];
    let bars = rows.iter().map(bar).collect();
    let table = rows.iter().map(cells).collect();
    figure(
        "retries",
        "Calls that were tried again",
        bars,
        vec!["Tool", "Retries", "Calls"],
        table,
        period.csv(By::Tool),
    )
}

fn cost(period: &Period, plans: &Report) -> Option<Figure> {
    let mut rows: Vec<&Row> = plans.rows.iter().filter(|row| row.cost_micros > 0).collect();
    rows.sort_by_key(|row| Reverse(row.cost_micros));
    rows.truncate(RANKED_MAX);
    let bar = |row: &&Row| Ranked {
        label: row.key.clone(),
        value: row.cost_micros as f64,
        words: money(row.cost_micros),
        tone: Tone::Run,
    };
    let cells = |row: &&Row| {
        let each = row.cost_micros_per_execution.unwrap_or_default() as u64;
        vec![row.key.clone(), money(row.cost_micros), money(each)]
    };
    let bars = rows.iter().map(bar).collect();
    let table = rows.iter().map(cells).collect();
    figure(
        "cost",
        "What it cost",
        bars,
        vec!["Plan", "Together", "Each execution"],
        table,
        period.csv(By::Plan),
    )
}

/// Nothing to compare is no picture.
fn figure(
    id: &'static str,
    title: &'static str,
    bars: Vec<Ranked>,
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    csv: String,
) -> Option<Figure> {
    let svg = chart::ranked(title, &bars);
    (!bars.is_empty()).then_some(Figure { id, title, svg, heads, rows, csv })
}
