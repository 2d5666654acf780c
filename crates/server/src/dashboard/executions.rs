//! Every execution, newest first, as many or as few as the address asks for.

pub(super) mod bulk;
mod filter;
mod row;

pub use row::Row;

use super::format;
use super::page::{self, Answer, Visitor};
use super::shell::{Section, Shell};
use crate::desk::Desk;
use askama::Template;
use axum::extract::State;
use filter::{Choice, Filter};
use rutter_core::port;
use rutter_core::port::query::{Cursor, Listing, Page};
use std::sync::Arc;

const ROWS: u32 = 50;

#[derive(Template)]
#[template(path = "executions.html")]
struct Executions {
    shell: Shell,
    filter: Filter,
    chips: Vec<Choice>,
    statuses: Vec<Choice>,
    rows: Vec<Row>,
    /// Where the list goes on.
    next: Option<String>,
    /// Not the beginning of the list.
    is_further: bool,
    /// Why what was asked for cannot be found.
    problem: Option<String>,
}

pub(super) async fn show(State(desk): State<Arc<Desk>>, visitor: Visitor) -> Answer {
    let shell = Shell::open(&desk, &visitor, Section::Executions, "Executions").await?;
    let now = shell.now;
    let filter = Filter::read(&visitor);
    let after = visitor.asked("after").map(|cursor| Cursor(cursor.to_owned()));
    let is_further = after.is_some();
    let page = Page { limit: ROWS, after };
    let found = match filter.wanted(now) {
        Ok(wanted) => desk.query.executions(&visitor.guest.tenant, wanted, page).await,
        Err(problem) => Err(port::Error::Invalid(problem)),
    };
    let (found, problem) = match found {
        Ok(found) => (found, None),
        Err(port::Error::Invalid(problem)) => (Listing { items: Vec::new(), next: None }, Some(problem)),
        Err(error) => return Err(error.into()),
    };
    let next = found.next.map(|Cursor(cursor)| {
        let mut pairs = filter.pairs();
        pairs.push(("after".to_owned(), cursor));
        format!("/executions{}", format::query(&pairs))
    });
    let executions = Executions {
        chips: filter.chips(),
        statuses: filter.statuses(),
        rows: found.items.iter().map(|summary| Row::of(summary, now)).collect(),
        next,
        is_further,
        problem,
        filter,
        shell: shell.live("/api/v1/events"),
    };
    page::show(&executions)
}
