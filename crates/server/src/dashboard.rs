//! The pages people look at and act on, written on the server; scripts only make them more pleasant.
//!
//! A page is one file: it collects what it shows from the [`Desk`] into a plain struct and hands that to its template.
//! [`shell`] is the frame around every page, [`page`] turns templates and faults into answers, [`mod@format`] knows how
//! things are written, [`assets`] are the files pages need. Whoever comes in has passed the door: a
//! [`Guest`](crate::guest::Guest) and a [`Browser`](crate::auth::Browser) stand in the request.

pub mod alerts;
pub mod analytics;
pub mod approvals;
pub mod assets;
pub mod execution;
pub mod executions;
pub mod format;
pub mod journal;
pub mod overview;
pub mod page;
pub mod plan;
pub mod plans;
pub mod question;
pub mod settings;
pub mod shell;
pub mod tools;

use crate::desk::Desk;
use crate::fault::Fault;
use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{get, post};
use page::Wrong;
use std::sync::Arc;

/// Every page. Whoever serves them lets nobody in without a guest and a browser in the request's extensions.
pub fn routes(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/", get(overview::show))
        .route("/executions", get(executions::show))
        .route("/plans", get(plans::show))
        .route("/plans/{plan}", get(plan::show))
        .route("/plans/{plan}/start", post(plan::start::run))
        .route("/executions/{execution}", get(execution::show))
        .route("/executions/{execution}/confirm", get(execution::act::confirm))
        .route("/executions/{execution}/act", post(execution::act::run))
        .route("/executions/{execution}/answer", post(question::answer))
        .route("/executions/bulk", post(executions::bulk::run))
        .route("/approvals", get(approvals::show))
        .route("/journal", get(journal::show))
        .route("/journal/export", get(journal::export::write))
        .route("/journal/verify", post(journal::verify::run))
        .route("/journal/sign", post(journal::verify::sign))
        .route("/tools", get(tools::show))
        .route("/tools/ask", post(tools::ask))
        .route("/tools/{name}", get(tools::tool::show))
        .route("/tools/{name}/call", post(tools::attempt::run))
        .route("/servers/{name}/reset", post(tools::reset))
        .route("/alerts", get(alerts::show))
        .route("/alerts/{id}/acknowledge", post(alerts::acknowledge))
        .route("/alerts/rules", post(alerts::rule::create))
        .route("/alerts/rules/{id}", post(alerts::rule::change))
        .route("/alerts/silences", post(alerts::silence::create))
        .route("/alerts/silences/{id}/remove", post(alerts::silence::remove))
        .route("/alerts/webhooks", post(alerts::webhook::create))
        .route("/alerts/webhooks/{id}", get(alerts::webhook::show).post(alerts::webhook::change))
        .route("/alerts/deliveries/{number}", get(alerts::delivery::show))
        .route("/alerts/deliveries/{number}/again", post(alerts::delivery::again))
        .route("/analytics", get(analytics::show))
        .route("/analytics/csv", get(analytics::csv))
        .route("/settings", get(settings::show))
        .route("/settings/keys", post(settings::keys::create))
        .route("/settings/keys/{id}/revoke", post(settings::keys::revoke))
        .route("/settings/sessions/{id}/end", post(settings::sign_out))
        .route("/theme", post(shell::choose_theme))
        .route("/help", get(shell::help))
        .fallback(nowhere)
        .layer(from_fn(page::legible))
        .with_state(desk)
}

/// What pages need beside themselves; everybody may have it.
pub fn open_routes() -> Router {
    Router::new().route("/assets/{version}/{name}", get(assets::serve))
}

async fn nowhere() -> Wrong {
    Wrong(Fault::new("store.not_found", "there is no page at this address"))
}
