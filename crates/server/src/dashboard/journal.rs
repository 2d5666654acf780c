//! The ledger for people: what happened, newest first, and whether it still says what was written.

pub(super) mod export;
mod filter;
mod told;
pub(super) mod verify;

pub use told::Told;

use super::format::{self, Moment};
use super::page::{self, Answer, Visitor};
use super::shell::{Section, Shell};
use crate::desk::Desk;
use crate::fault::Fault;
use askama::Template;
use axum::extract::State;
use filter::Filter;
use rutter_core::id::TenantId;
use rutter_core::journal::label::KINDS;
use rutter_core::port;
use rutter_core::port::query::{Cursor, Listing, Page};
use rutter_core::time::Timestamp;
use std::sync::Arc;

const ROWS: u32 = 100;

#[derive(Template)]
#[template(path = "journal.html")]
struct Journal {
    shell: Shell,
    filter: Filter,
    kinds: Vec<(&'static str, bool)>,
    rows: Vec<Told>,
    next: Option<String>,
    is_further: bool,
    problem: Option<String>,
    head: Head,
    /// How new entries come in: at the top, or not by themselves.
    mode: &'static str,
}

/// How far the ledger goes, and how far it is signed.
struct Head {
    size: String,
    signed: Option<(String, Moment)>,
    unsigned: String,
}

pub(super) async fn show(State(desk): State<Arc<Desk>>, visitor: Visitor) -> Answer {
    let tenant = &visitor.guest.tenant;
    let shell = Shell::open(&desk, &visitor, Section::Journal, "Journal").await?;
    let now = shell.now;
    let filter = Filter::read(&visitor);
    let after = visitor.asked("after").map(|cursor| Cursor(cursor.to_owned()));
    let is_further = after.is_some();
    let page = Page { limit: ROWS, after };
    let found = match filter.wanted(now) {
        Ok(wanted) => desk.query.entries(tenant, wanted, page).await,
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
        format!("/journal{}", format::query(&pairs))
    });
    let is_tail = filter.execution.is_empty() && !is_further;
    let journal = Journal {
        kinds: KINDS.iter().map(|kind| (*kind, filter.kind == *kind)).collect(),
        rows: found.items.iter().map(|entry| Told::of(entry, now)).collect(),
        next,
        is_further,
        problem,
        head: head(&desk, tenant, now).await?,
        mode: if is_tail { "tail" } else { "still" },
        filter,
        shell: if is_tail { shell.live("/api/v1/events") } else { shell },
    };
    page::show(&journal)
}

async fn head(desk: &Desk, tenant: &TenantId, now: Timestamp) -> Result<Head, Fault> {
    let size = desk.feed.size(tenant).await?;
    let newest = desk.proof.checkpoints(tenant, Page::first(1)).await?.items.into_iter().next();
    let covered = newest.as_ref().map_or(0, |head| head.size);
    Ok(Head {
        size: format::count(size),
        signed: newest.map(|head| (format::count(head.size), Moment::of(head.at, now))),
        unsigned: format::count(size.saturating_sub(covered)),
    })
}
