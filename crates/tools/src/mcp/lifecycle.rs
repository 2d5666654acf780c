//! The lifecycle of one server: started on demand, paused after a failure, started again.

use super::McpLimits;
use super::connection::{ConnectionEnd, ConnectionSettings, McpConnection, ProtocolEra};
use crate::connector::ConnectorState;
use rutter_core::time::Millis;
use rutter_core::tool::{FailureCategory, ToolFailure};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(super) struct ServerLifecycle {
    name: String,
    recipe: ConnectionSettings,
    inner: Mutex<LifecycleState>,
    /// Counts up whenever a start has ended.
    turns: watch::Sender<u64>,
    /// Cancels a start in progress.
    closed: CancellationToken,
}

struct LifecycleState {
    stage: LifecycleStage,
    /// Detected once; a restarted server gets the right handshake at once.
    era: Option<ProtocolEra>,
    /// How often in a row it failed to start, or died soon after.
    failures: u32,
    /// Numbers the connections.
    starts: u64,
}

enum LifecycleStage {
    Idle,
    Starting,
    Ready(Arc<McpConnection>),
    Down { ended: ConnectionEnd, until: Instant },
    Closed,
}

/// A server that ran for this long has started successfully.
const YOUNG: Duration = Duration::from_secs(30);

impl ServerLifecycle {
    pub(super) fn new(name: &str, recipe: ConnectionSettings) -> ServerLifecycle {
        let inner = LifecycleState { stage: LifecycleStage::Idle, era: None, failures: 0, starts: 0 };
        ServerLifecycle {
            name: name.to_owned(),
            recipe,
            inner: Mutex::new(inner),
            turns: watch::Sender::new(0),
            closed: CancellationToken::new(),
        }
    }

    pub(super) fn limits(&self) -> &McpLimits {
        &self.recipe.limits
    }

    /// The connection, made first if there is none. Fails at once during the pause after a failure.
    pub(super) async fn connection(self: &Arc<ServerLifecycle>) -> Result<Arc<McpConnection>, ToolFailure> {
        let mut turns = self.turns.subscribe();
        loop {
            turns.mark_unchanged();
            if let Some(found) = self.look() {
                return found;
            }
            // The sender lives in `self`, so this cannot fail.
            _ = turns.changed().await;
        }
    }

    pub(super) fn state(&self) -> ConnectorState {
        let mut inner = self.lock();
        self.notice_death(&mut inner);
        match &inner.stage {
            LifecycleStage::Idle => ConnectorState::Idle,
            LifecycleStage::Starting => ConnectorState::Starting,
            LifecycleStage::Ready(_) => ConnectorState::Ready,
            LifecycleStage::Down { ended, .. } => {
                ConnectorState::Down { reason: ended.failure.message.clone(), stderr: ended.stderr.clone() }
            }
            LifecycleStage::Closed => ConnectorState::Down { reason: "it was closed".to_owned(), stderr: Vec::new() },
        }
    }

    /// The pause after a failure, in which it takes no calls. A server that does not accept us will not do so a little later
    /// either: its calls fail at once.
    pub(super) fn pause(&self) -> Option<ToolFailure> {
        let mut inner = self.lock();
        self.notice_death(&mut inner);
        self.refusal(&inner.stage).filter(|failure| failure.category == FailureCategory::Unavailable)
    }

    /// After something stayed without an answer: a child that does not answer a ping either is restarted.
    pub(super) fn ping(&self) {
        if let LifecycleStage::Ready(connection) = &self.lock().stage {
            connection.ping(&self.name, self.recipe.limits.ping);
        }
    }

    /// Whether the present process or connection announces changes of its tools.
    pub(super) fn announces_changes(&self) -> bool {
        match &self.lock().stage {
            LifecycleStage::Ready(connection) => connection.announces.load(Ordering::Relaxed),
            _ => false,
        }
    }

    pub(super) fn noise(&self) -> u64 {
        match &self.lock().stage {
            LifecycleStage::Ready(connection) => connection.wire.noise(),
            _ => 0,
        }
    }

    /// Closes the server permanently: later requests are refused.
    pub(super) async fn close(&self) {
        let stage = std::mem::replace(&mut self.lock().stage, LifecycleStage::Closed);
        self.closed.cancel();
        self.turns.send_modify(|turn| *turn += 1);
        if let LifecycleStage::Ready(connection) = stage {
            connection.close().await;
        }
    }

    /// The connection or a failure, if known at once; `None` while a start is in progress.
    fn look(self: &Arc<ServerLifecycle>) -> Option<Result<Arc<McpConnection>, ToolFailure>> {
        let mut inner = self.lock();
        self.notice_death(&mut inner);
        match &inner.stage {
            stage if let Some(failure) = self.refusal(stage) => Some(Err(failure)),
            LifecycleStage::Ready(connection) => Some(Ok(connection.clone())),
            LifecycleStage::Closed => Some(Err(self.failure("it was closed"))),
            LifecycleStage::Starting => None,
            LifecycleStage::Idle | LifecycleStage::Down { .. } => {
                inner.stage = LifecycleStage::Starting;
                // The caller may stop waiting; the next one finds the server started.
                tokio::spawn(self.clone().start(inner.era));
                None
            }
        }
    }

    /// Why there is no connection during the pause after a failure, and how long that lasts.
    fn refusal(&self, stage: &LifecycleStage) -> Option<ToolFailure> {
        let (category, reason, rest) = match stage {
            LifecycleStage::Ready(connection) if connection.is_lost() => {
                (FailureCategory::Unavailable, "its connection was just lost", self.recipe.limits.pause_first)
            }
            LifecycleStage::Down { ended, until } => {
                let rest = until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())?;
                (refused_as(ended.failure.category), ended.failure.message.as_str(), rest)
            }
            LifecycleStage::Idle | LifecycleStage::Starting | LifecycleStage::Ready(_) | LifecycleStage::Closed => {
                return None;
            }
        };
        Some(ToolFailure { category, retry_after: Some(millis(rest)), ..self.failure(reason) })
    }

    async fn start(self: Arc<ServerLifecycle>, era: Option<ProtocolEra>) {
        let made = tokio::select! {
            made = McpConnection::make(&self.recipe, era) => Some(made),
            _ = self.closed.cancelled() => None,
        };
        let mut inner = self.lock();
        if let (Some(made), LifecycleStage::Starting) = (made, &inner.stage) {
            match made {
                Ok(mut connection) => {
                    inner.starts += 1;
                    connection.number = inner.starts;
                    inner.era = Some(connection.era);
                    inner.stage = LifecycleStage::Ready(Arc::new(connection));
                    if inner.starts > 1 {
                        self.recipe.changes.send_modify(|count| *count += 1);
                    }
                }
                Err(ended) => {
                    tracing::warn!(server = self.name, error = ended.failure.message, "an MCP server did not start");
                    // It may have been replaced by one of the other era.
                    inner.era = None;
                    inner.failures += 1;
                    inner.stage = self.down(ended, inner.failures);
                }
            }
        }
        drop(inner);
        self.turns.send_modify(|turn| *turn += 1);
    }

    fn notice_death(&self, inner: &mut LifecycleState) {
        let LifecycleStage::Ready(connection) = &inner.stage else { return };
        let Some(ended) = connection.ended() else { return };
        tracing::warn!(server = self.name, error = ended.failure.message, "an MCP server was lost");
        inner.failures = if connection.born.elapsed() < YOUNG { inner.failures + 1 } else { 1 };
        inner.stage = self.down(ended, inner.failures);
    }

    fn down(&self, ended: ConnectionEnd, failures: u32) -> LifecycleStage {
        let McpLimits { pause_first, pause_max, .. } = self.recipe.limits;
        let doublings = failures.saturating_sub(1).min(16);
        let until = ended.at + pause_first.saturating_mul(1 << doublings).min(pause_max);
        LifecycleStage::Down { ended, until }
    }

    fn failure(&self, reason: &str) -> ToolFailure {
        ToolFailure::new(FailureCategory::Unavailable, format!("server `{}` is not available: {reason}", self.name))
    }

    fn lock(&self) -> MutexGuard<'_, LifecycleState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The category of a call that is refused because of it: nothing was tried for this call.
fn refused_as(category: FailureCategory) -> FailureCategory {
    match category {
        FailureCategory::Unauthorized => FailureCategory::Unauthorized,
        _ => FailureCategory::Unavailable,
    }
}

fn millis(span: Duration) -> Millis {
    Millis(span.as_millis().try_into().unwrap_or(u64::MAX))
}
