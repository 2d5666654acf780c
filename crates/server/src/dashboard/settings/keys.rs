//! Making and revoking keys. A key is shown once, on the page that answers the form.

use crate::auth::Scope;
use crate::auth::key::NewKey;
use crate::dashboard::page::{self, Answer, Posted};
use crate::dashboard::shell::{Section, Shell};
use crate::desk::Desk;
use crate::fault::Fault;
use askama::Template;
use axum::extract::{Path, State};
use rutter_core::time::Millis;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "key.html")]
struct Made {
    shell: Shell,
    name: String,
    scopes: String,
    secret: String,
}

pub(in crate::dashboard) async fn create(State(desk): State<Arc<Desk>>, posted: Posted) -> Answer {
    let wrong = |message: String| Fault::new("server.arguments", message);
    let scopes =
        posted.all_said("scope").map(str::parse::<Scope>).collect::<Result<_, _>>().map_err(wrong)?;
    let expires_in = match posted.said("expires") {
        None | Some("never") => None,
        Some(span) => {
            let span = Millis::parse(span);
            Some(span.ok_or_else(|| wrong("a key expires after a time such as 90d".to_owned()))?)
        }
    };
    let name = posted.said("name").unwrap_or_default().to_owned();
    let guest = &posted.visitor.guest;
    let (view, secret) = desk.auth.create(guest, NewKey { name, scopes, expires_in }).await?;
    let shell = Shell::open(&desk, &posted.visitor, Section::Settings, "A new key").await?;
    let scopes: Vec<&str> = view.scopes.iter().map(|scope| scope.as_str()).collect();
    page::show(&Made { shell, name: view.name, scopes: scopes.join(", "), secret })
}

pub(in crate::dashboard) async fn revoke(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    desk.auth.revoke(&posted.visitor.guest, &id).await?;
    Ok(page::go("/settings#keys", "revoked"))
}
