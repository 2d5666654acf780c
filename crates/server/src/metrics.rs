//! What a monitoring system reads at `/metrics`: the Prometheus text format, version 0.0.4.
//!
//! Counters count from the start of the process: [`Metrics::run`] hears what the engine records, and the surfaces tell
//! of themselves. Everything that has a present value is asked for when somebody reads. No label names an execution,
//! and each label has a bounded number of values.

mod counts;
mod scrape;
pub mod text;

use counts::Counts;
use rutter_core::time::Timestamp;
use rutter_engine::Engine;
pub use scrape::Sources;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// What the body of an answer is.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug)]
pub struct Metrics {
    version: &'static str,
    started_at: Timestamp,
    counts: Mutex<Counts>,
    readers: AtomicU64,
    spans_sent: AtomicU64,
    spans_dropped: AtomicU64,
}

/// What became of one try to deliver something to a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivered {
    Delivered,
    /// It will be tried again.
    Failed,
    /// It will not.
    Dead,
}

impl Delivered {
    const ALL: [Delivered; 3] = [Delivered::Delivered, Delivered::Failed, Delivered::Dead];

    fn as_str(self) -> &'static str {
        match self {
            Delivered::Delivered => "delivered",
            Delivered::Failed => "failed",
            Delivered::Dead => "dead",
        }
    }
}

impl Metrics {
    pub fn new(version: &'static str, now: Timestamp) -> Arc<Metrics> {
        Arc::new(Metrics {
            version,
            started_at: now,
            counts: Mutex::default(),
            readers: AtomicU64::new(0),
            spans_sent: AtomicU64::new(0),
            spans_dropped: AtomicU64::new(0),
        })
    }

    /// Hears what the engine records until it is asked to end.
    pub async fn run(self: Arc<Metrics>, engine: Engine, shutdown: CancellationToken) {
        let mut happenings = engine.listen();
        drop(engine);
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                heard = happenings.recv() => match heard {
                    Ok(happening) => self.counts().hear(&happening),
                    Err(RecvError::Lagged(missed)) => self.counts().missed += missed,
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    /// A request was answered. `route` is the pattern of a route, never the path that was asked for.
    pub fn request(&self, route: &'static str, code: u16) {
        *self.counts().requests.entry((route, code)).or_default() += 1;
    }

    pub fn delivery(&self, delivered: Delivered) {
        *self.counts().deliveries.entry(delivered).or_default() += 1;
    }

    /// Somebody follows a stream of events until this is dropped.
    pub fn reader(self: &Arc<Metrics>) -> Reader {
        self.readers.fetch_add(1, Ordering::Relaxed);
        Reader(Arc::clone(self))
    }

    pub(crate) fn spans_sent(&self, spans: u64) {
        self.spans_sent.fetch_add(spans, Ordering::Relaxed);
    }

    pub(crate) fn spans_dropped(&self, spans: u64) {
        self.spans_dropped.fetch_add(spans, Ordering::Relaxed);
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who follows a stream.
#[derive(Debug)]
pub struct Reader(Arc<Metrics>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}
