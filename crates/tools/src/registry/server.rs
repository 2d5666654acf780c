//! One server: its connector, what it is known to offer, and how its calls went.

use super::breaker::Breaker;
use super::offer::{Offer, Offers};
use crate::config::{Common, Limits};
use crate::connector::Connector;
use crate::stats::ToolStats;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use rutter_core::id::ToolName;
use rutter_core::time::Timestamp;
use rutter_core::tool::{Category, Failure};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A server has its own, shorter limit to start in; this one is for those that do not keep it.
const LIST_TIMEOUT: Duration = Duration::from_secs(65);
/// After this the server is asked again, although it did not say that anything changed.
const AGE_MAX: Duration = Duration::from_secs(600);

pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) common: Common,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) breaker: Breaker,
    known: Mutex<Known>,
    changes: watch::Receiver<u64>,
    stats: Mutex<BTreeMap<ToolName, ToolStats>>,
    /// The question under way, so that the server is asked once however many want to know.
    asking: Mutex<Option<Asking>>,
    office: Arc<Office>,
}

type Asking = Shared<BoxFuture<'static, Result<Arc<Offers>, Failure>>>;

/// What all servers share. Questions run here by themselves: whoever asked may go away or be slow to hear the answer,
/// and others wait for the same one.
#[derive(Debug, Default)]
pub(crate) struct Office {
    /// Counts up whenever the tools of any server change.
    pub(crate) edition: AtomicU64,
    pub(crate) questions: TaskTracker,
    pub(crate) closing: CancellationToken,
}

#[derive(Default)]
struct Known {
    offers: Option<Arc<Offers>>,
    /// The count of changes when the server was asked, and when that was.
    change: u64,
    asked: Option<Instant>,
    failure: Option<(Timestamp, Failure)>,
}

pub(crate) enum Freshness {
    Fresh(Arc<Offers>),
    /// Good enough, but somebody should ask again.
    Aging(Arc<Offers>),
    Unknown,
}

impl Server {
    pub(crate) fn new(
        name: String,
        connector: Arc<dyn Connector>,
        common: Common,
        limits: &Limits,
        office: Arc<Office>,
    ) -> Server {
        Server {
            name,
            common,
            changes: connector.changes(),
            connector,
            breaker: Breaker::new(limits.breaker_failures, limits.breaker_pause),
            known: Mutex::default(),
            stats: Mutex::default(),
            asking: Mutex::default(),
            office,
        }
    }

    /// What it offers as far as anybody knows, fresh or not.
    pub(crate) fn last_known(&self) -> Option<Arc<Offers>> {
        self.known().offers.clone()
    }

    pub(crate) fn offer(&self, tool: &ToolName) -> Option<Arc<Offer>> {
        self.known().offers.as_ref()?.by_name.get(tool).cloned()
    }

    /// Why it could not say what it offers, when last asked.
    pub(crate) fn failure(&self) -> Option<(Timestamp, Failure)> {
        self.known().failure.clone()
    }

    pub(crate) fn freshness(&self) -> Freshness {
        let known = self.known();
        match (&known.offers, known.asked) {
            (Some(offers), Some(asked)) if known.change == *self.changes.borrow() => {
                match asked.elapsed() < AGE_MAX {
                    true => Freshness::Fresh(Arc::clone(offers)),
                    false => Freshness::Aging(Arc::clone(offers)),
                }
            }
            _ => Freshness::Unknown,
        }
    }

    /// What it says now that it offers, to the question that is under way already or to a new one.
    pub(crate) async fn ask(self: &Arc<Self>, now: Timestamp) -> Result<Arc<Offers>, Failure> {
        let asking = async {
            let answer = self.asking(now).await?;
            match self.freshness() {
                // It has changed since the question was put. A third answer would be no better than the second.
                Freshness::Unknown => self.asking(now).await,
                Freshness::Fresh(_) | Freshness::Aging(_) => Ok(answer),
            }
        };
        tokio::time::timeout(LIST_TIMEOUT, asking).await.unwrap_or_else(|_| Err(late()))
    }

    pub(crate) fn asking(self: &Arc<Self>, now: Timestamp) -> Asking {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asking) = asking.as_ref().filter(|asking| asking.peek().is_none()) {
            return asking.clone();
        }
        let (server, closing) = (Arc::clone(self), self.office.closing.clone());
        let question = self.office.questions.spawn(async move {
            let asking = tokio::time::timeout(LIST_TIMEOUT, server.ask_now());
            let answer = match closing.run_until_cancelled(asking).await {
                Some(answer) => answer.unwrap_or_else(|_| Err(late())),
                None => Err(Failure::new(Category::Cancelled, "the servers are being closed")),
            };
            server.known().failure = answer.as_ref().err().map(|failure| (now, failure.clone()));
            answer
        });
        let stopped =
            |_| Err(Failure::new(Category::Internal, "the question which tools there are was lost"));
        let question = question.map(move |answer| answer.unwrap_or_else(stopped)).boxed().shared();
        *asking = Some(question.clone());
        question
    }

    async fn ask_now(&self) -> Result<Arc<Offers>, Failure> {
        // Whatever changes from here on is noticed at the next use.
        let change = *self.changes.borrow();
        let listing = AssertUnwindSafe(async { self.connector.list().await }).catch_unwind();
        let panicked =
            |_| Err(Failure::new(Category::Internal, "the connector failed while listing its tools"));
        let served = listing.await.unwrap_or_else(panicked)?;
        let before = self.last_known().unwrap_or_default();
        let (name, common) = (self.name.clone(), self.common.clone());
        // Thousands of schemas take a while to compile; other calls go on meanwhile.
        let reading = tokio::task::spawn_blocking(move || Offers::read(&name, &common, &served, &before));
        let stopped = |_| Failure::new(Category::Internal, "reading the definitions failed");
        let offers = Arc::new(reading.await.map_err(stopped)?);
        let mut known = self.known();
        known.offers = Some(Arc::clone(&offers));
        (known.change, known.asked) = (change, Some(Instant::now()));
        self.office.edition.fetch_add(1, Ordering::Release);
        Ok(offers)
    }

    pub(crate) fn stats(&self) -> MutexGuard<'_, BTreeMap<ToolName, ToolStats>> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn late() -> Failure {
    let message = format!("the server did not say within {} s which tools it has", LIST_TIMEOUT.as_secs());
    Failure::new(Category::Timeout, message)
}
