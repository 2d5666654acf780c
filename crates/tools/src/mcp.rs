//! MCP servers as connectors: children that speak over pipes, and servers reached over streamable HTTP.
//!
//! Reading order: [`process`] starts and ends children, `wire` is the two pipes, `connection` greets a server in either
//! era of the protocol, `life` starts it when it is needed and again after it died; `list` and `call` are what it is
//! for, `ticket` follows a call the server works on elsewhere, `outcome` says how it ended.
//!
//! Each server has its own connection and nothing is shared between two of them, so a bad one costs its own calls only.

mod call;
mod connection;
mod http;
mod life;
mod list;
mod listener;
mod outcome;
pub mod process;
mod ticket;
mod wire;

use crate::config::mcp::Server;
use crate::connector::{Connector, Request, Served, State};
use connection::Recipe;
use life::Life;
use process::Launcher;
use rutter_core::port::tools::Reply;
use rutter_core::tool::{Failure, Outcome};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// One MCP server. Nothing is started before it is asked for something.
pub struct McpServer {
    life: Arc<Life>,
    changes: Arc<watch::Sender<u64>>,
    left_out: Mutex<Vec<String>>,
}

impl McpServer {
    pub fn new(name: &str, server: &Server, launcher: Launcher) -> McpServer {
        let mut patience = Patience::default();
        if let Some(start) = server.start_timeout {
            patience.start = Duration::from_millis(start.0);
        }
        McpServer::with_patience(name, server, launcher, patience)
    }

    /// With other limits than the usual ones, the time to start included.
    pub fn with_patience(name: &str, server: &Server, launcher: Launcher, patience: Patience) -> McpServer {
        let changes = Arc::new(watch::Sender::new(0));
        let recipe = Recipe { reach: server.reach.clone(), launcher, patience, changes: changes.clone() };
        McpServer { life: Arc::new(Life::new(name, recipe)), changes, left_out: Mutex::default() }
    }

    /// What of the last list of tools was left out, and why.
    pub fn left_out(&self) -> Vec<String> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines of a child, since it was started, were no message or answers nobody waited for.
    pub fn noise(&self) -> u64 {
        self.life.noise()
    }
}

/// How long to wait for a server, and how much to take from it.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until it has answered for the first time.
    pub start: Duration,
    /// For all pages of a list of its tools.
    pub list: Duration,
    /// For a late answer to a call that was cancelled or took too long.
    pub cancel: Duration,
    /// For a child that was told to end, before it is killed.
    pub kill: Duration,
    /// After the first failure; doubled with each that follows.
    pub pause_first: Duration,
    pub pause_max: Duration,
    pub line_bytes_max: usize,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            start: Duration::from_secs(60),
            list: Duration::from_secs(30),
            cancel: Duration::from_secs(2),
            kill: Duration::from_secs(2),
            pause_first: Duration::from_millis(250),
            pause_max: Duration::from_secs(30),
            line_bytes_max: 16 * 1024 * 1024,
        }
    }
}

impl Connector for McpServer {
    fn list(&self) -> Reply<'_, Result<Vec<Served>, Failure>> {
        Box::pin(async {
            let connection = self.life.connection().await?;
            let listing = list::all(&connection, self.life.patience().list).await?;
            *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) = listing.left_out;
            Ok(listing.tools)
        })
    }

    fn call(&self, request: Request) -> Reply<'_, Outcome> {
        Box::pin(call::make(&self.life, request))
    }

    fn state(&self) -> State {
        self.life.state()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(self.life.close())
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("state", &self.state()).finish_non_exhaustive()
    }
}
