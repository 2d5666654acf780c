//! One delivery to a webhook.

use super::webhook;
use crate::format::{StatusBadge, TimeLabel};
use crate::page::{self, FormRequest, PageRequest, PageResult};
use crate::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_app::wording::span;
use rutter_core::time::{Millis, Timestamp};
use rutter_observe::watch::DeliveryListItem;
use std::sync::Arc;

/// A row of the list of deliveries.
pub(super) struct DeliveryRow {
    pub(super) number: u64,
    pub(super) href: String,
    pub(super) webhook_href: String,
    pub(super) kind: String,
    pub(super) event: String,
    pub(super) look: StatusBadge,
    pub(super) tries: u32,
    pub(super) created: TimeLabel,
    pub(super) due: Option<TimeLabel>,
    /// The result of the last attempt.
    pub(super) last: Option<DeliveryAttemptRow>,
}

pub(super) struct DeliveryAttemptRow {
    pub(super) at: TimeLabel,
    pub(super) took: String,
    pub(super) status: String,
    pub(super) outcome: String,
}

impl DeliveryRow {
    pub(super) fn of(line: &DeliveryListItem, now: Timestamp) -> DeliveryRow {
        let look = match line.state.as_str() {
            "delivered" => StatusBadge::like("completed", "delivered"),
            "dead" => StatusBadge::like("failed", "failed"),
            _ => StatusBadge::like("running", "pending"),
        };
        DeliveryRow {
            number: line.number,
            href: format!("/alerts/deliveries/{}", line.number),
            webhook_href: webhook::address(&line.webhook),
            kind: line.kind.clone(),
            event: line.event.clone(),
            look,
            tries: line.tries,
            created: TimeLabel::of(line.created_at.0, now),
            due: line.due_at.map(|at| TimeLabel::of(at.0, now)),
            last: line
                .last_try
                .as_ref()
                .map(|last| DeliveryAttemptRow::of(last.at.0, last.took_ms, last.status, &last.outcome, now)),
        }
    }
}

impl DeliveryAttemptRow {
    fn of(at: Timestamp, took_ms: u64, status: Option<u16>, outcome: &str, now: Timestamp) -> DeliveryAttemptRow {
        DeliveryAttemptRow {
            at: TimeLabel::of(at, now),
            took: span(Millis(took_ms)),
            status: status.map_or_else(|| "no response".to_owned(), |status| status.to_string()),
            outcome: outcome.to_owned(),
        }
    }
}

#[derive(Template)]
#[template(path = "delivery.html")]
struct DeliveryPage {
    shell: PageShell,
    line: DeliveryRow,
    body: String,
    attempts: Vec<DeliveryAttemptRow>,
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(number): Path<String>, request: PageRequest) -> PageResult {
    app.require(&request.principal, Operation::ReadWebhooks)?;
    let number = read(&number)?;
    let detail = app.delivery(&request.principal, number).await?;
    let shell = PageShell::open(&app, &request, PageSection::Alerts, format!("Delivery {number}")).await?;
    let now = shell.now;
    let attempts = detail.all_tries.iter();
    let attempts = attempts.map(|one| DeliveryAttemptRow::of(one.at.0, one.took_ms, one.status, &one.outcome, now));
    let delivery_page = DeliveryPage {
        line: DeliveryRow::of(&detail.line, now),
        body: serde_json::to_string_pretty(&detail.body).unwrap_or_default(),
        attempts: attempts.collect(),
        shell,
    };
    page::render(&delivery_page)
}

pub(crate) async fn redeliver(
    State(app): State<Arc<App>>,
    Path(number): Path<String>,
    form: FormRequest,
) -> PageResult {
    let principal = &form.request.principal;
    app.require(principal, Operation::ChangeWebhooks)?;
    let number = read(&number)?;
    app.redeliver(principal, number).await?;
    Ok(page::redirect_with_flash(form.back(), "sent_again"))
}

/// Anything but a number is no delivery.
fn read(number: &str) -> Result<u64, AppError> {
    number.parse().map_err(|_| AppError::missing("delivery", number))
}
