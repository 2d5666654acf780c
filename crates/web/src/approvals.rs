//! The Approvals page: open questions of all executions, with the forms that answer them.

use super::format;
use super::page::{self, PageRequest, PageResult};
use super::question::{self, QuestionCard};
use super::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::State;
use futures::future::join_all;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::id::{PartId, PlanId, TenantId};
use rutter_core::journal::event::{CallSide, Event};
use rutter_core::port::query::{EntryFilter, ExecutionFilter, ExecutionSummary, ListCursor, Pagination, TimeRange};
use serde_json::Value;
use std::sync::Arc;

/// Executions per page; all questions of each are shown.
const EXECUTIONS: u32 = 20;
/// Entries of an earlier execution searched for the same call.
const ENTRIES: u32 = 200;

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    shell: PageShell,
    cards: Vec<QuestionCard>,
    next: Option<String>,
    is_further: bool,
}

pub(super) async fn show(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    let tenant = &request.principal.tenant;
    let shell = PageShell::open(&app, &request, PageSection::Approvals, "Approvals").await?.live("/api/v1/events");
    let after = request.query_value("after").map(|cursor| ListCursor(cursor.to_owned()));
    let is_further = after.is_some();
    let filter = ExecutionFilter { asking: true, ..ExecutionFilter::default() };
    let found = app.query.executions(tenant, filter, Pagination { limit: EXECUTIONS, after }).await?;
    let cards = found.items.iter().map(|summary| cards(&app, tenant, summary, &shell));
    let cards = join_all(cards).await.into_iter().collect::<Result<Vec<_>, AppError>>()?;
    let next =
        found.next.map(|ListCursor(cursor)| format!("/approvals{}", format::query(&[("after".to_owned(), cursor)])));
    page::render(&ApprovalsPage { shell, cards: cards.into_iter().flatten().collect(), next, is_further })
}

async fn cards(
    app: &App,
    tenant: &TenantId,
    summary: &ExecutionSummary,
    shell: &PageShell,
) -> Result<Vec<QuestionCard>, AppError> {
    let identity = ExecutionIdentity { tenant: tenant.clone(), execution: summary.id.clone() };
    let view = app.view(&identity).await?;
    let mut cards = QuestionCard::all(&view, shell);
    for (card, ask) in cards.iter_mut().zip(&view.questions) {
        let PendingQuestion::Approval { part, .. } = ask else { continue };
        let Some(call) = card.call.as_ref().filter(|_| !card.is_cut) else { continue };
        if let Some(before) = called_before(app, tenant, &summary.plan, summary, part).await? {
            card.difference = question::lines(&question::pretty(&before).0, call);
        }
    }
    Ok(cards)
}

/// The arguments of the same step in the previous execution of the plan.
async fn called_before(
    app: &App,
    tenant: &TenantId,
    plan: &PlanId,
    summary: &ExecutionSummary,
    part: &PartId,
) -> Result<Option<Value>, AppError> {
    let opened = TimeRange { from: None, until: Some(summary.row.opened_at) };
    let filter = ExecutionFilter { plan: Some(plan.clone()), opened, ..ExecutionFilter::default() };
    let before = app.query.executions(tenant, filter, Pagination::first(1)).await?;
    let Some(before) = before.items.into_iter().next() else { return Ok(None) };
    let filter =
        EntryFilter { execution: Some(before.id), kinds: vec!["attempt_started".to_owned()], ..EntryFilter::default() };
    let started = app.query.entries(tenant, filter, Pagination::first(ENTRIES)).await?;
    let called = started.items.into_iter().find_map(|entry| match entry.record.event {
        Event::AttemptStarted { part: called, side: CallSide::Do, parameters, .. } if called == *part => {
            parameters.value().map(|value| (**value).clone())
        }
        _ => None,
    });
    Ok(called)
}
