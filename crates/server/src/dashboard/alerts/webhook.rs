//! Webhooks: making one, changing it, trying it, and what became of what was sent to it.

use super::delivery::Line;
use crate::auth::{Scope, require};
use crate::dashboard::format::{self, Look, Moment};
use crate::dashboard::page::{self, Answer, Posted, Visitor};
use crate::dashboard::shell::{Section, Shell};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::watch::Tested;
use crate::watch::webhook::{NewWebhook, Webhook, WebhookChange};
use askama::Template;
use axum::extract::{Path, State};
use rutter_core::port::outbox::{DeliveryCounts, DeliveryState};
use rutter_core::port::query::{Cursor, Page};
use rutter_core::time::Timestamp;
use std::sync::Arc;

const DELIVERIES: u32 = 50;

/// A webhook as a line of the list.
pub(super) struct Row {
    pub(super) href: String,
    pub(super) url: String,
    pub(super) description: String,
    pub(super) look: Look,
    pub(super) because: String,
    pub(super) events: String,
    pub(super) plans: String,
    pub(super) created: Moment,
    pub(super) created_by: String,
    pub(super) counts: DeliveryCounts,
}

impl Row {
    pub(super) fn of(webhook: &Webhook, counts: DeliveryCounts, now: Timestamp) -> Row {
        let look = match (webhook.enabled, &webhook.disabled_because) {
            (true, _) => Look::like("completed", "on"),
            (false, Some(_)) => Look::like("failed", "switched off by Rutter"),
            (false, None) => Look::like("skipped", "off"),
        };
        Row {
            href: address(&webhook.id),
            url: webhook.url.clone(),
            description: webhook.description.clone(),
            look,
            because: webhook.disabled_because.clone().unwrap_or_default(),
            events: webhook.events.join(", "),
            plans: webhook.plans.join(", "),
            created: Moment::of(webhook.created_at.0, now),
            created_by: webhook.created_by.clone(),
            counts,
        }
    }
}

#[derive(Template)]
#[template(path = "webhook.html")]
struct Shown {
    shell: Shell,
    webhook: Row,
    version: u64,
    enabled: bool,
    overlap: Option<Moment>,
    tested: Option<Tested>,
    states: Vec<(String, &'static str, bool)>,
    deliveries: Vec<Line>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "webhook_secret.html")]
struct Secret {
    shell: Shell,
    href: String,
    url: String,
    secret: String,
    is_new: bool,
}

pub(in crate::dashboard) async fn show(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    visitor: Visitor,
) -> Answer {
    told(&desk, &visitor, &id, None).await
}

async fn told(desk: &Arc<Desk>, visitor: &Visitor, id: &str, tested: Option<Tested>) -> Answer {
    let tenant = &visitor.guest.tenant;
    let webhook = desk.watch.webhook(tenant, id).await?;
    let counts = desk.watch.delivery_counts(tenant, Some(id)).await?;
    let asked = visitor.asked("state").unwrap_or_default();
    let state = DeliveryState::ALL.into_iter().find(|state| state.as_str() == asked);
    let after = visitor.asked("after").map(|cursor| Cursor(cursor.to_owned()));
    let found = desk.watch.deliveries(tenant, Some(id), state, Page { limit: DELIVERIES, after }).await?;
    let shell = Shell::open(desk, visitor, Section::Alerts, "Webhook").await?;
    let now = shell.now;
    let href = address(id);
    let with = |state: Option<DeliveryState>, after: Option<String>| {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let state = state.map(|state| pair("state", state.as_str()));
        let after = after.map(|cursor| pair("after", &cursor));
        format!("{href}{}", format::query(&state.into_iter().chain(after).collect::<Vec<_>>()))
    };
    let all = [(None, "all")].into_iter();
    let states = all.chain(DeliveryState::ALL.map(|state| (Some(state), state.as_str())));
    let states = states.map(|(one, label)| (with(one, None), label, one == state)).collect();
    let shown = Shown {
        version: webhook.version,
        enabled: webhook.enabled,
        overlap: webhook
            .previous_secret_until
            .filter(|until| until.0 > now)
            .map(|until| Moment::of(until.0, now)),
        webhook: Row::of(&webhook, counts, now),
        tested,
        states,
        deliveries: found.items.iter().map(|line| Line::of(line, now)).collect(),
        next: found.next.map(|Cursor(cursor)| with(state, Some(cursor))),
        shell,
    };
    page::show(&shown)
}

pub(in crate::dashboard) async fn create(State(desk): State<Arc<Desk>>, posted: Posted) -> Answer {
    let guest = &posted.visitor.guest;
    require(guest, Scope::Admin)?;
    let new = NewWebhook {
        url: posted.said("url").unwrap_or_default().trim().to_owned(),
        description: posted.said("description").unwrap_or_default().to_owned(),
        events: words(&posted, "events"),
        plans: words(&posted, "plans"),
    };
    let made = desk.watch.create_webhook(&guest.tenant, &guest.actor(), new).await?;
    let shell = Shell::open(&desk, &posted.visitor, Section::Alerts, "A new webhook").await?;
    let (href, url) = (address(&made.webhook.id), made.webhook.url);
    page::show(&Secret { shell, href, url, secret: made.secret, is_new: true })
}

pub(in crate::dashboard) async fn change(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    let guest = &posted.visitor.guest;
    require(guest, Scope::Admin)?;
    let (tenant, actor) = (&guest.tenant, guest.actor());
    let wrong = |message: &str| Fault::new("server.arguments", message);
    let version = posted.said("version").and_then(|version| version.parse().ok());
    match posted.said("act") {
        Some("save") => {
            let change = WebhookChange {
                url: posted.said("url").map(|url| url.trim().to_owned()),
                description: Some(posted.said("description").unwrap_or_default().to_owned()),
                events: Some(words(&posted, "events")),
                plans: Some(words(&posted, "plans")),
                enabled: None,
            };
            desk.watch.update_webhook(tenant, &actor, &id, change, version).await?;
            Ok(page::go(&address(&id), "saved"))
        }
        Some(act @ ("on" | "off")) => {
            let change = WebhookChange { enabled: Some(act == "on"), ..WebhookChange::default() };
            desk.watch.update_webhook(tenant, &actor, &id, change, version).await?;
            Ok(page::go(&address(&id), "saved"))
        }
        Some("test") => {
            let tested = desk.watch.test_webhook(tenant, &id).await?;
            told(&desk, &posted.visitor, &id, Some(tested)).await
        }
        Some("rotate") => {
            let made = desk.watch.rotate_webhook(tenant, &actor, &id).await?;
            let shell = Shell::open(&desk, &posted.visitor, Section::Alerts, "A new secret").await?;
            let url = made.webhook.url;
            page::show(&Secret { shell, href: address(&id), url, secret: made.secret, is_new: false })
        }
        Some("remove") => {
            desk.watch.delete_webhook(tenant, &actor, &id).await?;
            Ok(page::go("/alerts#webhooks", "removed"))
        }
        _ => Err(wrong("the form does not say what to do").into()),
    }
}

pub(super) fn address(id: &str) -> String {
    format!("/alerts/webhooks/{}", format::encoded(id))
}

/// What stands between commas or blanks.
pub(super) fn words(posted: &Posted, name: &str) -> Vec<String> {
    let typed = posted.said(name).unwrap_or_default();
    let words = typed.split([',', '\n', '\r']).map(str::trim).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}
