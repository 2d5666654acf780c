//! The list of executions, newest first, filtered by the URL.

pub(super) mod bulk;
mod filter;
mod row;

pub use row::ExecutionRow;

use super::format;
use super::page::{self, PageRequest, PageResult};
use super::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::State;
use filter::{ExecutionFilterForm, FilterChoice};
use rutter_app::app::App;
use rutter_core::port;
use rutter_core::port::query::{ListCursor, Pagination};
use std::sync::Arc;

const ROWS: u32 = 50;

#[derive(Template)]
#[template(path = "executions.html")]
struct ExecutionsPage {
    shell: PageShell,
    filter: ExecutionFilterForm,
    chips: Vec<FilterChoice>,
    statuses: Vec<FilterChoice>,
    rows: Vec<ExecutionRow>,
    /// The next page.
    next: Option<String>,
    /// Whether this is not the first page.
    is_further: bool,
    /// Why the filter is invalid.
    problem: Option<String>,
}

pub(super) async fn show(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    let shell = PageShell::open(&app, &request, PageSection::Executions, "Executions").await?;
    let now = shell.now;
    let filter = ExecutionFilterForm::read(&request);
    let after = request.query_value("after").map(|cursor| ListCursor(cursor.to_owned()));
    let is_further = after.is_some();
    let page = Pagination { limit: ROWS, after };
    let found = match filter.wanted(now) {
        Ok(wanted) => app.query.executions(&request.principal.tenant, wanted, page).await,
        Err(problem) => Err(port::Error::Invalid(problem)),
    };
    let (found, problem) = page::listed(found)?;
    let next = found.next.map(|ListCursor(cursor)| {
        let mut pairs = filter.pairs();
        pairs.push(("after".to_owned(), cursor));
        format!("/executions{}", format::query(&pairs))
    });
    let executions = ExecutionsPage {
        chips: filter.chips(),
        statuses: filter.statuses(),
        rows: found.items.iter().map(|summary| ExecutionRow::of(summary, now)).collect(),
        next,
        is_further,
        problem,
        filter,
        shell: shell.live("/api/v1/events"),
    };
    page::render(&executions)
}
