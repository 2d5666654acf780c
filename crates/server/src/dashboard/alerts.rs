//! What somebody is told, and where: alerts, the rules behind them, silences, and webhooks with what became of each
//! delivery.

pub(super) mod delivery;
mod row;
pub(super) mod rule;
pub(super) mod silence;
pub(super) mod webhook;

use super::page::{self, Answer, Posted, Visitor};
use super::shell::{Section, Shell};
use crate::auth::{Scope, require};
use crate::desk::Desk;
use crate::watch::alert::AlertState;
use askama::Template;
use axum::extract::{Path, State};
use delivery::Line;
use row::Row;
use rutter_core::port::query::Page;
use std::sync::Arc;

const DELIVERIES: u32 = 20;
/// Alerts that are over; the API has the rest.
const HISTORY: usize = 50;

#[derive(Template)]
#[template(path = "alerts.html")]
struct Alerts {
    shell: Shell,
    firing: Vec<Row>,
    history: Vec<Row>,
    older: usize,
    rules: Vec<rule::Row>,
    kinds: Vec<(&'static str, &'static str)>,
    silences: Vec<silence::Row>,
    webhooks: Vec<webhook::Row>,
    deliveries: Vec<Line>,
}

pub(super) async fn show(State(desk): State<Arc<Desk>>, visitor: Visitor) -> Answer {
    let tenant = &visitor.guest.tenant;
    let shell = Shell::open(&desk, &visitor, Section::Alerts, "Alerts").await?;
    let now = shell.now;
    let alerts = desk.watch.alerts(tenant, None).await?;
    let is_firing = |state: AlertState| state == AlertState::Firing;
    let mut firing: Vec<Row> =
        alerts.iter().filter(|alert| is_firing(alert.state)).map(|alert| Row::of(alert, now)).collect();
    // What nobody has seen to yet stands first, and of that what is worst.
    firing.sort_by_key(|row| (row.acknowledged.is_some(), row.silenced, std::cmp::Reverse(row.severity)));
    let over: Vec<Row> =
        alerts.iter().filter(|alert| !is_firing(alert.state)).map(|alert| Row::of(alert, now)).collect();
    let mut webhooks = Vec::new();
    for webhook in desk.watch.webhooks(tenant).await? {
        let counts = desk.watch.delivery_counts(tenant, Some(&webhook.id)).await?;
        webhooks.push(webhook::Row::of(&webhook, counts, now));
    }
    let deliveries = desk.watch.deliveries(tenant, None, None, Page::first(DELIVERIES)).await?;
    let rules = desk.watch.rules(tenant).await?;
    let silences = desk.watch.silences(tenant).await?;
    let alerts = Alerts {
        firing,
        older: over.len().saturating_sub(HISTORY),
        history: over.into_iter().take(HISTORY).collect(),
        rules: rules.iter().map(rule::Row::of).collect(),
        kinds: rule::kinds(),
        silences: silences.iter().map(|silence| silence::Row::of(silence, now)).collect(),
        webhooks,
        deliveries: deliveries.items.iter().map(|line| Line::of(line, now)).collect(),
        shell: shell.live("/api/v1/events"),
    };
    page::show(&alerts)
}

/// Somebody sees to it: nobody else is told again.
pub(super) async fn acknowledge(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    let guest = &posted.visitor.guest;
    require(guest, Scope::Operate)?;
    let note = posted.said("note").unwrap_or_default();
    desk.watch.acknowledge_alert(&guest.tenant, &guest.actor(), &id, note).await?;
    Ok(page::go("/alerts", "acknowledged"))
}
