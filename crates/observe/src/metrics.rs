//! Metrics for `/metrics`: the Prometheus text format, version 0.0.4.
//!
//! Counters start at zero with the process: [`ServerMetrics::run`] subscribes to the engine's updates, and the API, MCP
//! and webhook code report their own. Gauges are read at each scrape. No label names an execution, and each label has a
//! bounded number of values.

mod counts;
mod scrape;
pub mod text;

use counts::MetricCounts;
use rutter_core::time::Timestamp;
use rutter_engine::Engine;
pub use scrape::MetricSources;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// The content type of the response.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug)]
pub struct ServerMetrics {
    version: &'static str,
    started_at: Timestamp,
    counts: Mutex<MetricCounts>,
    readers: AtomicU64,
    spans_sent: AtomicU64,
    spans_dropped: AtomicU64,
}

/// The result of one attempt to deliver to a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeliveryOutcome {
    Delivered,
    /// It will be retried.
    Failed,
    /// It will not be retried.
    Dead,
}

impl DeliveryOutcome {
    const ALL: [DeliveryOutcome; 3] = [DeliveryOutcome::Delivered, DeliveryOutcome::Failed, DeliveryOutcome::Dead];

    fn as_str(self) -> &'static str {
        match self {
            DeliveryOutcome::Delivered => "delivered",
            DeliveryOutcome::Failed => "failed",
            DeliveryOutcome::Dead => "dead",
        }
    }
}

impl ServerMetrics {
    pub fn new(version: &'static str, now: Timestamp) -> Arc<ServerMetrics> {
        Arc::new(ServerMetrics {
            version,
            started_at: now,
            counts: Mutex::default(),
            readers: AtomicU64::new(0),
            spans_sent: AtomicU64::new(0),
            spans_dropped: AtomicU64::new(0),
        })
    }

    /// Counts the engine's updates until shutdown.
    pub async fn run(self: Arc<ServerMetrics>, engine: Engine, shutdown: CancellationToken) {
        let mut updates = engine.subscribe();
        drop(engine);
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                heard = updates.recv() => match heard {
                    Ok(update) => self.counts().count_update(&update),
                    Err(RecvError::Lagged(missed)) => self.counts().missed += missed,
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    /// Counts a response. `route` is the pattern of a route, never the requested path.
    pub fn request(&self, route: &'static str, code: u16) {
        *self.counts().requests.entry((route, code)).or_default() += 1;
    }

    /// Counts an act that was refused, by the scope it needs.
    pub fn refusal(&self, scope: &'static str) {
        *self.counts().refusals.entry(scope).or_default() += 1;
    }

    pub fn delivery(&self, delivered: DeliveryOutcome) {
        *self.counts().deliveries.entry(delivered).or_default() += 1;
    }

    /// Counts a reader of an event stream until the guard is dropped.
    pub fn reader(self: &Arc<ServerMetrics>) -> StreamReaderGuard {
        self.readers.fetch_add(1, Ordering::Relaxed);
        StreamReaderGuard(Arc::clone(self))
    }

    pub fn spans_sent(&self, spans: u64) {
        self.spans_sent.fetch_add(spans, Ordering::Relaxed);
    }

    pub fn spans_dropped(&self, spans: u64) {
        self.spans_dropped.fetch_add(spans, Ordering::Relaxed);
    }

    fn counts(&self) -> MutexGuard<'_, MetricCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One reader of an event stream.
#[derive(Debug)]
pub struct StreamReaderGuard(Arc<ServerMetrics>);

impl Drop for StreamReaderGuard {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}
