//! One connection to a server: how it is made in either era of the protocol, and how it ends.

use super::listener::{ConnectionListener, OpenCalls};
use super::outcome::cut;
use super::process::{McpChildLauncher, McpProcess, StderrTail};
use super::wire::{PipeState, PipeTransport};
use super::{McpLimits, http};
use crate::config::mcp::McpTransport;
use rmcp::model::{ClientRequest, ListToolsRequest, PingRequest, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::{ClientLifecycleMode, ClientServiceExt, Peer, RoleClient};
use rutter_core::tool::{FailureCategory, ToolFailure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Which era of the protocol a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtocolEra {
    /// A handshake first; versions up to 2025-11-25.
    Legacy,
    /// Every request stands alone; from 2026-07-28.
    Modern,
}

/// What is needed to connect.
#[derive(Clone)]
pub(super) struct ConnectionSettings {
    pub(super) reach: McpTransport,
    pub(super) launcher: McpChildLauncher,
    pub(super) limits: McpLimits,
    pub(super) changes: Arc<watch::Sender<u64>>,
}

pub(super) struct McpConnection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) era: ProtocolEra,
    pub(super) calls: Arc<OpenCalls>,
    /// Unused over HTTP.
    pub(super) wire: Arc<PipeState>,
    pub(super) over_http: bool,
    /// Over HTTP some arguments travel as headers too, and only the list of tools says which.
    pub(super) has_listed: AtomicBool,
    /// Counts the connections of its server.
    pub(super) number: u64,
    /// Whether it announces changes of its tools now.
    pub(super) announces: Arc<AtomicBool>,
    /// A ping is on its way.
    pub(super) pinging: AtomicBool,
    pub(super) born: Instant,
    tail: StderrTail,
    stop: CancellationToken,
    ended: watch::Receiver<Option<ConnectionEnd>>,
}

/// How a connection, or an attempt to make one, ended.
#[derive(Clone, Debug)]
pub(super) struct ConnectionEnd {
    pub(super) failure: ToolFailure,
    pub(super) stderr: Vec<String>,
    pub(super) at: Instant,
}

impl ConnectionEnd {
    fn now(failure: ToolFailure) -> ConnectionEnd {
        ConnectionEnd { failure, stderr: Vec::new(), at: Instant::now() }
    }
}

impl McpConnection {
    /// Connects in the known era of the server. If it is unknown, the modern handshake is tried first; a server that
    /// exits or does not answer is started again for the legacy handshake.
    pub(super) async fn make(
        recipe: &ConnectionSettings,
        known: Option<ProtocolEra>,
    ) -> Result<McpConnection, ConnectionEnd> {
        let deadline = Instant::now() + recipe.limits.start;
        match known {
            Some(era) => McpConnection::attempt(recipe, mode(era), deadline).await.map_err(|(ended, _)| ended),
            None => {
                let probe = Instant::now() + recipe.limits.start / 2;
                match McpConnection::attempt(recipe, auto(), probe).await {
                    Ok(connection) => Ok(connection),
                    Err((ended, NextAttempt::Stop)) => Err(ended),
                    Err((_, NextAttempt::Try(era))) => {
                        McpConnection::attempt(recipe, mode(era), deadline).await.map_err(|(ended, _)| ended)
                    }
                }
            }
        }
    }

    async fn attempt(
        recipe: &ConnectionSettings,
        mode: ClientLifecycleMode,
        deadline: Instant,
    ) -> Result<McpConnection, (ConnectionEnd, NextAttempt)> {
        let (calls, wire) = (Arc::new(OpenCalls::default()), Arc::new(PipeState::default()));
        let listener = ConnectionListener { calls: calls.clone(), wire: wire.clone(), changes: recipe.changes.clone() };
        let reach = recipe.launcher.filled(&recipe.reach).await;
        let reach = reach.map_err(|failure| (ConnectionEnd::now(failure), NextAttempt::Stop))?;
        let (greeted, process) = match &reach {
            McpTransport::Child(child) => {
                let (process, stdin, stdout) = recipe.launcher.start(child).map_err(|error| {
                    let message = format!("could not start `{}`: {error}", child.command);
                    let failure = ToolFailure::new(FailureCategory::Unavailable, message);
                    (ConnectionEnd::now(failure), NextAttempt::Stop)
                })?;
                let pipes = PipeTransport::new(stdin, stdout, recipe.limits.line_bytes_max, wire.clone());
                (timeout_at(deadline, listener.serve_with_lifecycle(pipes, mode)).await, Some(process))
            }
            McpTransport::Http(address) => {
                let transport = http::transport(address, recipe.limits.line_bytes_max)
                    .map_err(|failure| (ConnectionEnd::now(failure), NextAttempt::Stop))?;
                (timeout_at(deadline, listener.serve_with_lifecycle(transport, mode)).await, None)
            }
        };
        match greeted {
            Ok(Ok(running)) => Ok(McpConnection::keep(recipe, running, process, calls, wire)),
            Ok(Err(error)) => {
                let next = next(&error);
                Err((give_up(recipe, process, &wire, failure(&error)).await, next))
            }
            Err(_) => {
                let failure = ToolFailure::new(FailureCategory::Timeout, "it did not answer the handshake in time");
                Err((give_up(recipe, process, &wire, failure).await, NextAttempt::Try(ProtocolEra::Legacy)))
            }
        }
    }

    fn keep(
        recipe: &ConnectionSettings,
        running: RunningService<RoleClient, ConnectionListener>,
        process: Option<McpProcess>,
        calls: Arc<OpenCalls>,
        wire: Arc<PipeState>,
    ) -> McpConnection {
        let peer = running.peer().clone();
        let info = peer.peer_info();
        let modern = info.as_ref().is_some_and(|info| !info.protocol_version.has_initialize());
        let tools = info.as_ref().and_then(|info| info.capabilities.tools.as_ref());
        let tells_changes = tools.and_then(|tools| tools.list_changed) == Some(true);
        let over_http = process.is_none();
        let stop = CancellationToken::new();
        let (ended_sender, ended) = watch::channel(None);
        let connection = McpConnection {
            peer: peer.clone(),
            era: if modern { ProtocolEra::Modern } else { ProtocolEra::Legacy },
            calls,
            wire: wire.clone(),
            over_http,
            has_listed: AtomicBool::new(false),
            number: 0,
            // In the later era only a subscription announces anything; over HTTP, only a stream that the server may or may
            // not offer, and that nobody knows to be open.
            announces: Arc::new(AtomicBool::new(tells_changes && !modern && !over_http)),
            pinging: AtomicBool::new(false),
            born: Instant::now(),
            tail: process.as_ref().map(|process| process.tail.clone()).unwrap_or_default(),
            stop: stop.clone(),
            ended,
        };
        let (changes, announces) = (recipe.changes.clone(), connection.announces.clone());
        let grace = recipe.limits.kill;
        // Owned by the connection: it ends when `stop` is cancelled, and reports it in `ended`.
        tokio::spawn(async move {
            let abort = running.cancellation_token();
            let mut over = std::pin::pin!(running.waiting());
            let (is_over, reason) = tokio::select! {
                _ = &mut over => (true, "the connection was lost"),
                _ = stop.cancelled() => (false, "the connection was closed"),
                _ = exited(process.as_ref()) => (false, "the connection was lost"),
                never = follow_changes(peer, modern && tells_changes, &changes, &announces) => match never {},
            };
            if !is_over {
                wire.lost.cancel();
                abort.cancel();
                _ = over.await;
            }
            let failure = ToolFailure::new(FailureCategory::Unavailable, reason);
            ended_sender.send_replace(Some(end(process, &wire, failure, grace).await));
        });
        connection
    }

    /// Why it ended, if it did.
    pub(super) fn ended(&self) -> Option<ConnectionEnd> {
        self.ended.borrow().clone()
    }

    /// Whether a call could lack headers that the server insists on.
    pub(super) fn must_list(&self) -> bool {
        self.over_http && self.era == ProtocolEra::Modern && !self.has_listed.load(Ordering::Relaxed)
    }

    /// Nothing more can be sent, though it may not have ended yet.
    pub(super) fn is_lost(&self) -> bool {
        self.wire.lost.is_cancelled() || self.stop.is_cancelled() || self.peer.is_transport_closed()
    }

    /// Waits a moment for the reason of a loss that was just noticed.
    pub(super) async fn end_reason(&self) -> ToolFailure {
        const WAIT: Duration = Duration::from_millis(500);
        let mut ended = self.ended.clone();
        let known = tokio::time::timeout(WAIT, ended.wait_for(Option::is_some)).await;
        if let Ok(Ok(known)) = known
            && let Some(ended) = &*known
        {
            return ended.failure.clone();
        }
        let mut failure =
            explain(&self.wire, ToolFailure::new(FailureCategory::Unavailable, "the connection was lost"));
        failure.message.push_str(&self.tail.last_words());
        failure
    }

    /// Ends it, and returns when its process is gone.
    pub(super) async fn close(&self) {
        self.discard();
        _ = self.ended.clone().wait_for(Option::is_some).await;
    }

    /// After a call, a listing or a cancellation without an answer: a child that does not answer a ping either is ended, and started again by the next
    /// call. Its other calls in flight are lost.
    pub(super) fn ping(self: &Arc<McpConnection>, server: &str, patience: Duration) {
        if self.over_http || self.pinging.swap(true, Ordering::Relaxed) {
            return;
        }
        let (connection, server) = (Arc::clone(self), server.to_owned());
        // Ends with the ping.
        tokio::spawn(async move {
            let request = match connection.era {
                ProtocolEra::Legacy => ClientRequest::PingRequest(PingRequest::default()),
                ProtocolEra::Modern => ClientRequest::ListToolsRequest(ListToolsRequest::default()),
            };
            // Any answer will do, a refusal too.
            let answer = tokio::time::timeout(patience, connection.peer.send_request(request)).await;
            connection.pinging.store(false, Ordering::Relaxed);
            if answer.is_err() {
                tracing::warn!(server, "an MCP server hangs: it answers neither a call nor a ping, and is restarted");
                connection.discard();
            }
        });
    }

    /// Ends it without waiting.
    pub(super) fn discard(&self) {
        self.stop.cancel();
    }
}

impl Drop for McpConnection {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What to try after an attempt that failed.
enum NextAttempt {
    Stop,
    Try(ProtocolEra),
}

fn auto() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn mode(era: ProtocolEra) -> ClientLifecycleMode {
    match era {
        ProtocolEra::Legacy => ClientLifecycleMode::Initialize,
        ProtocolEra::Modern => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
    }
}

fn next(error: &ClientInitializeError) -> NextAttempt {
    match error {
        // The modern handshake was answered after the legacy one was sent: the server is modern, and slow.
        ClientInitializeError::ConflictInitResponseId(..) => NextAttempt::Try(ProtocolEra::Modern),
        // Both eras were tried, or neither can help.
        ClientInitializeError::LegacyFallbackFailed { .. }
        | ClientInitializeError::NoCompatibleProtocolVersion { .. } => NextAttempt::Stop,
        ClientInitializeError::TransportError { error, .. }
            if http::is_unreachable(&*error.error) || http::is_unauthorized(&*error.error) =>
        {
            NextAttempt::Stop
        }
        _ => NextAttempt::Try(ProtocolEra::Legacy),
    }
}

fn failure(error: &ClientInitializeError) -> ToolFailure {
    match error {
        ClientInitializeError::TransportError { error, .. } => match http::failure(&*error.error) {
            Some((_, failure)) => failure,
            None => ToolFailure::new(FailureCategory::Unavailable, "it ended during the handshake"),
        },
        ClientInitializeError::ConnectionClosed(_) => {
            ToolFailure::new(FailureCategory::Unavailable, "it ended before the handshake")
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => failure(fallback),
        _ => ToolFailure::new(FailureCategory::Protocol, cut(&format!("the handshake failed: {error}"))),
    }
}

async fn give_up(
    recipe: &ConnectionSettings,
    process: Option<McpProcess>,
    wire: &PipeState,
    failure: ToolFailure,
) -> ConnectionEnd {
    end(process, wire, failure, recipe.limits.kill).await
}

async fn end(process: Option<McpProcess>, wire: &PipeState, failure: ToolFailure, grace: Duration) -> ConnectionEnd {
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
    ConnectionEnd { stderr, ..ConnectionEnd::now(failure) }
}

/// A violation of the protocol explains more than a lost connection.
fn explain(wire: &PipeState, failure: ToolFailure) -> ToolFailure {
    match wire.fault() {
        Some(fault) => ToolFailure::new(FailureCategory::Protocol, format!("{}: {fault}", failure.message)),
        None => failure,
    }
}

async fn exited(process: Option<&McpProcess>) {
    match process {
        Some(process) => process.exited().await,
        None => std::future::pending().await,
    }
}

/// Subscribes to changes of a modern server's tools, for as long as the connection lasts.
async fn follow_changes(
    peer: Peer<RoleClient>,
    wanted: bool,
    changes: &watch::Sender<u64>,
    announces: &AtomicBool,
) -> std::convert::Infallible {
    if wanted
        && let Ok(mut subscription) = peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await
    {
        // What changed before the subscription is not announced.
        changes.send_modify(|count| *count += 1);
        announces.store(true, Ordering::Relaxed);
        while let Ok(Some(_)) = subscription.next().await {
            changes.send_modify(|count| *count += 1);
        }
        announces.store(false, Ordering::Relaxed);
        // What changed since the subscription ended was not announced either.
        changes.send_modify(|count| *count += 1);
    }
    std::future::pending().await
}
