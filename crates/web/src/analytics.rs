//! The Analytics page: counts, success rates, durations, cost and waiting times of all executions.

mod figure;
mod period;

use super::format;
use super::page::{self, PageRequest, PageResult};
use super::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use figure::ChartFigure;
use period::ReportPeriod;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::wording::span;
use rutter_core::time::Millis;
use rutter_observe::insight::report::{DurationStats, InsightReport, ReportGrouping, ReportRow};
use std::sync::Arc;

/// Rows of the table; the CSV has all of them.
const ROWS_MAX: usize = 100;

#[derive(Template)]
#[template(path = "analytics.html")]
struct AnalyticsPage {
    shell: PageShell,
    period: ReportPeriod,
    problem: Option<String>,
    tiles: Vec<AnalyticsTile>,
    figures: Vec<ChartFigure>,
    rows: Vec<AnalyticsRow>,
    more: usize,
    is_empty: bool,
}

struct AnalyticsTile {
    label: &'static str,
    value: String,
    note: String,
}

/// One row of the table.
struct AnalyticsRow {
    key: String,
    href: Option<String>,
    cells: [String; 12],
}

pub(super) async fn show(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    let shell = PageShell::open(&app, &request, PageSection::Analytics, "Analytics").await?;
    let (period, problem) = ReportPeriod::read(&request, shell.now);
    let insight = &app.insight;
    let by = |by: ReportGrouping| insight.report(period.from, period.until, by);
    let (plans, tools, days, drivers) = tokio::try_join!(
        by(ReportGrouping::Plan),
        by(ReportGrouping::Tool),
        by(ReportGrouping::Day),
        by(ReportGrouping::Driver)
    )?;
    let chosen = match period.by {
        ReportGrouping::Plan => &plans,
        ReportGrouping::Tool => &tools,
        ReportGrouping::Day => &days,
        ReportGrouping::Driver => &drivers,
    };
    let hours = (period.from == period.until && period.is_today(shell.now)).then(|| insight.hours(24));
    let analytics = AnalyticsPage {
        tiles: tiles(&plans.total),
        figures: figure::all(&period, &plans, &tools, &days, hours.as_deref()),
        rows: chosen.rows.iter().take(ROWS_MAX).chain([&chosen.total]).map(|row| line(row, chosen)).collect(),
        more: chosen.rows.len().saturating_sub(ROWS_MAX),
        is_empty: plans.total.opened == 0 && plans.total.calls == 0 && plans.total.ended.all == 0,
        period,
        problem,
        shell,
    };
    page::render(&analytics)
}

/// The whole report as CSV.
pub(super) async fn csv(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    let (period, problem) = ReportPeriod::read(&request, app.now());
    if let Some(problem) = problem {
        return Err(AppError::new("server.arguments", problem).into());
    }
    let report = app.insight.report(period.from, period.until, period.by).await?;
    let name = format!("rutter-{}-{}-{}.csv", period.by.as_str(), period.from, period.until);
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, report.csv()).into_response())
}

fn tiles(total: &ReportRow) -> Vec<AnalyticsTile> {
    let tile = |label, value, note| AnalyticsTile { label, value, note };
    let times = |times: Option<DurationStats>, of: fn(DurationStats) -> u64| ms(times.map(of));
    let approvals = total.approvals;
    vec![
        tile("Executions", format::count(total.ended.all), format!("ended; {} opened", format::count(total.opened))),
        tile(
            "Completed",
            percent(total.completion_rate),
            format!("{} failed, {} partial", total.ended.failed, total.ended.partial),
        ),
        tile(
            "p95 duration",
            times(total.duration, |times| times.p95_ms),
            format!("p50 {}, p99 {}", times(total.duration, |t| t.p50_ms), times(total.duration, |t| t.p99_ms)),
        ),
        tile(
            "Failed calls",
            percent(total.error_rate),
            format!("of {}, {} retries", format::count(total.calls), total.retries),
        ),
        tile("Undone", format::count(total.compensated), format!("{} failed", total.compensations_failed)),
        tile("In doubt", format::count(total.doubts), many(total.late_answers, "late response")),
        tile(
            "Approvals",
            format::count(approvals.asked),
            format!("{} granted, {} denied, {} expired", approvals.granted, approvals.denied, approvals.expired),
        ),
        tile(
            "Replans",
            format::count(total.replans),
            format!("{} handovers, {} tools changed", total.handovers, total.drifts),
        ),
    ]
}

fn line(row: &ReportRow, report: &InsightReport) -> AnalyticsRow {
    let href = match report.by {
        _ if row.key == report.total.key => None,
        ReportGrouping::Tool if row.key.contains('.') => Some(format!("/tools/{}", format::encoded(&row.key))),
        ReportGrouping::Plan => Some(format!("/executions{}", format::query(&[("text".to_owned(), row.key.clone())]))),
        ReportGrouping::Day => Some(format!("/analytics?from={0}&until={0}", row.key)),
        _ => None,
    };
    let count = format::count;
    AnalyticsRow {
        key: row.key.clone(),
        href,
        cells: [
            count(row.opened),
            percent(row.completion_rate),
            ms(row.duration.map(|times| times.p50_ms)),
            ms(row.duration.map(|times| times.p95_ms)),
            ms(row.duration.map(|times| times.p99_ms)),
            count(row.calls),
            percent(row.error_rate),
            ms(row.attempt_time.map(|times| times.p95_ms)),
            count(row.retries),
            count(row.replans),
            count(row.compensated),
            money(row.cost_micros),
        ],
    }
}

fn many(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", format::count(count), if count == 1 { "" } else { "s" })
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{share:.1} %"))
}

fn ms(ms: Option<u64>) -> String {
    ms.map_or_else(|| "–".to_owned(), |ms| span(Millis(ms)))
}

fn money(micros: u64) -> String {
    match micros {
        0 => "–".to_owned(),
        micros => format!("{:.4}", micros as f64 / 1_000_000.0),
    }
}
