//! The Alerts page: alerts, rules, silences, and webhooks with their deliveries.

pub(super) mod delivery;
mod row;
pub(super) mod rule;
pub(super) mod silence;
pub(super) mod webhook;

use super::page::{self, FormRequest, PageRequest, PageResult};
use super::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::{Path, State};
use delivery::DeliveryRow;
use row::AlertRow;
use rutter_app::app::App;
use rutter_app::rights::Operation;
use rutter_core::port::query::Pagination;
use rutter_observe::watch::alert::AlertState;
use std::sync::Arc;

const DELIVERIES: u32 = 20;
/// Resolved alerts on the page; the API has the rest.
const HISTORY: usize = 50;

#[derive(Template)]
#[template(path = "alerts.html")]
struct AlertsPage {
    shell: PageShell,
    firing: Vec<AlertRow>,
    history: Vec<AlertRow>,
    older: usize,
    rules: Vec<rule::AlertRuleRow>,
    kinds: Vec<(&'static str, &'static str)>,
    silences: Vec<silence::SilenceRow>,
    webhooks: Vec<webhook::WebhookRow>,
    deliveries: Vec<DeliveryRow>,
}

pub(super) async fn show(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    let caller = &request.principal;
    let shell = PageShell::open(&app, &request, PageSection::Alerts, "Alerts").await?;
    let now = shell.now;
    let alerts = app.alerts(caller, None).await?;
    let is_firing = |state: AlertState| state == AlertState::Firing;
    let mut firing: Vec<AlertRow> =
        alerts.iter().filter(|alert| is_firing(alert.state)).map(|alert| AlertRow::of(alert, now)).collect();
    // Unacknowledged alerts first, the most severe of them on top.
    firing.sort_by_key(|row| (row.acknowledged.is_some(), row.silenced, std::cmp::Reverse(row.severity)));
    let over: Vec<AlertRow> =
        alerts.iter().filter(|alert| !is_firing(alert.state)).map(|alert| AlertRow::of(alert, now)).collect();
    let (mut webhooks, mut deliveries) = (Vec::new(), Vec::new());
    if shell.may(Operation::ReadWebhooks) {
        for webhook in app.webhooks(caller).await? {
            let counts = app.delivery_counts(caller, Some(&webhook.id)).await?;
            webhooks.push(webhook::WebhookRow::of(&webhook, counts, now));
        }
        let newest = app.deliveries(caller, None, None, Pagination::first(DELIVERIES)).await?;
        deliveries = newest.items.iter().map(|line| DeliveryRow::of(line, now)).collect();
    }
    let rules = app.alert_rules(caller).await?;
    let silences = app.silences(caller).await?;
    let alerts = AlertsPage {
        firing,
        older: over.len().saturating_sub(HISTORY),
        history: over.into_iter().take(HISTORY).collect(),
        rules: rules.iter().map(rule::AlertRuleRow::of).collect(),
        kinds: rule::kinds(),
        silences: silences.iter().map(|silence| silence::SilenceRow::of(silence, now)).collect(),
        webhooks,
        deliveries,
        shell: shell.live("/api/v1/events"),
    };
    page::render(&alerts)
}

/// Acknowledges an alert: its notifications are not repeated.
pub(super) async fn acknowledge(State(app): State<Arc<App>>, Path(id): Path<String>, form: FormRequest) -> PageResult {
    let principal = &form.request.principal;
    let note = form.value("note").unwrap_or_default();
    app.acknowledge_alert(principal, &id, note).await?;
    Ok(page::redirect_with_flash("/alerts", "acknowledged"))
}
