//! Silences: they suppress notifications for a while.

use crate::format::{TimeLabel, encoded};
use crate::page::{self, FormRequest, PageResult};
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_core::time::{Millis, Timestamp};
use rutter_observe::watch::silence::{AlertSilence, NewSilence};
use std::sync::Arc;

pub(super) struct SilenceRow {
    pub(super) id: String,
    pub(super) href: String,
    /// What it covers, as text.
    pub(super) about: String,
    pub(super) reason: String,
    pub(super) by: String,
    pub(super) until: TimeLabel,
}

impl SilenceRow {
    pub(super) fn of(silence: &AlertSilence, now: Timestamp) -> SilenceRow {
        let named = [("rule", &silence.rule), ("plan", &silence.plan), ("subject", &silence.subject)];
        let named = named.iter().filter_map(|(what, name)| Some(format!("{what} {}", name.as_ref()?)));
        SilenceRow {
            id: silence.id.clone(),
            href: format!("/alerts/silences/{}/remove", encoded(&silence.id)),
            about: named.collect::<Vec<_>>().join(", "),
            reason: silence.reason.clone(),
            by: silence.by.clone(),
            until: TimeLabel::of(silence.until.0, now),
        }
    }
}

pub(crate) async fn create(State(app): State<Arc<App>>, form: FormRequest) -> PageResult {
    let principal = &form.request.principal;
    app.require(principal, Operation::SilenceAlerts)?;
    let wrong = || AppError::new("server.arguments", "expected a duration such as 1h or 7d");
    let span = form.value("span").and_then(Millis::parse).ok_or_else(wrong)?;
    let named = |name: &str| form.value(name).map(|name| name.trim().to_owned());
    let new = NewSilence {
        rule: named("rule"),
        plan: named("plan"),
        subject: named("subject"),
        until: app.now().plus(span).into(),
        reason: form.value("reason").unwrap_or_default().to_owned(),
    };
    app.silence(principal, new).await?;
    Ok(page::redirect_with_flash("/alerts#silences", "silenced"))
}

pub(crate) async fn remove(State(app): State<Arc<App>>, Path(id): Path<String>, form: FormRequest) -> PageResult {
    let principal = &form.request.principal;
    app.end_silence(principal, &id).await?;
    Ok(page::redirect_with_flash("/alerts#silences", "removed"))
}
