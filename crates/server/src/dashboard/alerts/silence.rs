//! Silences: what nobody is told for a while.

use crate::auth::{Scope, require};
use crate::dashboard::format::{Moment, encoded};
use crate::dashboard::page::{self, Answer, Posted};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::watch::silence::{NewSilence, Silence};
use axum::extract::{Path, State};
use rutter_core::time::{Millis, Timestamp};
use std::sync::Arc;

pub(super) struct Row {
    pub(super) id: String,
    pub(super) href: String,
    /// What it covers, in words.
    pub(super) about: String,
    pub(super) reason: String,
    pub(super) by: String,
    pub(super) until: Moment,
}

impl Row {
    pub(super) fn of(silence: &Silence, now: Timestamp) -> Row {
        let named = [("rule", &silence.rule), ("plan", &silence.plan), ("subject", &silence.subject)];
        let named = named.iter().filter_map(|(what, name)| Some(format!("{what} {}", name.as_ref()?)));
        Row {
            id: silence.id.clone(),
            href: format!("/alerts/silences/{}/remove", encoded(&silence.id)),
            about: named.collect::<Vec<_>>().join(", "),
            reason: silence.reason.clone(),
            by: silence.by.clone(),
            until: Moment::of(silence.until.0, now),
        }
    }
}

pub(in crate::dashboard) async fn create(State(desk): State<Arc<Desk>>, posted: Posted) -> Answer {
    let guest = &posted.visitor.guest;
    require(guest, Scope::Admin)?;
    let wrong = || Fault::new("server.arguments", "say for how long, such as 1h or 7d");
    let span = posted.said("span").and_then(Millis::parse).ok_or_else(wrong)?;
    let named = |name: &str| posted.said(name).map(|name| name.trim().to_owned());
    let new = NewSilence {
        rule: named("rule"),
        plan: named("plan"),
        subject: named("subject"),
        until: desk.engine.now().plus(span).into(),
        reason: posted.said("reason").unwrap_or_default().to_owned(),
    };
    desk.watch.silence(&guest.tenant, &guest.actor(), new).await?;
    Ok(page::go("/alerts#silences", "silenced"))
}

pub(in crate::dashboard) async fn remove(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    let guest = &posted.visitor.guest;
    require(guest, Scope::Admin)?;
    desk.watch.delete_silence(&guest.tenant, &guest.actor(), &id).await?;
    Ok(page::go("/alerts#silences", "removed"))
}
