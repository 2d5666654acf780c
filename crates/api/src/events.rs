//! Live streams of ledger events as server-sent events, which a client can resume.

use crate::executions::missing;
use crate::request::ApiRequest;
use crate::route::{ApiRoute, RouteSpec};
use crate::streams::StreamSlot;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Response, header};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_core::actor::ActorKind;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::event::Event;
use rutter_core::journal::label::KINDS;
use rutter_core::port;
use rutter_observe::live::{LedgerFollower, LiveEntry};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a reader may stall.
const UNREAD_MAX: Duration = Duration::from_secs(30);
/// Chunks buffered for a slow reader; each contains all events since the last.
const PIECES_MAX: usize = 16;
/// Executions whose plan is cached for one stream.
const PLANS_KNOWN_MAX: usize = 1_000;
const MEDIA_TYPE: &str = "text/event-stream";
const LAST: HeaderName = HeaderName::from_static("last-event-id");

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::other(
            RouteSpec::get("/events", "streamEvents", "Follow all events, as server-sent events"),
            MEDIA_TYPE,
            all,
        ),
        ApiRoute::other(
            RouteSpec::get("/executions/{id}/events", "streamExecutionEvents", "Follow one execution").tag("events"),
            MEDIA_TYPE,
            of_execution,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Start after this position of the ledger (0: the beginning), by default from now on. `Last-Event-ID` wins.
    after: Option<u64>,
    /// Kinds of events, separated by commas.
    kinds: Option<String>,
    execution: Option<String>,
    plan: Option<String>,
    /// rutter, agent or person
    party: Option<String>,
}

async fn all(call: ApiRequest, query: EventsQuery) -> Result<Response<Body>, AppError> {
    let wanted = EventFilter {
        kinds: kinds(query.kinds.as_deref())?,
        execution: query.execution.as_deref().map(ExecutionId::new),
        plan: query.plan.as_deref().map(PlanId::new),
        party: query.party.as_deref().map(party).transpose()?,
        plans: HashMap::new(),
    };
    stream(call, wanted, query.after).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutionEventsQuery {
    /// Start after this position of the ledger; 0 is the beginning.
    after: Option<u64>,
    /// Kinds of events, separated by commas.
    kinds: Option<String>,
}

async fn of_execution(call: ApiRequest, query: ExecutionEventsQuery) -> Result<Response<Body>, AppError> {
    let identity = call.identity();
    if call.app().query.execution(&identity).await?.is_none() {
        return Err(missing(&identity));
    }
    let kinds = kinds(query.kinds.as_deref())?;
    let wanted = EventFilter { kinds, execution: Some(identity.execution), ..EventFilter::default() };
    stream(call, wanted, query.after).await
}

/// Parses kinds of events.
pub(crate) fn kinds(text: Option<&str>) -> Result<BTreeSet<&'static str>, AppError> {
    let names = text.into_iter().flat_map(|text| text.split(',')).map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    let known = names.map(|name| {
        let unknown = || AppError::new("server.arguments", format!("unknown kind of event {name:?}"));
        KINDS.iter().copied().find(|kind| *kind == name).ok_or_else(unknown)
    });
    known.collect()
}

pub(crate) fn party(text: &str) -> Result<ActorKind, AppError> {
    match text {
        "rutter" => Ok(ActorKind::Rutter),
        "agent" => Ok(ActorKind::Agent),
        "person" => Ok(ActorKind::Person),
        _ => Err(AppError::new("server.arguments", "expected party rutter, agent or person")),
    }
}

/// What a reader subscribes to; an empty filter matches everything.
#[derive(Debug, Default)]
struct EventFilter {
    kinds: BTreeSet<&'static str>,
    execution: Option<ExecutionId>,
    plan: Option<PlanId>,
    party: Option<ActorKind>,
    /// Plans of executions, as far as looked up.
    plans: HashMap<ExecutionId, Option<PlanId>>,
}

impl EventFilter {
    async fn matches(&mut self, app: &App, tenant: &TenantId, entry: &LiveEntry) -> Result<bool, port::Error> {
        let stored = &entry.placed.stored;
        let is_kind = self.kinds.is_empty() || self.kinds.contains(entry.kind());
        let is_execution = self.execution.as_ref().is_none_or(|execution| *execution == stored.execution);
        let is_party = self.party.is_none_or(|party| party == stored.actor.party);
        if !(is_kind && is_execution && is_party) {
            return Ok(false);
        }
        let Some(plan) = self.plan.clone() else { return Ok(true) };
        if let Event::PlanSaved { id, .. } = &stored.event {
            return Ok(*id == plan);
        }
        if self.plans.len() >= PLANS_KNOWN_MAX {
            self.plans.clear();
        }
        if !self.plans.contains_key(&stored.execution) {
            let identity = ExecutionIdentity { tenant: tenant.clone(), execution: stored.execution.clone() };
            let found = app.query.execution(&identity).await?.map(|found| found.plan);
            self.plans.insert(stored.execution.clone(), found);
        }
        Ok(self.plans.get(&stored.execution).is_some_and(|found| found.as_ref() == Some(&plan)))
    }
}

async fn stream(call: ApiRequest, wanted: EventFilter, after: Option<u64>) -> Result<Response<Body>, AppError> {
    let place = call.api.streams.enter(&call.principal)?;
    let last = match call.headers.get(LAST) {
        None => None,
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
            let wrong = || AppError::new("server.arguments", "expected the number of an event in Last-Event-ID");
            Some(number.ok_or_else(wrong)?)
        }
    };
    let follower = call.api.live.follow(&call.principal.tenant, last.or(after)).await?;
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    let teller = EventStreamWriter {
        app: Arc::clone(call.app()),
        tenant: call.principal.tenant.clone(),
        follower,
        filter: wanted,
        sender,
        closing: call.api.closing.clone(),
        _slot: place,
    };
    tokio::spawn(teller.run());
    let pieces = futures::stream::unfold(receiver, |mut receiver: mpsc::Receiver<Bytes>| async move {
        let piece = receiver.recv().await?;
        Some((Ok::<Bytes, Infallible>(piece), receiver))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

/// Sends events to one reader, until it disconnects, falls too far behind, or the server shuts down.
struct EventStreamWriter {
    app: Arc<App>,
    tenant: TenantId,
    follower: LedgerFollower,
    filter: EventFilter,
    sender: mpsc::Sender<Bytes>,
    closing: CancellationToken,
    /// Held while the stream is open.
    _slot: StreamSlot,
}

/// The stream has ended.
struct StreamClosed;

impl EventStreamWriter {
    async fn run(mut self) {
        if self.send(Bytes::from_static(b"retry: 1000\n\n")).await.is_err() {
            return;
        }
        let closing = self.closing.clone();
        let sender = self.sender.clone();
        let telling = async { while self.turn().await.is_ok() {} };
        tokio::select! {
            () = telling => {}
            () = closing.cancelled() => {}
            () = sender.closed() => {}
        }
    }

    async fn turn(&mut self) -> Result<(), StreamClosed> {
        match tokio::time::timeout(HEARTBEAT, self.follower.next()).await {
            Err(_) => self.send(Bytes::from_static(b": still here\n\n")).await,
            Ok(Err(error)) => {
                tracing::debug!(error.code = error.code(), "an event stream ended: {error}");
                Err(StreamClosed)
            }
            Ok(Ok(entries)) => {
                let mut piece = Vec::new();
                for entry in entries {
                    let wanted = self.filter.matches(&self.app, &self.tenant, &entry).await;
                    if wanted.map_err(|_| StreamClosed)? {
                        piece.extend_from_slice(entry.frame());
                    }
                }
                if piece.is_empty() { Ok(()) } else { self.send(Bytes::from(piece)).await }
            }
        }
    }

    async fn send(&self, piece: Bytes) -> Result<(), StreamClosed> {
        match tokio::time::timeout(UNREAD_MAX, self.sender.send(piece)).await {
            Ok(Ok(())) => Ok(()),
            // The reader disconnected or stalled; it can resume from its last id.
            Ok(Err(_)) | Err(_) => Err(StreamClosed),
        }
    }
}
