//! Stores responses under the idempotency key of their request, so that a repeated request takes effect once.
//!
//! The key is stored before the request runs. A repeated request waits while the first one runs, and gets the same
//! response later; after a crash in between it runs again where that does no harm, or else gets an error that the outcome is
//! unknown.

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::limits::REPLY_AGE_MAX;
use rutter_app::request_key::key_reused;
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::query::Pagination;
use rutter_core::port::register::{RegisterChange, RegisterItem, RegisterKind, RegisterWrite};
use rutter_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Replies scanned when expired ones are removed, and how often that happens.
const PAGE: u32 = 1_000;
const PRUNE_EVERY: Millis = Millis::seconds(600);

/// How a repeated request is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idempotency {
    /// It changes nothing, or nothing more when repeated.
    No,
    /// The journal stores the key.
    Journal,
    /// The reply is stored under the key, without a field that is returned only once.
    Reply { without: Option<&'static str> },
    /// The same, for a request that does no harm when it runs again: it does, if the first run has left no reply.
    ReplyOrRerun,
}

#[derive(Debug, Default)]
pub(crate) struct IdempotentReplies {
    under_way: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    pruned_at: Mutex<Option<Timestamp>>,
}

/// A request with its idempotency key.
#[derive(Clone, Debug)]
pub(crate) struct KeyedRequest {
    pub(crate) tenant: TenantId,
    /// The id of the stored reply, from principal and key.
    id: String,
    /// Digest of the whole request.
    digest: Hash,
    key: String,
}

impl KeyedRequest {
    pub(crate) fn new(tenant: &TenantId, principal: &str, key: &str, asked: &[&[u8]]) -> KeyedRequest {
        let id = Hash::of_fields("rutter/reply-key/v1", &[principal.as_bytes(), key.as_bytes()]).to_string();
        let digest = Hash::of_fields("rutter/reply-request/v2", asked);
        KeyedRequest { tenant: tenant.clone(), id, digest, key: key.to_owned() }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredRequest {
    digest: Hash,
    /// Absent while the outcome is unknown.
    reply: Option<StoredReply>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredReply {
    status: u16,
    #[serde(default)]
    location: Option<String>,
    body: Value,
}

impl IdempotentReplies {
    /// Returns the stored reply, or runs the request and stores its reply.
    pub(crate) async fn once(
        &self,
        app: &App,
        keyed: &KeyedRequest,
        kept: Idempotency,
        run: impl Future<Output = Result<Response<Body>, AppError>>,
    ) -> Result<Response<Body>, AppError> {
        let turn = self.turn(&keyed.id);
        let answer = {
            let _turn = turn.lock().await;
            self.run_in_turn(app, keyed, kept, run).await
        };
        self.release_turn(&keyed.id, turn);
        self.prune(app, &keyed.tenant).await;
        answer
    }

    async fn run_in_turn(
        &self,
        app: &App,
        keyed: &KeyedRequest,
        kept: Idempotency,
        run: impl Future<Output = Result<Response<Body>, AppError>>,
    ) -> Result<Response<Body>, AppError> {
        let now = app.now();
        let found = app.register.find(&keyed.tenant, RegisterKind::Reply, &keyed.id).await?;
        let is_over = |note: &RegisterItem| {
            is_old(note.changed_at, now) || (kept == Idempotency::ReplyOrRerun && is_without_reply(keyed, &note.value))
        };
        let old = found.as_ref().filter(|note| is_over(note)).map_or(0, |note| note.version);
        if let Some(note) = found.filter(|note| !is_over(note)) {
            return replayed_response(keyed, &note.value);
        }
        let noted = json!(StoredRequest { digest: keyed.digest, reply: None });
        let change = RegisterChange::put(RegisterKind::Reply, &keyed.id, noted).expecting(old);
        match write(app, keyed, change).await {
            // Another process stored the key first.
            Err(port::Error::Conflict { .. }) => return Err(outcome_unknown(keyed)),
            written => written?,
        }
        match run.await {
            Ok(response) => {
                let without = match kept {
                    Idempotency::Reply { without } => without,
                    Idempotency::ReplyOrRerun | Idempotency::No | Idempotency::Journal => None,
                };
                self.store_reply(app, keyed, without, response).await
            }
            Err(error) => {
                // A client error changed nothing, so the key is free again.
                if !crate::problem::status_of(&error).is_server_error() || error.retryable {
                    write(app, keyed, RegisterChange::remove(RegisterKind::Reply, &keyed.id)).await?;
                }
                Err(error)
            }
        }
    }

    async fn store_reply(
        &self,
        app: &App,
        keyed: &KeyedRequest,
        without: Option<&str>,
        response: Response<Body>,
    ) -> Result<Response<Body>, AppError> {
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await;
        let body = body.map_err(|error| AppError::new("server.internal", error.to_string()))?;
        let mut value: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if let (Some(name), Value::Object(fields)) = (without, &mut value) {
            fields.remove(name);
        }
        let location = parts.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        let reply = StoredReply { status: parts.status.as_u16(), location: location.map(str::to_owned), body: value };
        let stored = json!(StoredRequest { digest: keyed.digest, reply: Some(reply) });
        write(app, keyed, RegisterChange::put(RegisterKind::Reply, &keyed.id, stored)).await?;
        Ok(Response::from_parts(parts, Body::from(body)))
    }

    fn turn(&self, id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(under_way.entry(id.to_owned()).or_default())
    }

    fn release_turn(&self, id: &str, turn: Arc<tokio::sync::Mutex<()>>) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        drop(turn);
        if under_way.get(id).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            under_way.remove(id);
        }
    }

    /// Removes expired replies, now and then.
    async fn prune(&self, app: &App, tenant: &TenantId) {
        let now = app.now();
        {
            let mut pruned_at = self.pruned_at.lock().unwrap_or_else(PoisonError::into_inner);
            if pruned_at.is_some_and(|at| now.since(at) < PRUNE_EVERY) {
                return;
            }
            *pruned_at = Some(now);
        }
        let Ok(found) = app.register.list(tenant, RegisterKind::Reply, Pagination::first(PAGE)).await else {
            return;
        };
        let old = found.items.into_iter().filter(|note| is_old(note.changed_at, now));
        let changes: Vec<RegisterChange> =
            old.map(|note| RegisterChange::remove(RegisterKind::Reply, &note.id)).collect();
        if !changes.is_empty() {
            let changes = RegisterWrite { tenant: tenant.clone(), at: now, changes, record: None };
            if let Err(error) = app.register.write(changes).await {
                tracing::debug!("expired replies could not be removed: {error}");
            }
        }
    }
}

async fn write(app: &App, keyed: &KeyedRequest, change: RegisterChange) -> Result<(), port::Error> {
    let (tenant, at) = (keyed.tenant.clone(), app.now());
    app.register.write(RegisterWrite { tenant, at, changes: vec![change], record: None }).await
}

fn is_old(at: Timestamp, now: Timestamp) -> bool {
    u128::from(now.since(at).0) > REPLY_AGE_MAX.as_millis()
}

/// Whether the same request was started with this key and left no reply.
fn is_without_reply(keyed: &KeyedRequest, value: &Value) -> bool {
    let stored = StoredRequest::deserialize(value);
    stored.is_ok_and(|stored| stored.digest == keyed.digest && stored.reply.is_none())
}

fn replayed_response(keyed: &KeyedRequest, value: &Value) -> Result<Response<Body>, AppError> {
    let stored: StoredRequest =
        serde_json::from_value(value.clone()).map_err(|error| AppError::new("server.internal", error.to_string()))?;
    if stored.digest != keyed.digest {
        let known = stored.reply.and_then(|reply| reply.location);
        return Err(match known {
            Some(location) => key_reused(&keyed.key, &location),
            None => port::Error::KeyReused { key: keyed.key.clone() }.into(),
        });
    }
    let reply = stored.reply.ok_or_else(|| outcome_unknown(keyed))?;
    let body = match &reply.body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    let mut response = Response::new(Body::from(body.clone()));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    if !body.is_empty() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"));
    if let Some(location) = reply.location.and_then(|location| HeaderValue::from_str(&location).ok()) {
        headers.insert(header::LOCATION, location);
    }
    Ok(response)
}

/// A request with this key did not finish, or still runs in another process.
fn outcome_unknown(keyed: &KeyedRequest) -> AppError {
    let message = format!("a request with the key {:?} was started, and its outcome is unknown", keyed.key);
    AppError::new("store.key_reused", message).hint("check whether it took effect before using another key")
}
