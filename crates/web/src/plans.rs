//! The list of plans, last saved first, with the status of their last executions.

use super::format::{self, IdentifierLink, StatusBadge, TimeLabel};
use super::page::{self, PageRequest, PageResult};
use super::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::State;
use futures::future::join_all;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_core::id::TenantId;
use rutter_core::port::query::{ExecutionFilter, ListCursor, Pagination, PlanFilter, PlanSummary};
use rutter_core::time::Timestamp;
use std::sync::Arc;

const ROWS: u32 = 50;
/// Executions shown per plan.
const LAST_MAX: u32 = 12;

#[derive(Template)]
#[template(path = "plans.html")]
struct PlansPage {
    shell: PageShell,
    text: String,
    tag: String,
    /// Archived plans instead of the others.
    archived: bool,
    rows: Vec<PlanTableRow>,
    next: Option<String>,
    is_further: bool,
    problem: Option<String>,
}

struct PlanTableRow {
    id: IdentifierLink,
    name: String,
    goal: String,
    revision: u32,
    steps: u32,
    tags: Vec<String>,
    saved: TimeLabel,
    by: String,
    /// Oldest of the last executions first.
    last: Vec<(StatusBadge, String)>,
}

pub(super) async fn show(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    let shell = PageShell::open(&app, &request, PageSection::Plans, "Plans").await?;
    let asked = |name: &str| request.query_value(name).unwrap_or_default().to_owned();
    let (text, tag) = (asked("text"), asked("tag"));
    let wanted = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let archived = request.query_value("archived") == Some("true");
    let filter = PlanFilter { tag: wanted(&tag), text: wanted(&text), archived, ..PlanFilter::default() };
    let after = request.query_value("after").map(|cursor| ListCursor(cursor.to_owned()));
    let is_further = after.is_some();
    let found = app.query.plans(&request.principal.tenant, filter, Pagination { limit: ROWS, after }).await;
    let (found, problem) = page::listed(found)?;
    let rows = found.items.iter().map(|plan| row(&app, &request.principal.tenant, plan, shell.now));
    let rows = join_all(rows).await.into_iter().collect::<Result<Vec<PlanTableRow>, AppError>>()?;
    let next = found.next.map(|ListCursor(cursor)| {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let archived = if archived { "true" } else { "" };
        let pairs = [pair("text", &text), pair("tag", &tag), pair("archived", archived), pair("after", &cursor)];
        format!("/plans{}", format::query(&pairs))
    });
    page::render(&PlansPage {
        text,
        tag,
        archived,
        rows,
        next,
        is_further,
        problem,
        shell: shell.live("/api/v1/events"),
    })
}

async fn row(app: &App, tenant: &TenantId, plan: &PlanSummary, now: Timestamp) -> Result<PlanTableRow, AppError> {
    let filter = ExecutionFilter { plan: Some(plan.id.clone()), ..ExecutionFilter::default() };
    let last = app.query.executions(tenant, filter, Pagination::first(LAST_MAX)).await?.items;
    let strip = last.iter().rev().map(|execution| {
        (StatusBadge::of(execution.row.status.as_str()), IdentifierLink::execution(execution.id.as_str()).href)
    });
    Ok(PlanTableRow {
        id: IdentifierLink { full: plan.id.to_string(), href: format!("/plans/{}", format::encoded(plan.id.as_str())) },
        name: plan.name.clone(),
        goal: plan.goal.clone(),
        revision: plan.revision,
        steps: plan.steps,
        tags: plan.tags.clone(),
        saved: TimeLabel::of(plan.saved_at, now),
        by: plan.actor.to_string(),
        last: strip.collect(),
    })
}
