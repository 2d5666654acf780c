//! One server: its connector, its known tools, and the statistics of its calls.

use super::breaker::CircuitBreaker;
use super::definitions::DefinitionStore;
use super::offered_tool::{OfferedTool, OfferedTools};
use crate::config::{CallLimits, ServerSettings};
use crate::connector::{Connector, ServedTool};
use crate::stats::ToolStats;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use rutter_core::id::ToolName;
use rutter_core::limits::DEFINITION_AGE_MAX;
use rutter_core::time::Timestamp;
use rutter_core::tool::{FailureCategory, Safety, ToolFailure};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A server has its own, shorter timeout to start; this one is for connectors that do not enforce it.
const LIST_TIMEOUT: Duration = Duration::from_secs(65);
/// After this the tools are listed again, although the server reported no change.
const AGE_MAX: Duration = Duration::from_secs(600);

pub(crate) struct RegisteredServer {
    pub(crate) name: String,
    pub(crate) common: ServerSettings,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) breaker: Arc<CircuitBreaker>,
    known: Mutex<KnownOffers>,
    changes: watch::Receiver<u64>,
    stats: Mutex<BTreeMap<ToolName, ToolStats>>,
    /// The listing in progress, which concurrent callers share.
    asking: Mutex<Option<SharedListing>>,
    shared: Arc<RegistryShared>,
}

type SharedListing = Shared<BoxFuture<'static, Result<Arc<OfferedTools>, ToolFailure>>>;

/// What all servers share. Listings run as tasks of their own: a caller may go away, and others wait for the same one.
#[derive(Debug, Default)]
pub(crate) struct RegistryShared {
    /// Counts up whenever the tools of any server change.
    pub(crate) edition: AtomicU64,
    /// Where definitions survive a restart, if anywhere.
    pub(crate) definitions: OnceLock<DefinitionStore>,
    pub(crate) questions: TaskTracker,
    pub(crate) closing: CancellationToken,
}

#[derive(Default)]
struct KnownOffers {
    offers: Option<Arc<OfferedTools>>,
    /// The count of changes when the server was asked, and when that was.
    change: u64,
    /// The process or connection that was asked.
    connection: u64,
    asked: Option<Instant>,
    failure: Option<(Timestamp, ToolFailure)>,
}

pub(crate) enum Freshness {
    Fresh(Arc<OfferedTools>),
    /// Good enough, but to be refreshed.
    Aging(Arc<OfferedTools>),
    Unknown,
}

impl RegisteredServer {
    pub(crate) fn new(
        name: String,
        connector: Arc<dyn Connector>,
        common: ServerSettings,
        limits: &CallLimits,
        office: Arc<RegistryShared>,
    ) -> RegisteredServer {
        RegisteredServer {
            name,
            common,
            changes: connector.changes(),
            connector,
            breaker: Arc::new(CircuitBreaker::new(limits.breaker_failures, limits.breaker_pause)),
            known: Mutex::default(),
            stats: Mutex::default(),
            asking: Mutex::default(),
            shared: office,
        }
    }

    /// Why a call would be refused now, after failures, and for how long.
    pub(crate) fn pause(&self, now: Timestamp) -> Option<ToolFailure> {
        self.breaker.refusal(now).or_else(|| self.connector.pause())
    }

    /// The last known tools, fresh or not.
    pub(crate) fn last_known(&self) -> Option<Arc<OfferedTools>> {
        self.known().offers.clone()
    }

    pub(crate) fn offer(&self, tool: &ToolName) -> Option<Arc<OfferedTool>> {
        self.known().offers.as_ref()?.by_name.get(tool).cloned()
    }

    /// The tool as this process listed it, not as it was remembered.
    pub(crate) fn verified_offer(&self, tool: &ToolName) -> Option<Arc<OfferedTool>> {
        let known = self.known();
        known.asked?;
        known.offers.as_ref()?.by_name.get(tool).cloned()
    }

    /// Takes definitions of an earlier process as last known.
    pub(crate) fn restore(&self, served: &[ServedTool]) {
        let offers = OfferedTools::read(&self.name, &self.common, served, &OfferedTools::default());
        self.known().offers = Some(Arc::new(offers));
    }

    /// Whether what is known can be relied on for a call to this process or connection now. A tool that only reads does
    /// no harm by a definition that changed a moment ago.
    pub(crate) fn is_current(&self, connection: u64, tool: &ToolName) -> bool {
        let known = self.known();
        let (Some(offers), Some(asked)) = (&known.offers, known.asked) else { return false };
        let only_reads = offers.by_name.get(tool).is_some_and(|offer| offer.tool.safety == Safety::ReadOnly);
        known.change == *self.changes.borrow()
            && known.connection == connection
            && (only_reads || self.is_reliable(asked.elapsed()))
    }

    /// Whether the tools of a list of this age are what the server offers, unless it has said otherwise.
    fn is_reliable(&self, age: Duration) -> bool {
        let is_young = age < Duration::from_millis(DEFINITION_AGE_MAX.0);
        is_young || (self.connector.announces_changes() && age < AGE_MAX)
    }

    /// What the server offers, if that need not be asked again.
    pub(crate) fn reliable(&self) -> Option<Arc<OfferedTools>> {
        let known = self.known();
        let is_reliable = self.is_reliable(known.asked?.elapsed()) && known.change == *self.changes.borrow();
        known.offers.clone().filter(|_| is_reliable)
    }

    /// Why the last listing failed, if it did.
    pub(crate) fn failure(&self) -> Option<(Timestamp, ToolFailure)> {
        self.known().failure.clone()
    }

    /// Notes that it does not answer, until a listing ends.
    pub(crate) fn note_failure(&self, at: Timestamp, failure: &ToolFailure) {
        self.known().failure.get_or_insert_with(|| (at, failure.clone()));
    }

    pub(crate) fn freshness(&self) -> Freshness {
        let known = self.known();
        match (&known.offers, known.asked) {
            (Some(offers), Some(asked)) if known.change == *self.changes.borrow() => match asked.elapsed() < AGE_MAX {
                true => Freshness::Fresh(Arc::clone(offers)),
                false => Freshness::Aging(Arc::clone(offers)),
            },
            _ => Freshness::Unknown,
        }
    }

    /// Lists the tools: joins the listing in progress, or begins a new one.
    pub(crate) async fn ask(self: &Arc<Self>, now: Timestamp) -> Result<Arc<OfferedTools>, ToolFailure> {
        let asking = async {
            let answer = self.asking(now).await?;
            match self.freshness() {
                // The tools have changed since the listing began. A third listing would be no better than the second.
                Freshness::Unknown => self.asking(now).await,
                Freshness::Fresh(_) | Freshness::Aging(_) => Ok(answer),
            }
        };
        tokio::time::timeout(LIST_TIMEOUT, asking).await.unwrap_or_else(|_| Err(late()))
    }

    pub(crate) fn asking(self: &Arc<Self>, now: Timestamp) -> SharedListing {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asking) = asking.as_ref().filter(|asking| asking.peek().is_none()) {
            return asking.clone();
        }
        let (server, closing) = (Arc::clone(self), self.shared.closing.clone());
        let question = self.shared.questions.spawn(async move {
            let asking = tokio::time::timeout(LIST_TIMEOUT, server.ask_now());
            let answer = match closing.run_until_cancelled(asking).await {
                Some(answer) => answer.unwrap_or_else(|_| Err(late())),
                None => Err(ToolFailure::new(FailureCategory::Cancelled, "the servers are shutting down")),
            };
            server.known().failure = answer.as_ref().err().map(|failure| (now, failure.clone()));
            answer
        });
        let stopped = |_| Err(ToolFailure::new(FailureCategory::Internal, "listing the tools was interrupted"));
        let question = question.map(move |answer| answer.unwrap_or_else(stopped)).boxed().shared();
        *asking = Some(question.clone());
        question
    }

    async fn ask_now(&self) -> Result<Arc<OfferedTools>, ToolFailure> {
        // Whatever changes from here on is noticed at the next use.
        let change = *self.changes.borrow();
        // If it is replaced while it is asked, the next call finds another number, and asks again.
        let connection = self.connector.ready().await?;
        let listing = AssertUnwindSafe(async { self.connector.list().await }).catch_unwind();
        let panicked =
            |_| Err(ToolFailure::new(FailureCategory::Internal, "the connector failed while listing its tools"));
        let served = listing.await.unwrap_or_else(panicked)?;
        let before = self.last_known();
        let (name, common, old) = (self.name.clone(), self.common.clone(), before.clone().unwrap_or_default());
        // Thousands of schemas take a while to compile; other calls go on meanwhile.
        let reading = tokio::task::spawn_blocking(move || {
            let offers = OfferedTools::read(&name, &common, &served, &old);
            (offers, served)
        });
        let stopped = |_| ToolFailure::new(FailureCategory::Internal, "reading the definitions failed");
        let (offers, served) = reading.await.map_err(stopped)?;
        let offers = Arc::new(offers);
        {
            let mut known = self.known();
            known.offers = Some(Arc::clone(&offers));
            (known.change, known.connection, known.asked) = (change, connection, Some(Instant::now()));
        }
        self.shared.edition.fetch_add(1, Ordering::Release);
        if let Some(definitions) = self.shared.definitions.get()
            && let Err(error) = definitions.update(&self.name, &served, before.as_deref(), &offers).await
        {
            tracing::warn!(server = self.name, %error, "its definitions could not be stored");
        }
        Ok(offers)
    }

    pub(crate) fn stats(&self) -> MutexGuard<'_, BTreeMap<ToolName, ToolStats>> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, KnownOffers> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn late() -> ToolFailure {
    let message = format!("the server did not list its tools within {} s", LIST_TIMEOUT.as_secs());
    ToolFailure::new(FailureCategory::Timeout, message)
}
