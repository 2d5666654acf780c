//! The Journal page: entries of all journals, newest first, with checkpoints and verification.

mod entry_row;
pub(super) mod export;
mod filter;
pub(super) mod verify;

pub use entry_row::EntryRow;

use super::format::{self, TimeLabel};
use super::page::{self, PageRequest, PageResult};
use super::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::State;
use filter::JournalFilterForm;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::principal::Principal;
use rutter_core::journal::label::KINDS;
use rutter_core::port;
use rutter_core::port::query::{ListCursor, Pagination};
use rutter_core::time::Timestamp;
use std::sync::Arc;

const ROWS: u32 = 100;

#[derive(Template)]
#[template(path = "journal.html")]
struct JournalPage {
    shell: PageShell,
    filter: JournalFilterForm,
    kinds: Vec<(&'static str, bool)>,
    rows: Vec<EntryRow>,
    next: Option<String>,
    is_further: bool,
    problem: Option<String>,
    head: LedgerHead,
    /// How new entries appear: on top, or not at all.
    mode: &'static str,
}

/// The size of the ledger, and how much of it is signed.
struct LedgerHead {
    size: String,
    signed: Option<(String, TimeLabel)>,
    unsigned: String,
}

pub(super) async fn show(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    let tenant = &request.principal.tenant;
    let shell = PageShell::open(&app, &request, PageSection::Journal, "Journal").await?;
    let now = shell.now;
    let filter = JournalFilterForm::read(&request);
    let after = request.query_value("after").map(|cursor| ListCursor(cursor.to_owned()));
    let is_further = after.is_some();
    let page = Pagination { limit: ROWS, after };
    let found = match filter.wanted(now) {
        Ok(wanted) => app.query.entries(tenant, wanted, page).await,
        Err(problem) => Err(port::Error::Invalid(problem)),
    };
    let (found, problem) = page::listed(found)?;
    let next = found.next.map(|ListCursor(cursor)| {
        let mut pairs = filter.pairs();
        pairs.push(("after".to_owned(), cursor));
        format!("/journal{}", format::query(&pairs))
    });
    let is_tail = filter.execution.is_empty() && !is_further;
    let journal = JournalPage {
        kinds: KINDS.iter().map(|kind| (*kind, filter.kind == *kind)).collect(),
        rows: found.items.iter().map(|entry| EntryRow::of(entry, now)).collect(),
        next,
        is_further,
        problem,
        head: head(&app, &request.principal, now).await?,
        mode: if is_tail { "tail" } else { "still" },
        filter,
        shell: if is_tail { shell.live("/api/v1/events") } else { shell },
    };
    page::render(&journal)
}

async fn head(app: &App, caller: &Principal, now: Timestamp) -> Result<LedgerHead, AppError> {
    let size = app.feed.size(&caller.tenant).await?;
    let newest = app.checkpoints(caller, Pagination::first(1)).await?.items.into_iter().next();
    let covered = newest.as_ref().map_or(0, |head| head.size);
    Ok(LedgerHead {
        size: format::count(size),
        signed: newest.map(|head| (format::count(head.size), TimeLabel::of(head.at, now))),
        unsigned: format::count(size.saturating_sub(covered)),
    })
}
