//! Everything that waits for somebody, with the forms to answer it.

use super::format;
use super::page::{self, Answer, Visitor};
use super::question::{self, Card};
use super::shell::{Section, Shell};
use crate::desk::Desk;
use crate::fault::Fault;
use askama::Template;
use axum::extract::State;
use futures::future::join_all;
use rutter_core::execution::Identity;
use rutter_core::execution::view::Ask;
use rutter_core::id::{PartId, PlanId, TenantId};
use rutter_core::journal::event::{Event, Side};
use rutter_core::port::query::{Between, Cursor, EntryFilter, ExecutionFilter, ExecutionSummary, Page};
use serde_json::Value;
use std::sync::Arc;

/// On one page; executions with several questions are shown with all of them.
const EXECUTIONS: u32 = 20;
/// Entries of an earlier execution that are looked through for the same call.
const ENTRIES: u32 = 200;

#[derive(Template)]
#[template(path = "approvals.html")]
struct Approvals {
    shell: Shell,
    cards: Vec<Card>,
    next: Option<String>,
    is_further: bool,
}

pub(super) async fn show(State(desk): State<Arc<Desk>>, visitor: Visitor) -> Answer {
    let tenant = &visitor.guest.tenant;
    let shell = Shell::open(&desk, &visitor, Section::Approvals, "Approvals").await?.live("/api/v1/events");
    let after = visitor.asked("after").map(|cursor| Cursor(cursor.to_owned()));
    let is_further = after.is_some();
    let filter = ExecutionFilter { asking: true, ..ExecutionFilter::default() };
    let found = desk.query.executions(tenant, filter, Page { limit: EXECUTIONS, after }).await?;
    let cards = found.items.iter().map(|summary| cards(&desk, tenant, summary, &shell));
    let cards = join_all(cards).await.into_iter().collect::<Result<Vec<_>, Fault>>()?;
    let next = found
        .next
        .map(|Cursor(cursor)| format!("/approvals{}", format::query(&[("after".to_owned(), cursor)])));
    page::show(&Approvals { shell, cards: cards.into_iter().flatten().collect(), next, is_further })
}

async fn cards(
    desk: &Desk,
    tenant: &TenantId,
    summary: &ExecutionSummary,
    shell: &Shell,
) -> Result<Vec<Card>, Fault> {
    let identity = Identity { tenant: tenant.clone(), execution: summary.id.clone() };
    let view = desk.engine.view(&identity).await?;
    let mut cards = Card::all(&view, shell);
    for (card, ask) in cards.iter_mut().zip(&view.questions) {
        let Ask::Approval { part, .. } = ask else { continue };
        let Some(call) = card.call.as_ref().filter(|_| !card.is_cut) else { continue };
        if let Some(before) = called_before(desk, tenant, &summary.plan, summary, part).await? {
            card.difference = question::lines(&question::pretty(&before).0, call);
        }
    }
    Ok(cards)
}

/// What the same step was called with in the execution of the plan before this one.
async fn called_before(
    desk: &Desk,
    tenant: &TenantId,
    plan: &PlanId,
    summary: &ExecutionSummary,
    part: &PartId,
) -> Result<Option<Value>, Fault> {
    let opened = Between { from: None, until: Some(summary.row.opened_at) };
    let filter = ExecutionFilter { plan: Some(plan.clone()), opened, ..ExecutionFilter::default() };
    let before = desk.query.executions(tenant, filter, Page::first(1)).await?;
    let Some(before) = before.items.into_iter().next() else { return Ok(None) };
    let filter = EntryFilter {
        execution: Some(before.id),
        kinds: vec!["attempt_started".to_owned()],
        ..EntryFilter::default()
    };
    let started = desk.query.entries(tenant, filter, Page::first(ENTRIES)).await?;
    let called = started.items.into_iter().find_map(|entry| match entry.record.event {
        Event::AttemptStarted { part: called, side: Side::Do, parameters, .. } if called == *part => {
            parameters.value().map(|value| (**value).clone())
        }
        _ => None,
    });
    Ok(called)
}
