//! One connection to a server: how it is made in either era of the protocol, and how it ends.

use super::listener::{Calls, Listener};
use super::outcome::cut;
use super::process::{Launcher, Process, Tail};
use super::wire::{Pipes, Wire};
use super::{Patience, http};
use crate::config::mcp::Reach;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::{ClientLifecycleMode, ClientServiceExt, Peer, RoleClient};
use rutter_core::tool::{Category, Failure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Which of the two ways to talk a server understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// A handshake first; versions up to 2025-11-25.
    Legacy,
    /// Every request stands alone; from 2026-07-28.
    Modern,
}

/// What it takes to connect.
#[derive(Clone)]
pub(super) struct Recipe {
    pub(super) reach: Reach,
    pub(super) launcher: Launcher,
    pub(super) patience: Patience,
    pub(super) changes: Arc<watch::Sender<u64>>,
}

pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) era: Era,
    pub(super) calls: Arc<Calls>,
    /// For a connection over HTTP it knows nothing.
    pub(super) wire: Arc<Wire>,
    pub(super) over_http: bool,
    /// Over HTTP some arguments travel as headers too, and only the list of tools says which.
    pub(super) has_listed: AtomicBool,
    pub(super) born: Instant,
    tail: Tail,
    stop: CancellationToken,
    ended: watch::Receiver<Option<Ended>>,
}

/// How a connection, or an attempt to make one, came to nothing.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) failure: Failure,
    pub(super) stderr: Vec<String>,
    pub(super) at: Instant,
}

impl Ended {
    fn now(failure: Failure) -> Ended {
        Ended { failure, stderr: Vec::new(), at: Instant::now() }
    }
}

impl Connection {
    /// Connects in the era the server is known to have. One that is not known yet is asked in the modern way first;
    /// a server that dies of that, or stays silent, is started again and greeted in the old way.
    pub(super) async fn make(recipe: &Recipe, known: Option<Era>) -> Result<Connection, Ended> {
        let deadline = Instant::now() + recipe.patience.start;
        match known {
            Some(era) => Connection::attempt(recipe, mode(era), deadline).await.map_err(|(ended, _)| ended),
            None => {
                let probe = Instant::now() + recipe.patience.start / 2;
                match Connection::attempt(recipe, auto(), probe).await {
                    Ok(connection) => Ok(connection),
                    Err((ended, Next::Stop)) => Err(ended),
                    Err((_, Next::Try(era))) => {
                        Connection::attempt(recipe, mode(era), deadline).await.map_err(|(ended, _)| ended)
                    }
                }
            }
        }
    }

    async fn attempt(
        recipe: &Recipe,
        mode: ClientLifecycleMode,
        deadline: Instant,
    ) -> Result<Connection, (Ended, Next)> {
        let (calls, wire) = (Arc::new(Calls::default()), Arc::new(Wire::default()));
        let listener = Listener { calls: calls.clone(), wire: wire.clone(), changes: recipe.changes.clone() };
        let reach = recipe.launcher.filled(&recipe.reach).await;
        let reach = reach.map_err(|failure| (Ended::now(failure), Next::Stop))?;
        let (greeted, process) = match &reach {
            Reach::Child(child) => {
                let (process, stdin, stdout) = recipe.launcher.start(child).map_err(|error| {
                    let message = format!("could not start `{}`: {error}", child.command);
                    let failure = Failure::new(Category::Unavailable, message);
                    (Ended::now(failure), Next::Stop)
                })?;
                let pipes = Pipes::new(stdin, stdout, recipe.patience.line_bytes_max, wire.clone());
                (timeout_at(deadline, listener.serve_with_lifecycle(pipes, mode)).await, Some(process))
            }
            Reach::Http(address) => {
                let transport = http::transport(address, recipe.patience.line_bytes_max)
                    .map_err(|failure| (Ended::now(failure), Next::Stop))?;
                (timeout_at(deadline, listener.serve_with_lifecycle(transport, mode)).await, None)
            }
        };
        match greeted {
            Ok(Ok(running)) => Ok(Connection::keep(recipe, running, process, calls, wire)),
            Ok(Err(error)) => {
                let next = next(&error);
                Err((give_up(recipe, process, &wire, failure(&error)).await, next))
            }
            Err(_) => {
                let failure =
                    Failure::new(Category::Timeout, "it did not answer in time when it was greeted");
                Err((give_up(recipe, process, &wire, failure).await, Next::Try(Era::Legacy)))
            }
        }
    }

    fn keep(
        recipe: &Recipe,
        running: RunningService<RoleClient, Listener>,
        process: Option<Process>,
        calls: Arc<Calls>,
        wire: Arc<Wire>,
    ) -> Connection {
        let peer = running.peer().clone();
        let info = peer.peer_info();
        let modern = info.as_ref().is_some_and(|info| !info.protocol_version.has_initialize());
        let tools = info.as_ref().and_then(|info| info.capabilities.tools.as_ref());
        let tells_changes = tools.and_then(|tools| tools.list_changed) == Some(true);
        let stop = CancellationToken::new();
        let (ended_sender, ended) = watch::channel(None);
        let connection = Connection {
            peer: peer.clone(),
            era: if modern { Era::Modern } else { Era::Legacy },
            calls,
            wire: wire.clone(),
            over_http: process.is_none(),
            has_listed: AtomicBool::new(false),
            born: Instant::now(),
            tail: process.as_ref().map(|process| process.tail.clone()).unwrap_or_default(),
            stop: stop.clone(),
            ended,
        };
        let (changes, grace) = (recipe.changes.clone(), recipe.patience.kill);
        // Owned by the connection: it ends when `stop` is cancelled, and says so in `ended`.
        tokio::spawn(async move {
            let abort = running.cancellation_token();
            let mut over = std::pin::pin!(running.waiting());
            let (is_over, reason) = tokio::select! {
                _ = &mut over => (true, "the connection was lost"),
                _ = stop.cancelled() => (false, "the connection was closed"),
                _ = exited(process.as_ref()) => (false, "the connection was lost"),
                never = follow_changes(peer, modern && tells_changes, &changes) => match never {},
            };
            if !is_over {
                wire.lost.cancel();
                abort.cancel();
                _ = over.await;
            }
            let failure = Failure::new(Category::Unavailable, reason);
            ended_sender.send_replace(Some(end(process, &wire, failure, grace).await));
        });
        connection
    }

    /// Why it ended, if it did.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    /// Whether a call could lack headers that the server insists on.
    pub(super) fn must_list(&self) -> bool {
        self.over_http && self.era == Era::Modern && !self.has_listed.load(Ordering::Relaxed)
    }

    /// Nothing more can be sent, though it may not have ended yet.
    pub(super) fn is_lost(&self) -> bool {
        self.wire.lost.is_cancelled() || self.stop.is_cancelled() || self.peer.is_transport_closed()
    }

    /// Waits a moment for the reason of a loss that was just noticed.
    pub(super) async fn obituary(&self) -> Failure {
        const WAIT: Duration = Duration::from_millis(500);
        let mut ended = self.ended.clone();
        let known = tokio::time::timeout(WAIT, ended.wait_for(Option::is_some)).await;
        if let Ok(Ok(known)) = known
            && let Some(ended) = &*known
        {
            return ended.failure.clone();
        }
        let mut failure = explain(&self.wire, Failure::new(Category::Unavailable, "the connection was lost"));
        failure.message.push_str(&self.tail.last_words());
        failure
    }

    /// Ends it, and comes back when its process is gone.
    pub(super) async fn close(&self) {
        self.discard();
        _ = self.ended.clone().wait_for(Option::is_some).await;
    }

    /// Ends it without waiting.
    pub(super) fn discard(&self) {
        self.stop.cancel();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What to try after an attempt that failed.
enum Next {
    Stop,
    Try(Era),
}

fn auto() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn mode(era: Era) -> ClientLifecycleMode {
    match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
    }
}

fn next(error: &ClientInitializeError) -> Next {
    match error {
        // The answer to the modern question came after the old greeting was tried: it is modern, and slow.
        ClientInitializeError::ConflictInitResponseId(..) => Next::Try(Era::Modern),
        // Both ways were tried, or no way can help.
        ClientInitializeError::LegacyFallbackFailed { .. }
        | ClientInitializeError::NoCompatibleProtocolVersion { .. } => Next::Stop,
        ClientInitializeError::TransportError { error, .. }
            if http::is_unreachable(&*error.error) || http::is_unauthorized(&*error.error) =>
        {
            Next::Stop
        }
        _ => Next::Try(Era::Legacy),
    }
}

fn failure(error: &ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::TransportError { error, .. } => match http::failure(&*error.error) {
            Some((_, failure)) => failure,
            None => Failure::new(Category::Unavailable, "it ended while it was greeted"),
        },
        ClientInitializeError::ConnectionClosed(_) => {
            Failure::new(Category::Unavailable, "it ended before it was greeted")
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => failure(fallback),
        _ => Failure::new(Category::Protocol, cut(&format!("it could not be greeted: {error}"))),
    }
}

async fn give_up(recipe: &Recipe, process: Option<Process>, wire: &Wire, failure: Failure) -> Ended {
    end(process, wire, failure, recipe.patience.kill).await
}

async fn end(process: Option<Process>, wire: &Wire, failure: Failure, grace: Duration) -> Ended {
    let mut failure = explain(wire, failure);
    let mut stderr = Vec::new();
    if let Some(process) = process {
        let tail = process.tail.clone();
        if let Some(status) = process.end(grace).await {
            failure.message.push_str(&format!(" ({status})"));
        }
        failure.message.push_str(&tail.last_words());
        stderr = tail.lines();
    }
    Ended { stderr, ..Ended::now(failure) }
}

/// What the server did wrong says more than that the connection is gone.
fn explain(wire: &Wire, failure: Failure) -> Failure {
    match wire.fault() {
        Some(fault) => Failure::new(Category::Protocol, format!("{}: {fault}", failure.message)),
        None => failure,
    }
}

async fn exited(process: Option<&Process>) {
    match process {
        Some(process) => process.exited().await,
        None => std::future::pending().await,
    }
}

/// Asks a modern server to say when its tools change, and listens for as long as the connection lasts.
async fn follow_changes(
    peer: Peer<RoleClient>,
    wanted: bool,
    changes: &watch::Sender<u64>,
) -> std::convert::Infallible {
    if wanted
        && let Ok(mut subscription) =
            peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await
    {
        while let Ok(Some(_)) = subscription.next().await {
            changes.send_modify(|count| *count += 1);
        }
    }
    std::future::pending().await
}
