//! HTTP APIs as tools: the operator configures each kind of request, and nothing else can be sent.

mod answer;
mod check;
mod exchange;
pub(crate) mod meaning;
mod request;
mod template;
mod tool;
pub mod webhook_poster;

use crate::config;
use crate::connector::{Connector, ConnectorRequest, ConnectorState, ServedTool};
use crate::guard::{self, AddressGuard, Resolver};
use crate::secret::SecretVault;
use check::HttpConfigCheck;
use exchange::HttpExchange;
use rutter_core::port::tools::PortFuture;
use rutter_core::time::Millis;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tool::HttpTool;
use url::Url;

const CONNECT_DEFAULT: Millis = Millis::seconds(5);
const CONNECT_MAX: Millis = Millis::seconds(30);

pub struct HttpServer {
    base: Url,
    tools: BTreeMap<String, HttpTool>,
    guard: AddressGuard,
    client: reqwest::Client,
    vault: Arc<SecretVault>,
    state: Mutex<ConnectorState>,
    /// Never sends: configured tools do not change while they are served. Receivers need an open channel.
    changes: watch::Sender<u64>,
    closing: CancellationToken,
}

/// Every problem in the configuration of a server, each with its location.
#[derive(Debug, thiserror::Error)]
#[error("{}", problems.join("\n"))]
pub struct Error {
    pub problems: Vec<String>,
}

impl HttpServer {
    pub fn new(
        name: &str,
        server: &config::http::HttpServerConfig,
        resolver: Arc<dyn Resolver>,
        vault: Arc<SecretVault>,
    ) -> Result<HttpServer, Error> {
        let place = format!("http.{name}");
        let fatal = |field: &str, message: String| Error { problems: vec![format!("{place}.{field}: {message}")] };
        let guard =
            AddressGuard::new(&server.allow, resolver).map_err(|refused| fatal("allow", refused.to_string()))?;
        let base = guard.url(&server.base).map_err(|refused| fatal("base", refused.to_string()))?;
        if base.query().is_some() || base.fragment().is_some() {
            return Err(fatal("base", "expected no `?` and no `#`; parameters belong to the tools".to_owned()));
        }
        let connect = server.timeout_connect.unwrap_or(CONNECT_DEFAULT);
        if connect > CONNECT_MAX || connect == Millis(0) {
            return Err(fatal("timeout_connect", format!("expected more than 0 s and at most {CONNECT_MAX}")));
        }
        let client = guard::client(&guard, Duration::from_millis(connect.0))
            .map_err(|error| fatal("base", format!("no HTTP client: {error}")))?;
        let tools = read_tools(&place, server, &base, &vault)?;
        Ok(HttpServer {
            base,
            tools,
            guard,
            client,
            vault,
            state: Mutex::new(ConnectorState::Idle),
            changes: watch::Sender::new(0),
            closing: CancellationToken::new(),
        })
    }

    async fn make(&self, request: ConnectorRequest) -> CallOutcome {
        let Some(tool) = self.tools.get(&request.tool) else {
            let message = format!("there is no tool {:?} here", request.tool);
            return CallOutcome::NotDone(ToolFailure::new(FailureCategory::NotFound, message));
        };
        if request.ticket.is_some() {
            let message = "an HTTP request cannot be resumed; use a probe to find out whether it was done";
            return CallOutcome::Maybe(ToolFailure::new(FailureCategory::Protocol, message));
        }
        if request.cancel.is_cancelled() || self.closing.is_cancelled() {
            return CallOutcome::NotDone(ToolFailure::new(
                FailureCategory::Cancelled,
                "cancelled before anything was sent",
            ));
        }
        let exchange = HttpExchange { server: self, tool, request: &request };
        guard::while_connecting(async {
            tokio::select! {
                biased;
                ended = tokio::time::timeout(request.timeout, exchange.carry_out()) => ended.unwrap_or_else(|_| {
                    let waited = Millis(request.timeout.as_millis().try_into().unwrap_or(u64::MAX));
                    cut_off(FailureCategory::Timeout, &format!("no answer within {waited}"))
                }),
                () = request.cancel.cancelled() => cut_off(FailureCategory::Cancelled, "cancelled"),
                () = self.closing.cancelled() => cut_off(FailureCategory::Cancelled, "the server was closed"),
            }
        })
        .await
    }

    fn note(&self, state: ConnectorState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Connector for HttpServer {
    fn list(&self) -> PortFuture<'_, Result<Vec<ServedTool>, ToolFailure>> {
        let served = self.tools.values().map(|tool| tool.served.clone()).collect();
        Box::pin(std::future::ready(Ok(served)))
    }

    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, CallOutcome> {
        Box::pin(self.make(request))
    }

    fn state(&self) -> ConnectorState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn close(&self) -> PortFuture<'_, ()> {
        self.closing.cancel();
        Box::pin(std::future::ready(()))
    }
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

fn read_tools(
    place: &str,
    server: &config::http::HttpServerConfig,
    base: &Url,
    vault: &SecretVault,
) -> Result<BTreeMap<String, HttpTool>, Error> {
    let mut problems = Vec::new();
    let mut tools = BTreeMap::new();
    for (name, tool) in &server.tools {
        let mut check = HttpConfigCheck { vault, place: format!("{place}.tools.{name}"), problems: &mut problems };
        tools.insert(name.clone(), HttpTool::read(name, tool, server, base, &mut check));
    }
    if problems.is_empty() { Ok(tools) } else { Err(Error { problems }) }
}

/// The outcome of a call that was cut off: before a connection was ready, nothing can have been sent.
fn cut_off(category: FailureCategory, message: &str) -> CallOutcome {
    if guard::connected() {
        CallOutcome::Maybe(ToolFailure::new(category, format!("{message}; the request may have been carried out")))
    } else {
        CallOutcome::NotDone(ToolFailure::new(category, format!("{message}; nothing was sent")))
    }
}
