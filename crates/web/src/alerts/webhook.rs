//! Webhooks: create, change and test one, and its deliveries.

use super::delivery::DeliveryRow;
use crate::format::{self, StatusBadge, TimeLabel};
use crate::page::{self, FormRequest, PageRequest, PageResult};
use crate::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_core::port::outbox::{DeliveryCounts, DeliveryState};
use rutter_core::port::query::{ListCursor, Pagination};
use rutter_core::time::Timestamp;
use rutter_observe::watch::WebhookTest;
use rutter_observe::watch::webhook::{NewWebhook, WebhookChange, WebhookView};
use std::sync::Arc;

const DELIVERIES: u32 = 50;

/// A row of the list of webhooks.
pub(super) struct WebhookRow {
    pub(super) href: String,
    pub(super) url: String,
    pub(super) description: String,
    pub(super) look: StatusBadge,
    pub(super) because: String,
    pub(super) events: String,
    pub(super) plans: String,
    pub(super) created: TimeLabel,
    pub(super) created_by: String,
    pub(super) counts: DeliveryCounts,
}

impl WebhookRow {
    pub(super) fn of(webhook: &WebhookView, counts: DeliveryCounts, now: Timestamp) -> WebhookRow {
        let look = match (webhook.enabled, &webhook.disabled_because) {
            (true, _) => StatusBadge::like("completed", "enabled"),
            (false, Some(_)) => StatusBadge::like("failed", "disabled by Rutter"),
            (false, None) => StatusBadge::like("skipped", "disabled"),
        };
        WebhookRow {
            href: address(&webhook.id),
            url: webhook.url.clone(),
            description: webhook.description.clone(),
            look,
            because: webhook.disabled_because.clone().unwrap_or_default(),
            events: webhook.events.join(", "),
            plans: webhook.plans.join(", "),
            created: TimeLabel::of(webhook.created_at.0, now),
            created_by: webhook.created_by.clone(),
            counts,
        }
    }
}

#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage {
    shell: PageShell,
    webhook: WebhookRow,
    version: u64,
    enabled: bool,
    overlap: Option<TimeLabel>,
    tested: Option<WebhookTest>,
    states: Vec<(String, &'static str, bool)>,
    deliveries: Vec<DeliveryRow>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "webhook_secret.html")]
struct WebhookSecretPage {
    shell: PageShell,
    href: String,
    url: String,
    secret: String,
    is_new: bool,
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>, request: PageRequest) -> PageResult {
    render_webhook(&app, &request, &id, None).await
}

async fn render_webhook(app: &Arc<App>, request: &PageRequest, id: &str, tested: Option<WebhookTest>) -> PageResult {
    let caller = &request.principal;
    let webhook = app.webhook(caller, id).await?;
    let counts = app.delivery_counts(caller, Some(id)).await?;
    let asked = request.query_value("state").unwrap_or_default();
    let state = DeliveryState::ALL.into_iter().find(|state| state.as_str() == asked);
    let after = request.query_value("after").map(|cursor| ListCursor(cursor.to_owned()));
    let found = app.deliveries(caller, Some(id), state, Pagination { limit: DELIVERIES, after }).await?;
    let shell = PageShell::open(app, request, PageSection::Alerts, "Webhook").await?;
    let now = shell.now;
    let href = address(id);
    let with = |state: Option<DeliveryState>, after: Option<String>| {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let state = state.map(|state| pair("state", state.as_str()));
        let after = after.map(|cursor| pair("after", &cursor));
        format!("{href}{}", format::query(&state.into_iter().chain(after).collect::<Vec<_>>()))
    };
    let all = [(None, "all")].into_iter();
    let label = |state: DeliveryState| if state == DeliveryState::Dead { "failed" } else { state.as_str() };
    let states = all.chain(DeliveryState::ALL.map(|state| (Some(state), label(state))));
    let states = states.map(|(one, label)| (with(one, None), label, one == state)).collect();
    let webhook_page = WebhookPage {
        version: webhook.version,
        enabled: webhook.enabled,
        overlap: webhook.previous_secret_until.filter(|until| until.0 > now).map(|until| TimeLabel::of(until.0, now)),
        webhook: WebhookRow::of(&webhook, counts, now),
        tested,
        states,
        deliveries: found.items.iter().map(|line| DeliveryRow::of(line, now)).collect(),
        next: found.next.map(|ListCursor(cursor)| with(state, Some(cursor))),
        shell,
    };
    page::render(&webhook_page)
}

pub(crate) async fn create(State(app): State<Arc<App>>, form: FormRequest) -> PageResult {
    let principal = &form.request.principal;
    let new = NewWebhook {
        url: form.value("url").unwrap_or_default().trim().to_owned(),
        description: form.value("description").unwrap_or_default().to_owned(),
        events: words(&form, "events"),
        plans: words(&form, "plans"),
    };
    let made = app.create_webhook(principal, new).await?;
    let shell = PageShell::open(&app, &form.request, PageSection::Alerts, "New webhook").await?;
    let (href, url) = (address(&made.webhook.id), made.webhook.url);
    page::render(&WebhookSecretPage { shell, href, url, secret: made.secret, is_new: true })
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    form_request: FormRequest,
) -> PageResult {
    let principal = &form_request.request.principal;
    app.require(principal, Operation::ChangeWebhooks)?;
    let wrong = |message: &str| AppError::new("server.arguments", message);
    let version = form_request.value("version").and_then(|version| version.parse().ok());
    match form_request.value("act") {
        Some("save") => {
            let change = WebhookChange {
                url: form_request.value("url").map(|url| url.trim().to_owned()),
                description: Some(form_request.value("description").unwrap_or_default().to_owned()),
                events: Some(words(&form_request, "events")),
                plans: Some(words(&form_request, "plans")),
                enabled: None,
            };
            app.change_webhook(principal, &id, change, version).await?;
            Ok(page::redirect_with_flash(&address(&id), "saved"))
        }
        Some(act @ ("on" | "off")) => {
            let change = WebhookChange { enabled: Some(act == "on"), ..WebhookChange::default() };
            app.change_webhook(principal, &id, change, version).await?;
            Ok(page::redirect_with_flash(&address(&id), "saved"))
        }
        Some("test") => {
            let tested = app.test_webhook(principal, &id).await?;
            render_webhook(&app, &form_request.request, &id, Some(tested)).await
        }
        Some("rotate") => {
            let made = app.rotate_webhook(principal, &id).await?;
            let shell = PageShell::open(&app, &form_request.request, PageSection::Alerts, "New secret").await?;
            let url = made.webhook.url;
            page::render(&WebhookSecretPage { shell, href: address(&id), url, secret: made.secret, is_new: false })
        }
        Some("remove") => {
            app.delete_webhook(principal, &id).await?;
            Ok(page::redirect_with_flash("/alerts#webhooks", "removed"))
        }
        _ => Err(wrong("the form has no action").into()),
    }
}

pub(super) fn address(id: &str) -> String {
    format!("/alerts/webhooks/{}", format::encoded(id))
}

/// Values separated by commas or spaces.
pub(super) fn words(form: &FormRequest, name: &str) -> Vec<String> {
    let typed = form.value(name).unwrap_or_default();
    let words = typed.split([',', '\n', '\r']).map(str::trim).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}
