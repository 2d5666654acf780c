//! Every plan, last saved first, with how its last executions went.

use super::format::{self, Id, Look, Moment};
use super::page::{self, Answer, Visitor};
use super::shell::{Section, Shell};
use crate::desk::Desk;
use crate::fault::Fault;
use askama::Template;
use axum::extract::State;
use futures::future::join_all;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::query::{Cursor, ExecutionFilter, Listing, Page, PlanFilter, PlanSummary};
use rutter_core::time::Timestamp;
use std::sync::Arc;

const ROWS: u32 = 50;
/// How many of a plan's executions are looked at.
const LAST_MAX: u32 = 12;

#[derive(Template)]
#[template(path = "plans.html")]
struct Plans {
    shell: Shell,
    text: String,
    tag: String,
    rows: Vec<Row>,
    next: Option<String>,
    is_further: bool,
    problem: Option<String>,
}

struct Row {
    id: Id,
    name: String,
    goal: String,
    revision: u32,
    steps: u32,
    tags: Vec<String>,
    saved: Moment,
    by: String,
    /// The oldest of the last first.
    last: Vec<(Look, String)>,
}

pub(super) async fn show(State(desk): State<Arc<Desk>>, visitor: Visitor) -> Answer {
    let shell = Shell::open(&desk, &visitor, Section::Plans, "Plans").await?;
    let asked = |name: &str| visitor.asked(name).unwrap_or_default().to_owned();
    let (text, tag) = (asked("text"), asked("tag"));
    let wanted = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let filter = PlanFilter { name: None, tag: wanted(&tag), text: wanted(&text) };
    let after = visitor.asked("after").map(|cursor| Cursor(cursor.to_owned()));
    let is_further = after.is_some();
    let found = desk.query.plans(&visitor.guest.tenant, filter, Page { limit: ROWS, after }).await;
    let (found, problem) = match found {
        Ok(found) => (found, None),
        Err(port::Error::Invalid(problem)) => (Listing { items: Vec::new(), next: None }, Some(problem)),
        Err(error) => return Err(error.into()),
    };
    let rows = found.items.iter().map(|plan| row(&desk, &visitor.guest.tenant, plan, shell.now));
    let rows = join_all(rows).await.into_iter().collect::<Result<Vec<Row>, Fault>>()?;
    let next = found.next.map(|Cursor(cursor)| {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        format!("/plans{}", format::query(&[pair("text", &text), pair("tag", &tag), pair("after", &cursor)]))
    });
    page::show(&Plans { text, tag, rows, next, is_further, problem, shell: shell.live("/api/v1/events") })
}

async fn row(desk: &Desk, tenant: &TenantId, plan: &PlanSummary, now: Timestamp) -> Result<Row, Fault> {
    let filter = ExecutionFilter { plan: Some(plan.id.clone()), ..ExecutionFilter::default() };
    let last = desk.query.executions(tenant, filter, Page::first(LAST_MAX)).await?.items;
    let strip = last.iter().rev().map(|execution| {
        (Look::of(execution.row.status.as_str()), Id::execution(execution.id.as_str()).href)
    });
    Ok(Row {
        id: Id { full: plan.id.to_string(), href: format!("/plans/{}", format::encoded(plan.id.as_str())) },
        name: plan.name.clone(),
        goal: plan.goal.clone(),
        revision: plan.revision,
        steps: plan.steps,
        tags: plan.tags.clone(),
        saved: Moment::of(plan.saved_at, now),
        by: plan.actor.to_string(),
        last: strip.collect(),
    })
}
