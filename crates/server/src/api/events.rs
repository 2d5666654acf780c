//! What happens, as it happens: streams of server-sent events over the ledger, which go on where they were left.

use crate::api::call::Call;
use crate::api::executions::missing;
use crate::api::route::{About, Route};
use crate::api::streams::Place;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::live::{Entry, Follower};
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Response, header};
use rutter_core::actor::Party;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::event::Event;
use rutter_core::journal::label::KINDS;
use rutter_core::port;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a reader may leave everything unread.
const UNREAD_MAX: Duration = Duration::from_secs(30);
/// Pieces a reader may be behind; each holds what happened since the last.
const PIECES_MAX: usize = 16;
/// Executions whose plan is remembered for one stream.
const PLANS_KNOWN_MAX: usize = 1_000;
const MEDIA_TYPE: &str = "text/event-stream";
const LAST: HeaderName = HeaderName::from_static("last-event-id");

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::other(
            About::get("/events", "streamEvents", "Follow everything that happens, as server-sent events"),
            MEDIA_TYPE,
            all,
        ),
        Route::other(
            About::get("/executions/{id}/events", "streamExecutionEvents", "Follow one execution")
                .tag("events"),
            MEDIA_TYPE,
            of_execution,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Begin after this place of the ledger; 0 is the beginning. Left out: from now on. `Last-Event-ID` goes first.
    after: Option<u64>,
    /// Kinds of events, separated by commas.
    kinds: Option<String>,
    execution: Option<String>,
    plan: Option<String>,
    /// rutter, agent or person
    party: Option<String>,
}

async fn all(call: Call, query: EventsQuery) -> Result<Response<Body>, Fault> {
    let wanted = Wanted {
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
    /// Begin after this place of the ledger; 0 is the beginning.
    after: Option<u64>,
    /// Kinds of events, separated by commas.
    kinds: Option<String>,
}

async fn of_execution(call: Call, query: ExecutionEventsQuery) -> Result<Response<Body>, Fault> {
    let identity = call.identity();
    if call.desk().query.execution(&identity).await?.is_none() {
        return Err(missing(&identity));
    }
    let kinds = kinds(query.kinds.as_deref())?;
    let wanted = Wanted { kinds, execution: Some(identity.execution), ..Wanted::default() };
    stream(call, wanted, query.after).await
}

/// Kinds of events by their names.
pub(crate) fn kinds(text: Option<&str>) -> Result<BTreeSet<&'static str>, Fault> {
    let names = text.into_iter().flat_map(|text| text.split(',')).map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    let known = names.map(|name| {
        let unknown = || Fault::new("server.arguments", format!("there is no kind of event {name:?}"));
        KINDS.iter().copied().find(|kind| *kind == name).ok_or_else(unknown)
    });
    known.collect()
}

pub(crate) fn party(text: &str) -> Result<Party, Fault> {
    match text {
        "rutter" => Ok(Party::Rutter),
        "agent" => Ok(Party::Agent),
        "person" => Ok(Party::Person),
        _ => Err(Fault::new("server.arguments", "party is rutter, agent or person")),
    }
}

/// What a reader wants to hear of; nothing set is everything.
#[derive(Debug, Default)]
struct Wanted {
    kinds: BTreeSet<&'static str>,
    execution: Option<ExecutionId>,
    plan: Option<PlanId>,
    party: Option<Party>,
    /// Of which plan an execution is, as far as it was looked up.
    plans: HashMap<ExecutionId, Option<PlanId>>,
}

impl Wanted {
    async fn has(&mut self, desk: &Desk, tenant: &TenantId, entry: &Entry) -> Result<bool, port::Error> {
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
            let identity = Identity { tenant: tenant.clone(), execution: stored.execution.clone() };
            let found = desk.query.execution(&identity).await?.map(|found| found.plan);
            self.plans.insert(stored.execution.clone(), found);
        }
        Ok(self.plans.get(&stored.execution).is_some_and(|found| found.as_ref() == Some(&plan)))
    }
}

async fn stream(call: Call, wanted: Wanted, after: Option<u64>) -> Result<Response<Body>, Fault> {
    let place = call.api.streams.enter(&call.guest)?;
    let last = match call.headers.get(LAST) {
        None => None,
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
            let wrong = || Fault::new("server.arguments", "Last-Event-ID is the id of an event: a number");
            Some(number.ok_or_else(wrong)?)
        }
    };
    let follower = call.api.live.follow(&call.guest.tenant, last.or(after)).await?;
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    let teller = Teller {
        desk: Arc::clone(call.desk()),
        tenant: call.guest.tenant.clone(),
        follower,
        wanted,
        sender,
        closing: call.api.closing.clone(),
        _place: place,
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

/// Tells one reader, until it goes away, falls too far behind, or the server closes.
struct Teller {
    desk: Arc<Desk>,
    tenant: TenantId,
    follower: Follower,
    wanted: Wanted,
    sender: mpsc::Sender<Bytes>,
    closing: CancellationToken,
    /// Held as long as this lasts.
    _place: Place,
}

/// The stream is over.
struct Over;

impl Teller {
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

    async fn turn(&mut self) -> Result<(), Over> {
        match tokio::time::timeout(HEARTBEAT, self.follower.next()).await {
            Err(_) => self.send(Bytes::from_static(b": still here\n\n")).await,
            Ok(Err(error)) => {
                tracing::debug!(error.code = error.code(), "a stream ends: {error}");
                Err(Over)
            }
            Ok(Ok(entries)) => {
                let mut piece = Vec::new();
                for entry in entries {
                    let wanted = self.wanted.has(&self.desk, &self.tenant, &entry).await;
                    if wanted.map_err(|_| Over)? {
                        piece.extend_from_slice(entry.frame());
                    }
                }
                if piece.is_empty() { Ok(()) } else { self.send(Bytes::from(piece)).await }
            }
        }
    }

    async fn send(&self, piece: Bytes) -> Result<(), Over> {
        match tokio::time::timeout(UNREAD_MAX, self.sender.send(piece)).await {
            Ok(Ok(())) => Ok(()),
            // It went away, or reads nothing; it comes again with the last id it has.
            Ok(Err(_)) | Err(_) => Err(Over),
        }
    }
}
