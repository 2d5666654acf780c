//! The dashboard: server-rendered pages that work without scripts.
//!
//! Each page is one file: it collects its data from the [`App`] into a plain struct and renders a template. [`shell`]
//! is the frame of every page, [`page`] renders templates and errors, [`mod@format`] formats values, [`assets`] are
//! static files. Requests are authenticated before: their extensions contain a
//! [`Principal`](rutter_app::principal::Principal) and a [`BrowserContext`](rutter_app::auth::BrowserContext).

pub mod alerts;
pub mod analytics;
pub mod approvals;
pub mod assets;
pub mod drawing;
mod error_page;
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
mod sign_in;
mod theme;
pub mod tools;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use page::PageError;
use rutter_api::admit;
use rutter_app::app::App;
use rutter_app::auth::Authenticator;
use rutter_app::error::AppError;
use std::sync::Arc;

/// All pages, sign-in and sign-out. Unknown paths also require a session, so that outsiders cannot probe which exist.
pub fn router(app: &Arc<App>, auth: Arc<Authenticator>) -> Router {
    let pages = routes(Arc::clone(app)).route("/ask/{execution}", get(questions));
    let pages = pages.layer(from_fn(admit::require_read));
    let pages = pages.layer(from_fn_with_state(Arc::clone(&auth), admit::for_pages));
    pages.merge(open_routes()).merge(sign_in::routes(auth))
}

/// The target of links in tool results: the questions of an execution.
async fn questions(Path(execution): Path<String>) -> Response {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match execution.chars().all(is_plain) {
        true => Redirect::to(&format!("/executions/{execution}#questions")).into_response(),
        false => admit::refused(StatusCode::NOT_FOUND, &AppError::missing("execution", &execution)),
    }
}

/// Every page. The caller must put a principal and a browser context into the request's extensions.
pub fn routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(overview::show))
        .route("/executions", get(executions::show))
        .route("/plans", get(plans::show))
        .route("/plans/{plan}", get(plan::show))
        .route("/plans/{plan}/start", post(plan::start::run))
        .route("/plans/{plan}/change", post(plan::change::run))
        .route("/executions/{execution}", get(execution::show))
        .route("/executions/{execution}/confirm", get(execution::actions::confirm))
        .route("/executions/{execution}/act", post(execution::actions::run))
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
        .route("/alerts/deliveries/{number}/again", post(alerts::delivery::redeliver))
        .route("/analytics", get(analytics::show))
        .route("/analytics/csv", get(analytics::csv))
        .route("/settings", get(settings::show))
        .route("/settings/keys", post(settings::keys::create))
        .route("/settings/keys/{id}/revoke", post(settings::keys::revoke))
        .route("/settings/sessions/{id}/end", post(settings::sign_out))
        .route("/theme", post(shell::choose_theme))
        .route("/help", get(shell::help))
        .fallback(page_not_found)
        .layer(from_fn(error_page::render_errors))
        .with_state(app)
}

/// Static files, which are public.
pub fn open_routes() -> Router {
    Router::new().route("/assets/{version}/{name}", get(assets::serve))
}

async fn page_not_found() -> PageError {
    PageError(AppError::new("store.not_found", "page not found"))
}
