//! What is happening, and what needs somebody.

mod attention;

use super::executions::Row;
use super::format;
use super::journal::Told;
use super::page::{self, Answer, Visitor};
use super::shell::{Section, Shell};
use crate::desk::Desk;
use crate::fault::Fault;
use askama::Template;
use attention::Concern;
use axum::extract::State;
use rutter_core::execution::view::Status;
use rutter_core::id::TenantId;
use rutter_core::port::query::{Between, EntryFilter, ExecutionFilter, History, Page, Totals};
use rutter_core::time::{Millis, Timestamp};
use std::sync::Arc;

/// How many executions the figures are taken from when they have to be looked at.
const SAMPLE: u32 = 200;
const ROWS: u32 = 8;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    shell: Shell,
    tiles: Vec<Tile>,
    concerns: Vec<Concern>,
    recent: Vec<Row>,
    activity: Vec<Told>,
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
    let (totals, failed, concerns, recent, activity) = tokio::try_join!(
        async { Ok::<_, Fault>(desk.query.totals(tenant).await?) },
        failed_today(&desk, tenant, now),
        attention::concerns(&desk, tenant, now),
        async { Ok(desk.query.executions(tenant, ExecutionFilter::default(), Page::first(ROWS)).await?) },
        async { Ok(desk.query.entries(tenant, EntryFilter::default(), Page::first(ROWS)).await?) },
    )?;
    let tiles = vec![running(&totals), waiting(&shell), failures(&failed), duration(&desk, tenant).await?];
    let overview = Overview {
        tiles,
        concerns,
        recent: recent.items.iter().map(|summary| Row::of(summary, now)).collect(),
        activity: activity.items.iter().map(|entry| Told::of(entry, now)).collect(),
        is_new: totals.plans == 0 && totals.executions.is_empty(),
        shell,
    };
    page::show(&overview)
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

/// The newest that ended without reaching their goal, of those opened within a day.
async fn failed_today(desk: &Desk, tenant: &TenantId, now: Timestamp) -> Result<Vec<Status>, Fault> {
    let from = Some(Timestamp(now.0.saturating_sub_unsigned(Millis::hours(24).0)));
    let opened = Between { from, until: None };
    let filter = ExecutionFilter { opened, ..History::Failed.filter() };
    let found = desk.query.executions(tenant, filter, Page::first(SAMPLE)).await?;
    Ok(found.items.iter().map(|summary| summary.row.status).collect())
}

fn failures(statuses: &[Status]) -> Tile {
    let failed = statuses.iter().filter(|status| matches!(status, Status::Failed | Status::Partial)).count();
    let many = statuses.len() >= SAMPLE as usize;
    Tile {
        href: "/executions?status=failed&status=partial&from=24h",
        tone: "bad",
        label: "Failed in 24 h",
        value: if many { format!("{failed}+") } else { failed.to_string() },
        note: format!("{} cancelled or undone", statuses.len() - failed),
        is_some: failed > 0,
    }
}

/// Of the newest that completed: how long nearly all of them took at the most.
async fn duration(desk: &Desk, tenant: &TenantId) -> Result<Tile, Fault> {
    let found = desk.query.executions(tenant, History::Completed.filter(), Page::first(SAMPLE)).await?;
    let took =
        found.items.iter().filter_map(|summary| Some(summary.row.last_at.since(summary.row.started_at?)));
    let mut took: Vec<Millis> = took.collect();
    took.sort_unstable();
    let at = |percent: usize| took.get((took.len() * percent / 100).min(took.len().saturating_sub(1)));
    let said = |percent: usize| at(percent).map_or_else(|| "–".to_owned(), |took| format::span(*took));
    Ok(Tile {
        href: "/analytics",
        tone: "muted",
        label: "p95 duration",
        value: said(95),
        note: format!("median {}, newest {} completed", said(50), took.len()),
        is_some: false,
    })
}
