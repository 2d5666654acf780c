//! One thing that was, or is to be, sent to a webhook.

use super::webhook;
use crate::auth::{Scope, require};
use crate::dashboard::format::{Look, Moment};
use crate::dashboard::page::{self, Answer, Posted, Visitor};
use crate::dashboard::shell::{Section, Shell};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::watch::DeliveryLine;
use crate::words::span;
use askama::Template;
use axum::extract::{Path, State};
use rutter_core::time::{Millis, Timestamp};
use std::sync::Arc;

/// As a line of the log.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) href: String,
    pub(super) webhook_href: String,
    pub(super) kind: String,
    pub(super) event: String,
    pub(super) look: Look,
    pub(super) tries: u32,
    pub(super) created: Moment,
    pub(super) due: Option<Moment>,
    /// How the last try went.
    pub(super) last: Option<Attempt>,
}

pub(super) struct Attempt {
    pub(super) at: Moment,
    pub(super) took: String,
    pub(super) status: String,
    pub(super) outcome: String,
}

impl Line {
    pub(super) fn of(line: &DeliveryLine, now: Timestamp) -> Line {
        let look = match line.state.as_str() {
            "delivered" => Look::like("completed", "delivered"),
            "dead" => Look::like("failed", "given up"),
            _ => Look::like("running", "pending"),
        };
        Line {
            number: line.number,
            href: format!("/alerts/deliveries/{}", line.number),
            webhook_href: webhook::address(&line.webhook),
            kind: line.kind.clone(),
            event: line.event.clone(),
            look,
            tries: line.tries,
            created: Moment::of(line.created_at.0, now),
            due: line.due_at.map(|at| Moment::of(at.0, now)),
            last: line
                .last_try
                .as_ref()
                .map(|last| Attempt::of(last.at.0, last.took_ms, last.status, &last.outcome, now)),
        }
    }
}

impl Attempt {
    fn of(at: Timestamp, took_ms: u64, status: Option<u16>, outcome: &str, now: Timestamp) -> Attempt {
        Attempt {
            at: Moment::of(at, now),
            took: span(Millis(took_ms)),
            status: status.map_or_else(|| "no answer".to_owned(), |status| status.to_string()),
            outcome: outcome.to_owned(),
        }
    }
}

#[derive(Template)]
#[template(path = "delivery.html")]
struct Shown {
    shell: Shell,
    line: Line,
    body: String,
    attempts: Vec<Attempt>,
}

pub(in crate::dashboard) async fn show(
    State(desk): State<Arc<Desk>>,
    Path(number): Path<String>,
    visitor: Visitor,
) -> Answer {
    let number = read(&number)?;
    let detail = desk.watch.delivery(&visitor.guest.tenant, number).await?;
    let shell = Shell::open(&desk, &visitor, Section::Alerts, format!("Delivery {number}")).await?;
    let now = shell.now;
    let attempts = detail.all_tries.iter();
    let attempts = attempts.map(|one| Attempt::of(one.at.0, one.took_ms, one.status, &one.outcome, now));
    let shown = Shown {
        line: Line::of(&detail.line, now),
        body: serde_json::to_string_pretty(&detail.body).unwrap_or_default(),
        attempts: attempts.collect(),
        shell,
    };
    page::show(&shown)
}

pub(in crate::dashboard) async fn again(
    State(desk): State<Arc<Desk>>,
    Path(number): Path<String>,
    posted: Posted,
) -> Answer {
    let guest = &posted.visitor.guest;
    require(guest, Scope::Admin)?;
    let number = read(&number)?;
    desk.watch.redeliver(&guest.tenant, &guest.actor(), number).await?;
    Ok(page::go(posted.back(), "sent_again"))
}

/// What is no number is no delivery.
fn read(number: &str) -> Result<u64, Fault> {
    number.parse().map_err(|_| Fault::missing("delivery", number))
}
