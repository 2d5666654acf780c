//! What is happening, and what needs somebody.

mod attention;

use super::executions::Row;
use super::format;
use super::journal::Told;
use super::page::{self, Answer, Visitor};
use super::shell::{Section, Shell};
use crate::desk::Desk;
use crate::drawing::chart::{Bar, Series, Stacked, stacked};
use crate::drawing::status::Tone;
use crate::fault::Fault;
use crate::insight::report::HourRow;
use crate::words::span;
use askama::Template;
use attention::Concern;
use axum::extract::State;
use rutter_core::execution::Identity;
use rutter_core::execution::view::Status;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::port::query::{EntryFilter, ExecutionFilter, Page, Totals};
use rutter_core::time::Timestamp;
use rutter_core::time::calendar::utc;
use std::collections::{HashMap, hash_map};
use std::sync::Arc;

const ROWS: u32 = 8;
const ENTRIES: u32 = 16;
/// How far the chart goes back.
const HOURS: u32 = 24;
/// How far durations are taken from.
const DAYS: u32 = 7;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    shell: Shell,
    tiles: Vec<Tile>,
    ends: Ends,
    concerns: Vec<Concern>,
    recent: Vec<Row>,
    /// What happened last, and in which plan.
    activity: Vec<(Told, String)>,
    /// Nothing was ever planned or executed here.
    is_new: bool,
}

struct Tile {
    href: &'static str,
    tone: &'static str,
    label: &'static str,
    value: String,
    note: String,
    is_some: bool,
}

pub(super) async fn show(State(desk): State<Arc<Desk>>, visitor: Visitor) -> Answer {
    let tenant = &visitor.guest.tenant;
    let shell = Shell::open(&desk, &visitor, Section::Overview, "Overview").await?.live("/api/v1/events");
    let now = shell.now;
    let (totals, concerns, recent, activity) = tokio::try_join!(
        async { Ok::<_, Fault>(desk.query.totals(tenant).await?) },
        attention::concerns(&desk, tenant, now),
        async { Ok(desk.query.executions(tenant, ExecutionFilter::default(), Page::first(ROWS)).await?) },
        activity(&desk, tenant, now),
    )?;
    let hours = desk.insight.hours(HOURS);
    let tiles = vec![running(&totals), waiting(&shell), failures(&hours), duration(&desk)];
    let overview = Overview {
        tiles,
        ends: Ends::of(&hours),
        concerns,
        recent: recent.items.iter().map(|summary| Row::of(summary, now)).collect(),
        activity,
        is_new: totals.plans == 0 && totals.executions.is_empty(),
        shell,
    };
    page::show(&overview)
}

async fn activity(desk: &Desk, tenant: &TenantId, now: Timestamp) -> Result<Vec<(Told, String)>, Fault> {
    let entries = desk.query.entries(tenant, EntryFilter::default(), Page::first(ENTRIES)).await?.items;
    let mut names: HashMap<&ExecutionId, String> = HashMap::new();
    for entry in &entries {
        if let hash_map::Entry::Vacant(unknown) = names.entry(&entry.execution) {
            let identity = Identity { tenant: tenant.clone(), execution: entry.execution.clone() };
            let found = desk.query.execution(&identity).await?;
            unknown.insert(found.map_or_else(|| format::short(entry.execution.as_str()), |found| found.name));
        }
    }
    let told = entries.iter().map(|entry| (Told::of(entry, now), names[&entry.execution].clone()));
    Ok(told.collect())
}

fn running(totals: &Totals) -> Tile {
    let of = |statuses: &[Status]| -> u64 {
        statuses.iter().filter_map(|status| totals.executions.get(status.as_str())).sum()
    };
    let running = of(&[Status::Pending, Status::Running, Status::Replanning, Status::Compensating]);
    let (paused, all) = (of(&[Status::Paused]), of(&Status::ALL));
    Tile {
        href: "/executions?status=pending&status=running&status=replanning&status=compensating",
        tone: "run",
        label: "Running",
        value: format::count(running),
        note: format!("{} paused, {} in all", format::count(paused), format::count(all)),
        is_some: running > 0,
    }
}

fn waiting(shell: &Shell) -> Tile {
    let waiting = shell.badges.waiting;
    let many = waiting >= super::shell::WAITING_MAX as usize;
    Tile {
        href: "/approvals",
        tone: "wait",
        label: "Waiting for somebody",
        value: if many { "99+".to_owned() } else { waiting.to_string() },
        note: if waiting == 0 { "nothing needs you" } else { "open questions" }.to_owned(),
        is_some: waiting > 0,
    }
}

fn failures(hours: &[HourRow]) -> Tile {
    let sum = |of: fn(&HourRow) -> u64| hours.iter().map(of).sum::<u64>();
    let failed = sum(|hour| hour.ended.failed + hour.ended.partial);
    let stopped = sum(|hour| hour.ended.cancelled + hour.ended.compensated);
    Tile {
        href: "/executions?status=failed&status=partial&from=24h",
        tone: "bad",
        label: "Failed in 24 h",
        value: format::count(failed),
        note: format!("{} cancelled or undone", format::count(stopped)),
        is_some: failed > 0,
    }
}

/// How long nearly all executions took at the most.
fn duration(desk: &Desk) -> Tile {
    let took = desk.insight.p95(DAYS);
    Tile {
        href: "/analytics",
        tone: "muted",
        label: "p95 duration",
        value: took.map_or_else(|| "–".to_owned(), span),
        note: format!("of those that ended in {DAYS} days"),
        is_some: false,
    }
}

const SERIES: [Series<'static>; 4] = [
    Series { name: "completed", tone: Tone::Ok },
    Series { name: "partial", tone: Tone::Warn },
    Series { name: "failed", tone: Tone::Bad },
    Series { name: "cancelled or undone", tone: Tone::Muted },
];

/// What ended in each hour, as a picture and as a table.
struct Ends {
    svg: String,
    rows: Vec<(String, Vec<u64>)>,
}

impl Ends {
    fn of(hours: &[HourRow]) -> Ends {
        let row = |hour: &HourRow| {
            let label = utc(Timestamp(hour.start_ms))[11..16].to_owned();
            let ended = &hour.ended;
            (label, vec![ended.completed, ended.partial, ended.failed, ended.cancelled + ended.compensated])
        };
        let rows: Vec<(String, Vec<u64>)> = hours.iter().map(row).collect();
        let bar = |(label, values): &(String, Vec<u64>)| Bar { label: label.clone(), values: values.clone() };
        let bars: Vec<Bar> = rows.iter().map(bar).collect();
        let title = "Executions that ended, by hour (UTC)";
        let svg = stacked(&Stacked { title, unit: "execution", series: &SERIES, bars: &bars });
        Ends { svg, rows }
    }
}
