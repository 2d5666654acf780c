//! Creates and revokes keys. A key is shown once, on the page after the form.

use crate::page::{self, FormRequest, PageResult};
use crate::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::auth::AccessScope;
use rutter_app::auth::key::NewApiKey;
use rutter_app::error::AppError;
use rutter_core::time::Millis;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "key.html")]
struct CreatedKeyPage {
    shell: PageShell,
    name: String,
    scopes: String,
    secret: String,
}

pub(crate) async fn create(State(app): State<Arc<App>>, form: FormRequest) -> PageResult {
    let wrong = |message: String| AppError::new("server.arguments", message);
    let scopes = form.values("scope").map(str::parse::<AccessScope>).collect::<Result<_, _>>().map_err(wrong)?;
    let expires_in = match form.value("expires") {
        None | Some("never") => None,
        Some(span) => {
            let span = Millis::parse(span);
            Some(span.ok_or_else(|| wrong("expected an expiry such as 90d".to_owned()))?)
        }
    };
    let name = form.value("name").unwrap_or_default().to_owned();
    let principal = &form.request.principal;
    let (view, secret) = app.auth.create(principal, NewApiKey { name, scopes, expires_in }).await?;
    let shell = PageShell::open(&app, &form.request, PageSection::Settings, "New key").await?;
    let scopes: Vec<&str> = view.scopes.iter().map(|scope| scope.as_str()).collect();
    page::render(&CreatedKeyPage { shell, name: view.name, scopes: scopes.join(", "), secret })
}

pub(crate) async fn revoke(State(app): State<Arc<App>>, Path(id): Path<String>, form: FormRequest) -> PageResult {
    app.auth.revoke(&form.request.principal, &id).await?;
    Ok(page::redirect_with_flash("/settings#keys", "revoked"))
}
