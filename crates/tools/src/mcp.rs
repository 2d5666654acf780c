//! MCP servers as connectors: children that speak over pipes, and servers reached over streamable HTTP.
//!
//! Reading order: [`process`] starts and ends children, `wire` is the two pipes, `connection` does the handshake in
//! either era of the protocol, `lifecycle` starts a server on demand and again after it died; `list` and `call` use it,
//! `ticket` follows a call that continues on the server, `outcome` interprets the answers.
//!
//! Each server has its own connection and nothing is shared between two of them, so a bad server affects only its own
//! calls.

mod call;
mod connection;
mod http;
mod lifecycle;
mod list;
mod listener;
mod outcome;
pub mod process;
mod questions;
mod ticket;
mod wire;

use crate::config::mcp::McpServerConfig;
use crate::connector::{Connector, ConnectorRequest, ConnectorState, ServedTool};
use connection::ConnectionSettings;
use lifecycle::ServerLifecycle;
use process::McpChildLauncher;
use rutter_core::limits::PING_TIMEOUT;
use rutter_core::port::tools::PortFuture;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// One MCP server. It is started at its first use.
pub struct McpServer {
    life: Arc<ServerLifecycle>,
    changes: Arc<watch::Sender<u64>>,
    left_out: Mutex<Vec<String>>,
}

impl McpServer {
    pub fn new(name: &str, server: &McpServerConfig, launcher: McpChildLauncher) -> McpServer {
        let mut patience = McpLimits::default();
        if let Some(start) = server.start_timeout {
            patience.start = Duration::from_millis(start.0);
        }
        McpServer::with_limits(name, server, launcher, patience)
    }

    /// With other limits than the usual ones, the time to start included.
    pub fn with_limits(
        name: &str,
        server: &McpServerConfig,
        launcher: McpChildLauncher,
        patience: McpLimits,
    ) -> McpServer {
        let changes = Arc::new(watch::Sender::new(0));
        let recipe =
            ConnectionSettings { reach: server.reach.clone(), launcher, limits: patience, changes: changes.clone() };
        McpServer { life: Arc::new(ServerLifecycle::new(name, recipe)), changes, left_out: Mutex::default() }
    }

    /// What of the last list of tools was left out, and why.
    pub fn left_out(&self) -> Vec<String> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines of a child, since it was started, were not messages or answered no open request.
    pub fn noise(&self) -> u64 {
        self.life.noise()
    }
}

/// How long to wait for a server, and how much to take from it.
#[derive(Clone, Copy, Debug)]
pub struct McpLimits {
    /// Until it has answered for the first time.
    pub start: Duration,
    /// For all pages of a list of its tools.
    pub list: Duration,
    /// For a late answer to a call that was cancelled or took too long.
    pub cancel: Duration,
    /// For the answer to a ping after a call timed out; a child that gives none is restarted.
    pub ping: Duration,
    /// For a child that was asked to end, before it is killed.
    pub kill: Duration,
    /// After the first failure; doubled with each that follows.
    pub pause_first: Duration,
    pub pause_max: Duration,
    pub line_bytes_max: usize,
}

impl Default for McpLimits {
    fn default() -> McpLimits {
        McpLimits {
            start: Duration::from_secs(60),
            list: Duration::from_secs(30),
            cancel: Duration::from_secs(2),
            ping: Duration::from_millis(PING_TIMEOUT.0),
            kill: Duration::from_secs(2),
            pause_first: Duration::from_millis(250),
            pause_max: Duration::from_secs(30),
            line_bytes_max: 16 * 1024 * 1024,
        }
    }
}

impl Connector for McpServer {
    fn list(&self) -> PortFuture<'_, Result<Vec<ServedTool>, ToolFailure>> {
        Box::pin(async {
            let connection = self.life.connection().await?;
            let listing = list::all(&connection, self.life.limits().list).await;
            if listing.as_ref().is_err_and(|failure| failure.category == FailureCategory::Timeout) {
                self.life.ping();
            }
            let listing = listing?;
            *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) = listing.left_out;
            Ok(listing.tools)
        })
    }

    fn ready(&self) -> PortFuture<'_, Result<u64, ToolFailure>> {
        Box::pin(async { Ok(self.life.connection().await?.number) })
    }

    fn pause(&self) -> Option<ToolFailure> {
        self.life.pause()
    }

    fn suspect(&self) {
        self.life.ping();
    }

    fn announces_changes(&self) -> bool {
        self.life.announces_changes()
    }

    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, CallOutcome> {
        Box::pin(call::make(&self.life, request))
    }

    fn state(&self) -> ConnectorState {
        self.life.state()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn close(&self) -> PortFuture<'_, ()> {
        Box::pin(self.life.close())
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("state", &self.state()).finish_non_exhaustive()
    }
}
