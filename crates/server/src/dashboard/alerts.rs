//! What somebody is told, and where: alerts, the rules behind them, silences, and webhooks with what became of each
//! delivery.

pub(super) mod delivery;
pub(super) mod webhook;

use super::page::{self, Answer, Visitor};
use super::shell::{Section, Shell};
use crate::desk::Desk;
use askama::Template;
use axum::extract::State;
use delivery::Line;
use rutter_core::port::query::Page;
use std::sync::Arc;

const DELIVERIES: u32 = 20;

#[derive(Template)]
#[template(path = "alerts.html")]
struct Alerts {
    shell: Shell,
    webhooks: Vec<webhook::Row>,
    deliveries: Vec<Line>,
}

pub(super) async fn show(State(desk): State<Arc<Desk>>, visitor: Visitor) -> Answer {
    let tenant = &visitor.guest.tenant;
    let shell = Shell::open(&desk, &visitor, Section::Alerts, "Alerts").await?;
    let now = shell.now;
    let mut webhooks = Vec::new();
    for webhook in desk.watch.webhooks(tenant).await? {
        let counts = desk.watch.delivery_counts(tenant, Some(&webhook.id)).await?;
        webhooks.push(webhook::Row::of(&webhook, counts, now));
    }
    let deliveries = desk.watch.deliveries(tenant, None, None, Page::first(DELIVERIES)).await?;
    let alerts = Alerts {
        webhooks,
        deliveries: deliveries.items.iter().map(|line| Line::of(line, now)).collect(),
        shell: shell.live("/api/v1/events"),
    };
    page::show(&alerts)
}
