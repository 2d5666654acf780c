//! HTTP APIs as tools: the operator writes down each kind of request, and nothing else can be sent.

mod answer;
mod check;
mod exchange;
pub(crate) mod meaning;
pub mod post;
mod request;
mod template;
mod tool;

use crate::config;
use crate::connector::{Connector, Request, Served, State};
use crate::guard::{self, Guard, Resolver};
use crate::secret::Vault;
use check::Check;
use exchange::Exchange;
use rutter_core::port::tools::Reply;
use rutter_core::time::Millis;
use rutter_core::tool::{Category, Failure, Outcome};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tool::Tool;
use url::Url;

const CONNECT_DEFAULT: Millis = Millis::seconds(5);
const CONNECT_MAX: Millis = Millis::seconds(30);

pub struct HttpServer {
    base: Url,
    tools: BTreeMap<String, Tool>,
    guard: Guard,
    client: reqwest::Client,
    vault: Arc<Vault>,
    state: Mutex<State>,
    /// Kept for its receivers: configured tools never change while they are served.
    changes: watch::Sender<u64>,
    closing: CancellationToken,
}

/// Everything that is wrong with a server, each thing with its place.
#[derive(Debug, thiserror::Error)]
#[error("{}", problems.join("\n"))]
pub struct Error {
    pub problems: Vec<String>,
}

impl HttpServer {
    pub fn new(
        name: &str,
        server: &config::http::Server,
        resolver: Arc<dyn Resolver>,
        vault: Arc<Vault>,
    ) -> Result<HttpServer, Error> {
        let place = format!("http.{name}");
        let fatal =
            |field: &str, message: String| Error { problems: vec![format!("{place}.{field}: {message}")] };
        let guard =
            Guard::new(&server.allow, resolver).map_err(|refused| fatal("allow", refused.to_string()))?;
        let base = guard.url(&server.base).map_err(|refused| fatal("base", refused.to_string()))?;
        if base.query().is_some() || base.fragment().is_some() {
            return Err(fatal(
                "base",
                "expected no `?` and no `#`; parameters belong to the tools".to_owned(),
            ));
        }
        let connect = server.timeout_connect.unwrap_or(CONNECT_DEFAULT);
        if connect > CONNECT_MAX || connect == Millis(0) {
            return Err(fatal(
                "timeout_connect",
                format!("expected more than 0 s and at most {CONNECT_MAX}"),
            ));
        }
        let client = guard::client(&guard, Duration::from_millis(connect.0))
            .map_err(|error| fatal("base", format!("no client could be made: {error}")))?;
        let tools = read_tools(&place, server, &base, &vault)?;
        Ok(HttpServer {
            base,
            tools,
            guard,
            client,
            vault,
            state: Mutex::new(State::Idle),
            changes: watch::Sender::new(0),
            closing: CancellationToken::new(),
        })
    }

    async fn make(&self, request: Request) -> Outcome {
        let Some(tool) = self.tools.get(&request.tool) else {
            let message = format!("there is no tool {:?} here", request.tool);
            return Outcome::NotDone(Failure::new(Category::NotFound, message));
        };
        if request.ticket.is_some() {
            let message =
                "a request over HTTP cannot be taken up again; find out by a probe whether it was done";
            return Outcome::Maybe(Failure::new(Category::Protocol, message));
        }
        if request.cancel.is_cancelled() || self.closing.is_cancelled() {
            return Outcome::NotDone(Failure::new(Category::Cancelled, "cancelled before anything was sent"));
        }
        let exchange = Exchange { server: self, tool, request: &request };
        guard::while_connecting(async {
            tokio::select! {
                biased;
                ended = tokio::time::timeout(request.timeout, exchange.carry_out()) => ended.unwrap_or_else(|_| {
                    let waited = Millis(request.timeout.as_millis().try_into().unwrap_or(u64::MAX));
                    cut_off(Category::Timeout, &format!("no answer within {waited}"))
                }),
                () = request.cancel.cancelled() => cut_off(Category::Cancelled, "cancelled"),
                () = self.closing.cancelled() => cut_off(Category::Cancelled, "the server was closed"),
            }
        })
        .await
    }

    fn note(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Connector for HttpServer {
    fn list(&self) -> Reply<'_, Result<Vec<Served>, Failure>> {
        let served = self.tools.values().map(|tool| tool.served.clone()).collect();
        Box::pin(std::future::ready(Ok(served)))
    }

    fn call(&self, request: Request) -> Reply<'_, Outcome> {
        Box::pin(self.make(request))
    }

    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn close(&self) -> Reply<'_, ()> {
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
    server: &config::http::Server,
    base: &Url,
    vault: &Vault,
) -> Result<BTreeMap<String, Tool>, Error> {
    let mut problems = Vec::new();
    let mut tools = BTreeMap::new();
    for (name, tool) in &server.tools {
        let mut check = Check { vault, place: format!("{place}.tools.{name}"), problems: &mut problems };
        tools.insert(name.clone(), Tool::read(name, tool, server, base, &mut check));
    }
    if problems.is_empty() { Ok(tools) } else { Err(Error { problems }) }
}

/// How a call ends that was not waited for: until a connection was ready, nothing can have been sent.
fn cut_off(category: Category, message: &str) -> Outcome {
    if guard::connected() {
        Outcome::Maybe(Failure::new(category, format!("{message}; the request may have been carried out")))
    } else {
        Outcome::NotDone(Failure::new(category, format!("{message}; nothing was sent")))
    }
}
