//! The Overview page: current activity, and what needs attention.

mod attention;

use super::executions::ExecutionRow;
use super::format;
use super::journal::EntryRow;
use super::page::{self, PageRequest, PageResult};
use super::shell::{PageSection, PageShell};
use crate::drawing::chart::{ChartBar, ChartSeries, StackedChart, stacked};
use crate::drawing::status::StatusTone;
use askama::Template;
use attention::AttentionItem;
use axum::extract::State;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::wording::span;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::port::query::{EntryFilter, ExecutionFilter, Pagination, StoreTotals};
use rutter_core::time::Timestamp;
use rutter_core::time::calendar::utc;
use rutter_observe::insight::report::HourlyCounts;
use std::collections::{HashMap, hash_map};
use std::sync::Arc;

const ROWS: u32 = 8;
const ENTRIES: u32 = 16;
/// Hours in the chart.
const HOURS: u32 = 24;
/// Days of executions behind the p95 duration.
const DAYS: u32 = 7;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    shell: PageShell,
    tiles: Vec<OverviewTile>,
    ends: HourlyEndings,
    concerns: Vec<AttentionItem>,
    recent: Vec<ExecutionRow>,
    /// The latest entries, each with its plan.
    activity: Vec<(EntryRow, String)>,
    /// There are no plans or executions yet.
    is_new: bool,
}

struct OverviewTile {
    href: &'static str,
    tone: &'static str,
    label: &'static str,
    value: String,
    note: String,
    is_some: bool,
}

pub(super) async fn show(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    let tenant = &request.principal.tenant;
    let shell = PageShell::open(&app, &request, PageSection::Overview, "Overview").await?.live("/api/v1/events");
    let now = shell.now;
    let (totals, concerns, recent, activity) = tokio::try_join!(
        async { Ok::<_, AppError>(app.query.totals(tenant).await?) },
        attention::concerns(&app, &request.principal, now),
        async { Ok(app.query.executions(tenant, ExecutionFilter::default(), Pagination::first(ROWS)).await?) },
        activity(&app, tenant, now),
    )?;
    let hours = app.insight.hours(HOURS);
    let tiles = vec![running(&totals), waiting(&shell), failures(&hours), duration(&app)];
    let overview = OverviewPage {
        tiles,
        ends: HourlyEndings::of(&hours),
        concerns,
        recent: recent.items.iter().map(|summary| ExecutionRow::of(summary, now)).collect(),
        activity,
        is_new: totals.plans == 0 && totals.executions.is_empty(),
        shell,
    };
    page::render(&overview)
}

async fn activity(app: &App, tenant: &TenantId, now: Timestamp) -> Result<Vec<(EntryRow, String)>, AppError> {
    let entries = app.query.entries(tenant, EntryFilter::default(), Pagination::first(ENTRIES)).await?.items;
    let mut names: HashMap<&ExecutionId, String> = HashMap::new();
    for entry in &entries {
        if let hash_map::Entry::Vacant(unknown) = names.entry(&entry.execution) {
            let identity = ExecutionIdentity { tenant: tenant.clone(), execution: entry.execution.clone() };
            let found = app.query.execution(&identity).await?;
            unknown.insert(found.map_or_else(|| format::short(entry.execution.as_str()), |found| found.name));
        }
    }
    let answer = entries.iter().map(|entry| (EntryRow::of(entry, now), names[&entry.execution].clone()));
    Ok(answer.collect())
}

fn running(totals: &StoreTotals) -> OverviewTile {
    let of = |statuses: &[ExecutionStatus]| -> u64 {
        statuses.iter().filter_map(|status| totals.executions.get(status.as_str())).sum()
    };
    let running = of(&[
        ExecutionStatus::Pending,
        ExecutionStatus::Running,
        ExecutionStatus::Replanning,
        ExecutionStatus::Compensating,
    ]);
    let (paused, all) = (of(&[ExecutionStatus::Paused]), of(&ExecutionStatus::ALL));
    OverviewTile {
        href: "/executions?status=pending&status=running&status=replanning&status=compensating",
        tone: "run",
        label: "Running",
        value: format::count(running),
        note: format!("{} paused, {} in total", format::count(paused), format::count(all)),
        is_some: running > 0,
    }
}

fn waiting(shell: &PageShell) -> OverviewTile {
    let waiting = shell.badges.waiting;
    let many = waiting >= super::shell::WAITING_MAX as usize;
    OverviewTile {
        href: "/approvals",
        tone: "wait",
        label: "Waiting for a person",
        value: if many { "99+".to_owned() } else { waiting.to_string() },
        note: if waiting == 0 { "no open questions" } else { "open questions" }.to_owned(),
        is_some: waiting > 0,
    }
}

fn failures(hours: &[HourlyCounts]) -> OverviewTile {
    let sum = |of: fn(&HourlyCounts) -> u64| hours.iter().map(of).sum::<u64>();
    let failed = sum(|hour| hour.ended.failed + hour.ended.partial);
    let stopped = sum(|hour| hour.ended.cancelled + hour.ended.compensated);
    OverviewTile {
        href: "/executions?status=failed&status=partial&from=24h",
        tone: "bad",
        label: "Failed in 24 h",
        value: format::count(failed),
        note: format!("{} cancelled or undone", format::count(stopped)),
        is_some: failed > 0,
    }
}

/// The 95th percentile of execution durations.
fn duration(app: &App) -> OverviewTile {
    let took = app.insight.p95(DAYS);
    OverviewTile {
        href: "/analytics",
        tone: "muted",
        label: "p95 duration",
        value: took.map_or_else(|| "–".to_owned(), span),
        note: format!("of executions that ended in {DAYS} days"),
        is_some: false,
    }
}

const SERIES: [ChartSeries<'static>; 4] = [
    ChartSeries { name: "completed", tone: StatusTone::Ok },
    ChartSeries { name: "partial", tone: StatusTone::Warn },
    ChartSeries { name: "failed", tone: StatusTone::Bad },
    ChartSeries { name: "cancelled or undone", tone: StatusTone::Muted },
];

/// Executions that ended in each hour, as a chart and as a table.
struct HourlyEndings {
    svg: String,
    rows: Vec<(String, Vec<u64>)>,
}

impl HourlyEndings {
    fn of(hours: &[HourlyCounts]) -> HourlyEndings {
        let row = |hour: &HourlyCounts| {
            let label = utc(Timestamp(hour.start_ms))[11..16].to_owned();
            let ended = &hour.ended;
            (label, vec![ended.completed, ended.partial, ended.failed, ended.cancelled + ended.compensated])
        };
        let rows: Vec<(String, Vec<u64>)> = hours.iter().map(row).collect();
        let bar = |(label, values): &(String, Vec<u64>)| ChartBar { label: label.clone(), values: values.clone() };
        let bars: Vec<ChartBar> = rows.iter().map(bar).collect();
        let title = "Ended executions by hour (UTC)";
        let svg = stacked(&StackedChart { title, unit: "execution", series: &SERIES, bars: &bars });
        HourlyEndings { svg, rows }
    }
}
