//! The installation: who may come in, whether everything works, and what is limited.

mod checks;
pub(super) mod keys;

use super::format::{self, Look, Moment};
use super::page::{self, Answer, Posted, Visitor};
use super::shell::{Section, Shell};
use crate::auth::admit::cookie;
use crate::auth::key::{KeyStatus, KeyView};
use crate::auth::session::{AGE_MAX, IDLE_MAX, SessionView, id_of};
use crate::auth::{Scope, Source};
use crate::desk::Desk;
use crate::limits;
use askama::Template;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use checks::Check;
use rutter_core::limits as bounds;
use rutter_core::port::proof::Health;
use rutter_core::time::{Millis, Timestamp};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings {
    shell: Shell,
    checks: Vec<Check>,
    about: Vec<(&'static str, String)>,
    /// The names of scopes, each with what it is for.
    scopes: Vec<(&'static str, &'static str)>,
    keys: Vec<KeyRow>,
    sessions: Vec<SessionRow>,
    idle: String,
    age: String,
    limits: Vec<(&'static str, String)>,
}

struct KeyRow {
    id: String,
    name: String,
    scopes: String,
    status: Look,
    is_active: bool,
    created: Moment,
    created_by: String,
    expires: Option<Moment>,
    used: Option<Moment>,
}

struct SessionRow {
    id: String,
    name: String,
    scopes: String,
    source: &'static str,
    created: Moment,
    used: Moment,
    is_this: bool,
}

pub(super) async fn show(State(desk): State<Arc<Desk>>, visitor: Visitor, headers: HeaderMap) -> Answer {
    let shell = Shell::open(&desk, &visitor, Section::Settings, "Settings").await?;
    let now = shell.now;
    let health = desk.proof.health().await?;
    let mine = cookie(&headers).map(|cookie| id_of(cookie).to_string());
    let (mut keys, mut sessions) = (Vec::new(), Vec::new());
    if shell.may_administer() {
        let auth = &desk.auth;
        keys = auth.list(&visitor.guest)?.iter().map(|key| KeyRow::of(key, now)).collect();
        // What is good stands before what is not.
        keys.sort_by_key(|key| !key.is_active);
        let all = auth.sessions(&visitor.guest)?;
        sessions = all.iter().map(|session| SessionRow::of(session, mine.as_deref(), now)).collect();
    }
    let settings = Settings {
        checks: checks::all(&desk, &visitor.guest.tenant, &health, &keys, now).await?,
        about: about(&desk, &health),
        scopes: Scope::ALL.into_iter().map(|scope| (scope.as_str(), purpose(scope))).collect(),
        keys,
        sessions,
        idle: rough(IDLE_MAX),
        age: rough(AGE_MAX),
        limits: limits(),
        shell,
    };
    page::show(&settings)
}

/// Ends a session; whoever ends their own has to enter again.
pub(super) async fn sign_out(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    desk.auth.end_session(&posted.visitor.guest, &id).await?;
    Ok(page::go("/settings#sessions", "signed_out"))
}

fn purpose(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "look at everything",
        Scope::Operate => "save and execute plans, steer executions",
        Scope::Approve => "say a person's word: approve, settle doubt",
        Scope::Admin => "look after keys, webhooks, alerts, and try tools out",
    }
}

impl KeyRow {
    fn of(key: &KeyView, now: Timestamp) -> KeyRow {
        let moment = |text: &str| format::instant(text, now).map(|at| Moment::of(at, now));
        let status = match key.status {
            KeyStatus::Active => Look::like("completed", "active"),
            KeyStatus::Expired => Look::like("cancelled", "expired"),
            KeyStatus::Revoked => Look::like("cancelled", "revoked"),
        };
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        KeyRow {
            id: key.id.clone(),
            name: key.name.clone(),
            scopes: scopes.join(", "),
            status,
            is_active: key.status == KeyStatus::Active,
            created: moment(&key.created_at).unwrap_or_else(|| Moment::of(now, now)),
            created_by: key.created_by.clone(),
            expires: key.expires_at.as_deref().and_then(moment),
            used: key.last_used_at.as_deref().and_then(moment),
        }
    }
}

impl SessionRow {
    fn of(session: &SessionView, mine: Option<&str>, now: Timestamp) -> SessionRow {
        let scopes: Vec<&str> = session.scopes.iter().map(|scope| scope.as_str()).collect();
        SessionRow {
            is_this: mine == Some(session.id.as_str()),
            id: session.id.clone(),
            name: session.name.clone(),
            scopes: scopes.join(", "),
            source: match &session.source {
                Source::Token { .. } => "a token",
                Source::Key { .. } => "a key",
                Source::Link {} => "a link",
            },
            created: Moment::of(session.created_at, now),
            used: Moment::of(session.used_at, now),
        }
    }
}

fn about(desk: &Desk, health: &Health) -> Vec<(&'static str, String)> {
    let append = |percent: u64| {
        let all = health.append_micros.last().map_or(0, |(_, count)| *count);
        let bound = health.append_micros.iter().find(|(_, count)| count * 100 >= all * percent);
        match bound.filter(|_| all > 0) {
            Some((u64::MAX, _)) => "more than all bounds".to_owned(),
            Some((micros, _)) => format!("{} ms", micros.div_ceil(1_000)),
            None => "–".to_owned(),
        }
    };
    vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("address", desk.link.get().cloned().unwrap_or_else(|| "none".to_owned())),
        ("database", format!("{}, schema {}", bytes(health.database_bytes), health.schema)),
        ("free on its disk", bytes(health.free_bytes)),
        ("writing waits", format!("{} in line", health.queue)),
        ("writing takes", format!("at most {} for half, {} for 99 %", append(50), append(99))),
        ("executions in hand", desk.engine.live().to_string()),
    ]
}

/// A span that was chosen, not measured: in the largest unit it is whole in.
fn rough(span: Millis) -> String {
    match span.0 {
        ms if ms % 3_600_000 == 0 => format!("{} h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{} min", ms / 60_000),
        ms => format!("{} s", ms / 1_000),
    }
}

pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64),
    }
}

fn limits() -> Vec<(&'static str, String)> {
    let count = |count: usize| format::count(count as u64);
    let span = |duration: std::time::Duration| rough(Millis(duration.as_millis() as u64));
    vec![
        ("steps of a plan", count(bounds::PLAN_STEPS_MAX)),
        ("size of a plan", bytes(bounds::PLAN_BYTES_MAX as u64)),
        ("steps at the same time", bounds::PARALLEL_MAX.to_string()),
        ("attempts of a step", bounds::ATTEMPTS_MAX.to_string()),
        ("entries of an execution", format::count(bounds::ENTRIES_MAX)),
        ("what one call sends or brings back", bytes(bounds::PAYLOAD_BYTES_MAX as u64)),
        ("deadline unless the plan says otherwise", rough(bounds::DEADLINE_DEFAULT)),
        ("an approval waits unless the plan says otherwise", rough(bounds::APPROVAL_EXPIRES_DEFAULT)),
        ("connections over HTTP", count(limits::HTTP_CONNECTIONS_MAX)),
        ("requests under way", count(limits::REQUESTS_MAX)),
        ("streams of events, of one guest", count(limits::STREAMS_PER_GUEST)),
        ("a request waits for an execution", span(limits::WAIT_MAX)),
        ("keys", count(limits::KEYS_MAX)),
        ("sessions of browsers", count(limits::SESSIONS_MAX)),
        ("webhooks", count(limits::WEBHOOKS_MAX)),
    ]
}
