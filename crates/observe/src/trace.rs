//! Executions as traces, sent to a collector that speaks OTLP over HTTP in JSON.
//!
//! Traces are derived from the ledger, not from the memory of this process: one execution is one trace, across crashes,
//! restarts and workers. An attempt is sent when it has ended, the execution's span when the execution has. The
//! position sent is stored, so after a restart at most one batch is sent twice. An unreachable collector costs spans,
//! never an execution.

mod derive;
pub mod ids;
pub mod names;
pub mod span;

use crate::metrics::ServerMetrics;
use derive::SpanDeriver;
use rutter_core::id::TenantId;
use rutter_core::port::Error;
use rutter_core::port::feed::LedgerFeed;
use rutter_core::port::outbox::{HttpSender, OutgoingRequest, SendOutcome};
use rutter_core::port::query::StoreQuery;
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::time::Millis;
use rutter_engine::SystemClock;
use serde_json::{Value, json};
use span::TraceSpan;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Entries read at once.
const STRETCH: u32 = 500;
/// Spans of one request.
const BATCH: usize = 256;
/// Wait after a new entry, so that more spans share a request.
const LINGER: Duration = Duration::from_millis(500);
/// Timeout of one request.
const TIMEOUT: Millis = Millis::seconds(10);
/// Attempts per batch while the last batch got through; otherwise one.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Pause after a store error.
const AGAIN: Duration = Duration::from_secs(1);
const MARK: &str = "trace";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// The collector's address; `/v1/traces` is appended if missing.
    pub endpoint: String,
    pub headers: Vec<(String, String)>,
    /// Also send arguments and results of tool calls. Secrets are references; the rest is in clear text.
    pub include_arguments: bool,
    /// Servers known to speak MCP.
    pub mcp_servers: BTreeSet<String>,
    pub service: String,
    pub version: &'static str,
}

/// Sends the traces of one tenant.
pub struct TraceExporter {
    pub options: TraceOptions,
    pub tenant: TenantId,
    pub feed: Arc<dyn LedgerFeed>,
    pub query: Arc<dyn StoreQuery>,
    pub register: Arc<dyn Register>,
    /// May connect to any address: the operator chose the endpoint.
    pub http_sender: Arc<dyn HttpSender>,
    pub metrics: Arc<ServerMetrics>,
    pub clock: SystemClock,
}

/// The result of one batch.
enum BatchOutcome {
    Accepted,
    Dropped,
    /// Interrupted by the shutdown; sent after the next start.
    Later,
}

impl TraceExporter {
    /// Sends spans from the stored position on, until shutdown.
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
        let mut deriver = SpanDeriver::new(self.tenant.clone(), Arc::clone(&self.query), self.options.clone());
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
                tracing::warn!(error.code = error.code(), "trace export failed, retrying: {error}");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// The position where the last process stopped; the first one begins at the end of the ledger.
    async fn begin(&self) -> Result<u64, Error> {
        let note = self.register.find(&self.tenant, RegisterKind::Mark, MARK).await?;
        match note.and_then(|note| note.value["place"].as_u64()) {
            Some(place) => Ok(place),
            None => {
                let place = self.feed.size(&self.tenant).await?;
                self.mark(place).await?;
                Ok(place)
            }
        }
    }

    /// Sends the spans of the entries after a position. Returns the next position.
    async fn step(
        &self,
        place: u64,
        deriver: &mut SpanDeriver,
        is_there: &mut bool,
        shutdown: &CancellationToken,
    ) -> Result<u64, Error> {
        let stretch = self.feed.entries_after(&self.tenant, place, STRETCH).await?;
        if stretch.until == place {
            self.feed.wait_beyond(&self.tenant, place).await?;
            tokio::time::sleep(LINGER).await;
            return Ok(place);
        }
        let mut spans = Vec::new();
        for placed in &stretch.items {
            spans.extend(deriver.spans(placed).await?);
        }
        for batch in spans.chunks(BATCH) {
            match self.send(batch, *is_there, shutdown).await {
                BatchOutcome::Accepted => {
                    *is_there = true;
                    self.metrics.spans_sent(batch.len() as u64);
                }
                BatchOutcome::Dropped => {
                    *is_there = false;
                    self.metrics.spans_dropped(batch.len() as u64);
                }
                BatchOutcome::Later => return Ok(place),
            }
        }
        if !spans.is_empty() {
            self.mark(stretch.until).await?;
        }
        Ok(stretch.until)
    }

    async fn mark(&self, place: u64) -> Result<(), Error> {
        let changes = vec![RegisterChange::put(RegisterKind::Mark, MARK, json!({ "place": place }))];
        let (tenant, at) = (self.tenant.clone(), self.clock.now());
        self.register.write(RegisterWrite { tenant, at, changes, record: None }).await
    }

    async fn send(&self, spans: &[TraceSpan], is_there: bool, shutdown: &CancellationToken) -> BatchOutcome {
        let body = span::request(spans, &self.options.service, self.options.version).to_string().into_bytes();
        let mut pause = PAUSE;
        for left in (0..if is_there { TRIES } else { 1 }).rev() {
            let again = match self.http_sender.send(self.export_request(body.clone())).await {
                SendOutcome::Answered { status: 200..=299, text, .. } => {
                    self.note_rejected(&text);
                    return BatchOutcome::Accepted;
                }
                SendOutcome::Answered { status: status @ (408 | 429 | 502 | 503 | 504), retry_after, .. } => {
                    let asked = retry_after.map(|asked| Duration::from_millis(asked.0));
                    Ok((format!("it answered {status}"), asked))
                }
                SendOutcome::Answered { status, text, .. } => Err(format!("it answered {status}: {text}")),
                SendOutcome::Failed { why } => Ok((why, None)),
                SendOutcome::Refused { why } => Err(why),
            };
            let (why, asked) = match again {
                Ok(again) if left > 0 => again,
                Ok((why, _)) | Err(why) => {
                    tracing::warn!(spans = spans.len(), "the collector did not accept spans: {why}");
                    return BatchOutcome::Dropped;
                }
            };
            tracing::debug!("retrying the collector: {why}");
            tokio::select! {
                () = shutdown.cancelled() => return BatchOutcome::Later,
                () = tokio::time::sleep(asked.unwrap_or(pause).min(PAUSE_MAX)) => {}
            }
            pause *= 2;
        }
        BatchOutcome::Dropped
    }

    fn export_request(&self, body: Vec<u8>) -> OutgoingRequest {
        let endpoint = self.options.endpoint.trim_end_matches('/');
        let url = match endpoint.ends_with("/v1/traces") {
            true => endpoint.to_owned(),
            false => format!("{endpoint}/v1/traces"),
        };
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.extend(self.options.headers.iter().cloned());
        OutgoingRequest { url, headers, body, timeout: TIMEOUT }
    }

    /// Counts spans of an accepted batch that the collector rejected.
    fn note_rejected(&self, text: &str) {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        let rejected = &answer["partialSuccess"]["rejectedSpans"];
        // OTLP/JSON writes 64-bit numbers as strings.
        let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0);
        if rejected > 0 {
            self.metrics.spans_dropped(rejected);
            tracing::warn!(spans = rejected, "the collector rejected some spans");
        }
    }
}

impl std::fmt::Debug for TraceExporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceExporter").field("endpoint", &self.options.endpoint).finish_non_exhaustive()
    }
}
