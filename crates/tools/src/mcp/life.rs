//! The life of one server: started when it is needed, left alone for a while after it failed, started again.

use super::Patience;
use super::connection::{Connection, Ended, Era, Recipe};
use crate::connector::State;
use rutter_core::time::Millis;
use rutter_core::tool::{Category, Failure};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(super) struct Life {
    name: String,
    recipe: Recipe,
    inner: Mutex<Inner>,
    /// Counts up whenever a start has come to its end.
    turns: watch::Sender<u64>,
    /// Ends a start that is under way.
    closed: CancellationToken,
}

struct Inner {
    stage: Stage,
    /// Found out once; a server that was started before is greeted the right way at once.
    era: Option<Era>,
    /// How often in a row it failed to start, or died young.
    failures: u32,
    was_started: bool,
}

enum Stage {
    Idle,
    Starting,
    Ready(Arc<Connection>),
    Down { ended: Ended, until: Instant },
    Closed,
}

/// A server that lived for this long did not die of being started.
const YOUNG: Duration = Duration::from_secs(30);

impl Life {
    pub(super) fn new(name: &str, recipe: Recipe) -> Life {
        let inner = Inner { stage: Stage::Idle, era: None, failures: 0, was_started: false };
        Life {
            name: name.to_owned(),
            recipe,
            inner: Mutex::new(inner),
            turns: watch::Sender::new(0),
            closed: CancellationToken::new(),
        }
    }

    pub(super) fn patience(&self) -> &Patience {
        &self.recipe.patience
    }

    /// The connection, made first where there is none. Fails at once while the server is left alone.
    pub(super) async fn connection(self: &Arc<Life>) -> Result<Arc<Connection>, Failure> {
        let mut turns = self.turns.subscribe();
        loop {
            turns.mark_unchanged();
            if let Some(found) = self.look() {
                return found;
            }
            // The sender lives in `self`, so this can only be a turn.
            _ = turns.changed().await;
        }
    }

    pub(super) fn state(&self) -> State {
        let mut inner = self.lock();
        self.notice_death(&mut inner);
        match &inner.stage {
            Stage::Idle => State::Idle,
            Stage::Starting => State::Starting,
            Stage::Ready(_) => State::Ready,
            Stage::Down { ended, .. } => {
                State::Down { reason: ended.failure.message.clone(), stderr: ended.stderr.clone() }
            }
            Stage::Closed => State::Down { reason: "it was closed".to_owned(), stderr: Vec::new() },
        }
    }

    pub(super) fn noise(&self) -> u64 {
        match &self.lock().stage {
            Stage::Ready(connection) => connection.wire.noise(),
            _ => 0,
        }
    }

    /// For good: what is asked afterwards is refused.
    pub(super) async fn close(&self) {
        let stage = std::mem::replace(&mut self.lock().stage, Stage::Closed);
        self.closed.cancel();
        self.turns.send_modify(|turn| *turn += 1);
        if let Stage::Ready(connection) = stage {
            connection.close().await;
        }
    }

    /// What can be said at once; `None` when a start is under way.
    fn look(self: &Arc<Life>) -> Option<Result<Arc<Connection>, Failure>> {
        let mut inner = self.lock();
        self.notice_death(&mut inner);
        match &inner.stage {
            Stage::Ready(connection) if connection.is_lost() => {
                let mut failure = self.failure("its connection was just lost");
                failure.retry_after = Some(millis(self.recipe.patience.pause_first));
                Some(Err(failure))
            }
            Stage::Ready(connection) => Some(Ok(connection.clone())),
            Stage::Down { ended, until } if Instant::now() < *until => {
                let mut failure = self.failure(&ended.failure.message);
                failure.category = refusal(ended.failure.category);
                failure.retry_after = Some(millis(until.duration_since(Instant::now())));
                Some(Err(failure))
            }
            Stage::Closed => Some(Err(self.failure("it was closed"))),
            Stage::Starting => None,
            Stage::Idle | Stage::Down { .. } => {
                inner.stage = Stage::Starting;
                // Whoever asked may stop waiting; the next one finds the server started.
                tokio::spawn(self.clone().start(inner.era));
                None
            }
        }
    }

    async fn start(self: Arc<Life>, era: Option<Era>) {
        let made = tokio::select! {
            made = Connection::make(&self.recipe, era) => Some(made),
            _ = self.closed.cancelled() => None,
        };
        let mut inner = self.lock();
        if let (Some(made), Stage::Starting) = (made, &inner.stage) {
            match made {
                Ok(connection) => {
                    inner.era = Some(connection.era);
                    inner.stage = Stage::Ready(Arc::new(connection));
                    if std::mem::replace(&mut inner.was_started, true) {
                        self.recipe.changes.send_modify(|count| *count += 1);
                    }
                }
                Err(ended) => {
                    tracing::warn!(
                        server = self.name,
                        error = ended.failure.message,
                        "an MCP server did not start"
                    );
                    // It may have been exchanged for one of the other era.
                    inner.era = None;
                    inner.failures += 1;
                    inner.stage = self.down(ended, inner.failures);
                }
            }
        }
        drop(inner);
        self.turns.send_modify(|turn| *turn += 1);
    }

    fn notice_death(&self, inner: &mut Inner) {
        let Stage::Ready(connection) = &inner.stage else { return };
        let Some(ended) = connection.ended() else { return };
        tracing::warn!(server = self.name, error = ended.failure.message, "an MCP server is gone");
        inner.failures = if connection.born.elapsed() < YOUNG { inner.failures + 1 } else { 1 };
        inner.stage = self.down(ended, inner.failures);
    }

    fn down(&self, ended: Ended, failures: u32) -> Stage {
        let Patience { pause_first, pause_max, .. } = self.recipe.patience;
        let doublings = failures.saturating_sub(1).min(16);
        let until = ended.at + pause_first.saturating_mul(1 << doublings).min(pause_max);
        Stage::Down { ended, until }
    }

    fn failure(&self, reason: &str) -> Failure {
        Failure::new(Category::Unavailable, format!("server `{}` is not available: {reason}", self.name))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The category a call gets that is refused because of it: nothing was tried on its behalf.
fn refusal(category: Category) -> Category {
    match category {
        Category::Unauthorized => Category::Unauthorized,
        _ => Category::Unavailable,
    }
}

fn millis(span: Duration) -> Millis {
    Millis(span.as_millis().try_into().unwrap_or(u64::MAX))
}
