//! Executions as traces, sent to a collector that speaks OTLP over HTTP in JSON.
//!
//! Traces are read from the ledger, not from what this process remembers: one execution is one trace, over crashes,
//! restarts and workers. An attempt is sent when it has ended, the whole execution when it has. How far was sent is
//! kept, so that after a restart at most one batch goes out twice. A collector that is away costs spans, never an
//! execution.

mod derive;
pub mod ids;
pub mod names;
pub mod span;

use crate::metrics::Metrics;
use derive::Deriver;
use rutter_core::id::TenantId;
use rutter_core::port::Error;
use rutter_core::port::feed::Feed;
use rutter_core::port::outbox::{Parcel, Post, Receipt};
use rutter_core::port::query::Query;
use rutter_core::port::register::{Change, Changes, Kind, Register};
use rutter_core::time::Millis;
use rutter_engine::Clock;
use serde_json::{Value, json};
use span::Span;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Entries read in one go.
const STRETCH: u32 = 500;
/// Spans of one request.
const BATCH: usize = 256;
/// After something new was noticed, for more to come along.
const LINGER: Duration = Duration::from_millis(500);
/// One try.
const TIMEOUT: Millis = Millis::seconds(10);
/// Tries of one batch while the collector is believed to be there; one when it is not.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// After a failure of the store.
const AGAIN: Duration = Duration::from_secs(1);
const MARK: &str = "trace";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where the collector listens; `/v1/traces` is added if it is not there.
    pub endpoint: String,
    pub headers: Vec<(String, String)>,
    /// Sends what tools were called with and what they answered. Secrets are references, the rest is not hidden.
    pub include_arguments: bool,
    /// Servers of which it is known that they speak MCP.
    pub mcp_servers: BTreeSet<String>,
    pub service: String,
    pub version: &'static str,
}

/// Sends the traces of one tenant.
pub struct Tracer {
    pub options: Options,
    pub tenant: TenantId,
    pub feed: Arc<dyn Feed>,
    pub query: Arc<dyn Query>,
    pub register: Arc<dyn Register>,
    /// Goes wherever the operator says: this is not an address that somebody else has chosen.
    pub post: Arc<dyn Post>,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
}

/// What came of a batch.
enum Sent {
    Yes,
    Dropped,
    /// The process ends; it goes out after the next start.
    Later,
}

impl Tracer {
    /// Sends what happens from now on, and since the last time, until it is asked to end.
    pub async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            () = self.follow(&shutdown) => {}
        }
    }

    async fn follow(&self, shutdown: &CancellationToken) {
        let mut place = None;
        let mut is_there = true;
        let mut deriver = Deriver::new(self.tenant.clone(), Arc::clone(&self.query), self.options.clone());
        while !shutdown.is_cancelled() {
            let step = match place {
                None => self.begin().await.map(|begun| place = Some(begun)),
                Some(after) => match self.step(after, &mut deriver, &mut is_there, shutdown).await {
                    Ok(next) => {
                        place = Some(next);
                        Ok(())
                    }
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = step {
                tracing::warn!(error.code = error.code(), "traces do not go on: {error}");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// Where the last process stopped; the first one begins with what comes next.
    async fn begin(&self) -> Result<u64, Error> {
        let note = self.register.find(&self.tenant, Kind::Mark, MARK).await?;
        match note.and_then(|note| note.value["place"].as_u64()) {
            Some(place) => Ok(place),
            None => {
                let place = self.feed.size(&self.tenant).await?;
                self.mark(place).await?;
                Ok(place)
            }
        }
    }

    /// Sends what stands after a place. Answers where to go on.
    async fn step(
        &self,
        place: u64,
        deriver: &mut Deriver,
        is_there: &mut bool,
        shutdown: &CancellationToken,
    ) -> Result<u64, Error> {
        let stretch = self.feed.after(&self.tenant, place, STRETCH).await?;
        if stretch.until == place {
            self.feed.beyond(&self.tenant, place).await?;
            tokio::time::sleep(LINGER).await;
            return Ok(place);
        }
        let mut spans = Vec::new();
        for placed in &stretch.items {
            spans.extend(deriver.spans(placed).await?);
        }
        for batch in spans.chunks(BATCH) {
            match self.send(batch, *is_there, shutdown).await {
                Sent::Yes => {
                    *is_there = true;
                    self.metrics.spans_sent(batch.len() as u64);
                }
                Sent::Dropped => {
                    *is_there = false;
                    self.metrics.spans_dropped(batch.len() as u64);
                }
                Sent::Later => return Ok(place),
            }
        }
        if !spans.is_empty() {
            self.mark(stretch.until).await?;
        }
        Ok(stretch.until)
    }

    async fn mark(&self, place: u64) -> Result<(), Error> {
        let changes = vec![Change::put(Kind::Mark, MARK, json!({ "place": place }))];
        let (tenant, at) = (self.tenant.clone(), self.clock.now());
        self.register.write(Changes { tenant, at, changes, record: None }).await
    }

    async fn send(&self, spans: &[Span], is_there: bool, shutdown: &CancellationToken) -> Sent {
        let body = span::request(spans, &self.options.service, self.options.version).to_string().into_bytes();
        let mut pause = PAUSE;
        for left in (0..if is_there { TRIES } else { 1 }).rev() {
            let again = match self.post.send(self.parcel(body.clone())).await {
                Receipt::Answered { status: 200..=299, text, .. } => {
                    self.note_rejected(&text);
                    return Sent::Yes;
                }
                Receipt::Answered { status: status @ (408 | 429 | 502 | 503 | 504), retry_after, .. } => {
                    let asked = retry_after.map(|asked| Duration::from_millis(asked.0));
                    Ok((format!("it answered {status}"), asked))
                }
                Receipt::Answered { status, text, .. } => Err(format!("it answered {status}: {text}")),
                Receipt::Failed { why } => Ok((why, None)),
                Receipt::Refused { why } => Err(why),
            };
            let (why, asked) = match again {
                Ok(again) if left > 0 => again,
                Ok((why, _)) | Err(why) => {
                    tracing::warn!(spans = spans.len(), "the collector did not take spans: {why}");
                    return Sent::Dropped;
                }
            };
            tracing::debug!("the collector is asked again: {why}");
            tokio::select! {
                () = shutdown.cancelled() => return Sent::Later,
                () = tokio::time::sleep(asked.unwrap_or(pause).min(PAUSE_MAX)) => {}
            }
            pause *= 2;
        }
        Sent::Dropped
    }

    fn parcel(&self, body: Vec<u8>) -> Parcel {
        let endpoint = self.options.endpoint.trim_end_matches('/');
        let url = match endpoint.ends_with("/v1/traces") {
            true => endpoint.to_owned(),
            false => format!("{endpoint}/v1/traces"),
        };
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.extend(self.options.headers.iter().cloned());
        Parcel { url, headers, body, timeout: TIMEOUT }
    }

    /// A collector may take a batch and leave some of it out.
    fn note_rejected(&self, text: &str) {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        let rejected = &answer["partialSuccess"]["rejectedSpans"];
        // Large numbers are written as texts in this format.
        let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0);
        if rejected > 0 {
            self.metrics.spans_dropped(rejected);
            tracing::warn!(spans = rejected, "the collector left out spans");
        }
    }
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer").field("endpoint", &self.options.endpoint).finish_non_exhaustive()
    }
}
