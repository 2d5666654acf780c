//! The Settings page: keys, sessions, health and limits.

mod checks;
pub(super) mod keys;

use super::format::{self, StatusBadge, TimeLabel};
use super::page::{self, FormRequest, PageRequest, PageResult};
use super::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use checks::HealthCheck;
use rutter_api::admit::cookie;
use rutter_app::app::App;
use rutter_app::auth::AccessScope;
use rutter_app::auth::key::{ApiKeyView, KeyStatus};
use rutter_app::auth::session::{AGE_MAX, IDLE_MAX, SessionView, id_of};
use rutter_app::limits;
use rutter_app::principal::Credential;
use rutter_app::rights::Operation;
use rutter_core::limits as bounds;
use rutter_core::port::proof::StoreHealth;
use rutter_core::time::{Millis, Timestamp};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    shell: PageShell,
    checks: Vec<HealthCheck>,
    about: Vec<(&'static str, String)>,
    /// Every scope with its purpose.
    scopes: Vec<(&'static str, &'static str)>,
    keys: Vec<KeyTableRow>,
    sessions: Vec<SessionRow>,
    idle: String,
    age: String,
    limits: Vec<(&'static str, String)>,
}

struct KeyTableRow {
    id: String,
    name: String,
    scopes: String,
    status: StatusBadge,
    is_active: bool,
    created: TimeLabel,
    created_by: String,
    expires: Option<TimeLabel>,
    used: Option<TimeLabel>,
}

struct SessionRow {
    id: String,
    name: String,
    scopes: String,
    source: &'static str,
    created: TimeLabel,
    used: TimeLabel,
    is_this: bool,
}

pub(super) async fn show(State(app): State<Arc<App>>, request: PageRequest, headers: HeaderMap) -> PageResult {
    let shell = PageShell::open(&app, &request, PageSection::Settings, "Settings").await?;
    let now = shell.now;
    let health = app.health().await?;
    let mine = cookie(&headers).map(|cookie| id_of(cookie).to_string());
    let (mut keys, mut sessions) = (Vec::new(), Vec::new());
    if shell.may(Operation::ManageKeys) {
        let auth = &app.auth;
        keys = auth.list(&request.principal)?.iter().map(|key| KeyTableRow::of(key, now)).collect();
        // Active keys first.
        keys.sort_by_key(|key| !key.is_active);
        let all = auth.sessions(&request.principal)?;
        sessions = all.iter().map(|session| SessionRow::of(session, mine.as_deref(), now)).collect();
    }
    let settings = SettingsPage {
        checks: checks::all(&app, &request.principal, &health, &keys, now).await?,
        about: about(&app, &health),
        scopes: AccessScope::ALL.into_iter().map(|scope| (scope.as_str(), purpose(scope))).collect(),
        keys,
        sessions,
        idle: rough(IDLE_MAX),
        age: rough(AGE_MAX),
        limits: limits(),
        shell,
    };
    page::render(&settings)
}

/// Ends a session; users who end their own must sign in again.
pub(super) async fn sign_out(State(app): State<Arc<App>>, Path(id): Path<String>, form: FormRequest) -> PageResult {
    app.auth.end_session(&form.request.principal, &id).await?;
    Ok(page::redirect_with_flash("/settings#sessions", "signed_out"))
}

fn purpose(scope: AccessScope) -> &'static str {
    match scope {
        AccessScope::Read => "read everything",
        AccessScope::Operate => "save and execute plans, control executions",
        AccessScope::Approve => "approve calls, settle doubts, accept changed tools",
        AccessScope::Admin => "manage keys, webhooks and alerts, call tools",
    }
}

impl KeyTableRow {
    fn of(key: &ApiKeyView, now: Timestamp) -> KeyTableRow {
        let moment = |text: &str| format::instant(text, now).map(|at| TimeLabel::of(at, now));
        let status = match key.status {
            KeyStatus::Active => StatusBadge::like("completed", "active"),
            KeyStatus::Expired => StatusBadge::like("cancelled", "expired"),
            KeyStatus::Revoked => StatusBadge::like("cancelled", "revoked"),
        };
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        KeyTableRow {
            id: key.id.clone(),
            name: key.name.clone(),
            scopes: scopes.join(", "),
            status,
            is_active: key.status == KeyStatus::Active,
            created: moment(&key.created_at).unwrap_or_else(|| TimeLabel::of(now, now)),
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
                Credential::Token { .. } => "a token",
                Credential::Key { .. } => "a key",
                Credential::Link {} => "a link",
                Credential::Socket {} | Credential::Client {} | Credential::Anonymous {} => "nothing",
            },
            created: TimeLabel::of(session.created_at, now),
            used: TimeLabel::of(session.used_at, now),
        }
    }
}

fn about(app: &App, health: &StoreHealth) -> Vec<(&'static str, String)> {
    let append = |percent: u64| {
        let all = health.append_micros.last().map_or(0, |(_, count)| *count);
        let bound = health.append_micros.iter().find(|(_, count)| count * 100 >= all * percent);
        match bound.filter(|_| all > 0) {
            Some((u64::MAX, _)) => "above all buckets".to_owned(),
            Some((micros, _)) => format!("{} ms", micros.div_ceil(1_000)),
            None => "–".to_owned(),
        }
    };
    vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("URL", app.link.get().cloned().unwrap_or_else(|| "none".to_owned())),
        ("database", format!("{}, schema {}", bytes(health.database_bytes), health.schema)),
        ("free disk space", bytes(health.free_bytes)),
        ("write queue", format!("{} waiting", health.queue)),
        ("write latency", format!("p50 up to {}, p99 up to {}", append(50), append(99))),
        ("active executions", app.active_count().to_string()),
    ]
}

/// A configured duration in the largest unit that divides it.
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
        ("steps per plan", count(bounds::PLAN_STEPS_MAX)),
        ("plan size", bytes(bounds::PLAN_BYTES_MAX as u64)),
        ("parallel steps", bounds::PARALLEL_MAX.to_string()),
        ("attempts per step", bounds::ATTEMPTS_MAX.to_string()),
        ("entries per execution", format::count(bounds::ENTRIES_MAX)),
        ("arguments or result of a call", bytes(bounds::PAYLOAD_BYTES_MAX as u64)),
        ("default deadline", rough(bounds::DEADLINE_DEFAULT)),
        ("default expiry of an approval", rough(bounds::APPROVAL_EXPIRES_DEFAULT)),
        ("HTTP connections", count(limits::HTTP_CONNECTIONS_MAX)),
        ("concurrent requests", count(limits::REQUESTS_MAX)),
        ("event streams per principal", count(limits::STREAMS_PER_PRINCIPAL)),
        ("longest wait of a request", span(limits::WAIT_MAX)),
        ("keys", count(limits::KEYS_MAX)),
        ("browser sessions", count(limits::SESSIONS_MAX)),
        ("webhooks", count(rutter_observe::limits::WEBHOOKS_MAX)),
    ]
}
