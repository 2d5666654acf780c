//! Answers that are kept under the key of their request, so that asking twice does the thing once.
//!
//! A key is noted before anything is done. Whoever comes with it while that goes on waits; whoever comes later hears
//! the same answer; after a crash in between nobody knows what was done, and that is what is said.

use crate::desk::Desk;
use crate::fault::Fault;
use crate::limits::REPLY_AGE_MAX;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::query::Page;
use rutter_core::port::register::{Change, Changes, Kind};
use rutter_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Notes that are looked through at once when old ones are taken away, and how often that is done.
const PAGE: u32 = 1_000;
const PRUNE_EVERY: Millis = Millis::seconds(600);

#[derive(Debug, Default)]
pub(crate) struct Replies {
    under_way: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    pruned_at: Mutex<Option<Timestamp>>,
}

/// One request with its key.
#[derive(Clone, Debug)]
pub(crate) struct Keyed {
    pub(crate) tenant: TenantId,
    /// The note's name: of the guest and the key.
    id: String,
    /// Of everything that was asked.
    digest: Hash,
    key: String,
}

impl Keyed {
    pub(crate) fn new(tenant: &TenantId, guest: &str, key: &str, asked: &[&[u8]]) -> Keyed {
        let id = Hash::of_fields("rutter/reply-key/v1", &[guest.as_bytes(), key.as_bytes()]).to_string();
        let digest = Hash::of_fields("rutter/reply-request/v1", asked);
        Keyed { tenant: tenant.clone(), id, digest, key: key.to_owned() }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    digest: Hash,
    /// Absent while it is not known what came of it.
    reply: Option<KeptReply>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptReply {
    status: u16,
    #[serde(default)]
    location: Option<String>,
    body: Value,
}

impl Replies {
    /// Answers from what was kept, or does it now and keeps the answer.
    pub(crate) async fn once(
        &self,
        desk: &Desk,
        keyed: &Keyed,
        without: Option<&str>,
        run: impl Future<Output = Result<Response<Body>, Fault>>,
    ) -> Result<Response<Body>, Fault> {
        let turn = self.turn(&keyed.id);
        let answer = {
            let _turn = turn.lock().await;
            self.in_turn(desk, keyed, without, run).await
        };
        self.leave(&keyed.id, turn);
        self.prune(desk, &keyed.tenant).await;
        answer
    }

    async fn in_turn(
        &self,
        desk: &Desk,
        keyed: &Keyed,
        without: Option<&str>,
        run: impl Future<Output = Result<Response<Body>, Fault>>,
    ) -> Result<Response<Body>, Fault> {
        let now = desk.engine.now();
        let found = desk.register.find(&keyed.tenant, Kind::Reply, &keyed.id).await?;
        let old = found.as_ref().filter(|note| is_old(note.changed_at, now)).map_or(0, |note| note.version);
        if let Some(note) = found.filter(|note| !is_old(note.changed_at, now)) {
            return again(keyed, &note.value);
        }
        let noted = json!(Kept { digest: keyed.digest, reply: None });
        let change = Change::put(Kind::Reply, &keyed.id, noted).expecting(old);
        match write(desk, keyed, change).await {
            // Another process was faster.
            Err(port::Error::Conflict { .. }) => return Err(unknown(keyed)),
            written => written?,
        }
        match run.await {
            Ok(response) => self.keep(desk, keyed, without, response).await,
            Err(fault) => {
                // Nothing was done, unless it failed halfway.
                if !crate::api::problem::status_of(&fault).is_server_error() || fault.retryable {
                    write(desk, keyed, Change::remove(Kind::Reply, &keyed.id)).await?;
                }
                Err(fault)
            }
        }
    }

    async fn keep(
        &self,
        desk: &Desk,
        keyed: &Keyed,
        without: Option<&str>,
        response: Response<Body>,
    ) -> Result<Response<Body>, Fault> {
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await;
        let body = body.map_err(|error| Fault::new("server.internal", error.to_string()))?;
        let mut value: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if let (Some(name), Value::Object(fields)) = (without, &mut value) {
            fields.remove(name);
        }
        let location = parts.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        let reply =
            KeptReply { status: parts.status.as_u16(), location: location.map(str::to_owned), body: value };
        let kept = json!(Kept { digest: keyed.digest, reply: Some(reply) });
        write(desk, keyed, Change::put(Kind::Reply, &keyed.id, kept)).await?;
        Ok(Response::from_parts(parts, Body::from(body)))
    }

    fn turn(&self, id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(under_way.entry(id.to_owned()).or_default())
    }

    fn leave(&self, id: &str, turn: Arc<tokio::sync::Mutex<()>>) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        drop(turn);
        if under_way.get(id).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            under_way.remove(id);
        }
    }

    /// Takes away what is too old to be asked for again, now and then.
    async fn prune(&self, desk: &Desk, tenant: &TenantId) {
        let now = desk.engine.now();
        {
            let mut pruned_at = self.pruned_at.lock().unwrap_or_else(PoisonError::into_inner);
            if pruned_at.is_some_and(|at| now.since(at) < PRUNE_EVERY) {
                return;
            }
            *pruned_at = Some(now);
        }
        let Ok(found) = desk.register.list(tenant, Kind::Reply, Page::first(PAGE)).await else { return };
        let old = found.items.into_iter().filter(|note| is_old(note.changed_at, now));
        let changes: Vec<Change> = old.map(|note| Change::remove(Kind::Reply, &note.id)).collect();
        if !changes.is_empty() {
            let changes = Changes { tenant: tenant.clone(), at: now, changes, record: None };
            if let Err(error) = desk.register.write(changes).await {
                tracing::debug!("old replies stay a while longer: {error}");
            }
        }
    }
}

async fn write(desk: &Desk, keyed: &Keyed, change: Change) -> Result<(), port::Error> {
    let (tenant, at) = (keyed.tenant.clone(), desk.engine.now());
    desk.register.write(Changes { tenant, at, changes: vec![change], record: None }).await
}

fn is_old(at: Timestamp, now: Timestamp) -> bool {
    u128::from(now.since(at).0) > REPLY_AGE_MAX.as_millis()
}

fn again(keyed: &Keyed, value: &Value) -> Result<Response<Body>, Fault> {
    let kept: Kept = serde_json::from_value(value.clone())
        .map_err(|error| Fault::new("server.internal", error.to_string()))?;
    if kept.digest != keyed.digest {
        return Err(port::Error::KeyReused { key: keyed.key.clone() }.into());
    }
    let reply = kept.reply.ok_or_else(|| unknown(keyed))?;
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

/// Somebody began with this key and did not come to an end, or is still at it elsewhere.
fn unknown(keyed: &Keyed) -> Fault {
    let message =
        format!("a request with the key {:?} was begun, and it is not known what came of it", keyed.key);
    Fault::new("store.key_reused", message).hint("look whether it was done before asking with another key")
}
