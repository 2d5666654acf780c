//! All tools behind one port: which there are, whether there is room, and the one path every call takes.
//!
//! A server that hangs, lies or dies costs its own calls. [`call`] is the path, [`offer`] reads what servers say of
//! themselves, [`breaker`] leaves a server alone that fails again and again, [`report`] says how all of them are.

pub mod breaker;
mod call;
mod discreet;
mod offer;
mod once;
mod report;
mod secrets;
mod server;
mod text;
mod underway;

use crate::config::{Common, Limits};
use crate::connector::Connector;
use crate::limit::Quay;
use crate::search::{Hit, Index};
use futures::future::join_all;
use rutter_core::hash::Hash;
use rutter_core::id::ToolName;
use rutter_core::port::tools::{
    Admission, Applicant, Berth, Call, CallId, Catalog, Reply, Return, Servers, Tools,
};
use rutter_core::redact::Redactor;
use rutter_core::time::Timestamp;
use rutter_core::tool::report::ServerReport;
use rutter_core::tool::{Category, Failure};
use server::{Office, Server};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use underway::Underway;

pub use secrets::Secrets;

/// For all servers together, however many there are.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(15);

pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

pub struct Registry {
    servers: BTreeMap<String, Arc<Server>>,
    quay: Quay,
    secrets: Arc<dyn Secrets>,
    clock: Clock,
    underway: Underway,
    office: Arc<Office>,
    /// Of the edition beside it.
    index: Mutex<(u64, Arc<Index>)>,
    /// Numbers calls that belong to no execution.
    scratch: AtomicU64,
}

/// What the registry is made of: a server of any kind under the operator's name for it.
pub struct Entrant {
    pub name: String,
    pub connector: Arc<dyn Connector>,
    pub common: Common,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("two servers are called {0:?}; rename one of them, whatever kind each is of")]
    Twice(String),
    #[error("{0:?} cannot be the name of a server: expected letters, digits, `_` and `-`")]
    Name(String),
}

impl Registry {
    /// Must be called within a runtime.
    pub fn new(
        entrants: Vec<Entrant>,
        limits: &Limits,
        secrets: Arc<dyn Secrets>,
        clock: Clock,
    ) -> Result<Registry, Error> {
        let office = Arc::new(Office::default());
        let mut servers = BTreeMap::new();
        let mut settings = BTreeMap::new();
        for Entrant { name, connector, common } in entrants {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if name.is_empty() || !name.chars().all(is_plain) {
                return Err(Error::Name(name));
            }
            settings.insert(name.clone(), common.clone());
            match servers.entry(name.clone()) {
                Entry::Occupied(_) => return Err(Error::Twice(name)),
                Entry::Vacant(entry) => {
                    entry.insert(Arc::new(Server::new(name, connector, common, limits, Arc::clone(&office))));
                }
            }
        }
        Ok(Registry {
            servers,
            quay: Quay::new(limits, settings),
            secrets,
            clock,
            underway: Underway::default(),
            office,
            index: Mutex::default(),
            scratch: AtomicU64::new(0),
        })
    }

    /// The tools that fit some words best, among those of servers that were asked so far.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        self.index().search(query, limit)
    }

    /// Ends all servers at once. Whatever does not end in time is left to its own.
    pub async fn close(&self) {
        self.office.closing.cancel();
        self.office.questions.close();
        let closing = join_all(self.servers.values().map(|server| server.connector.close()));
        let all = async { tokio::join!(closing, self.office.questions.wait()) };
        if tokio::time::timeout(CLOSE_TIMEOUT, all).await.is_err() {
            tracing::warn!("some servers did not end within {} s", CLOSE_TIMEOUT.as_secs());
        }
    }

    fn index(&self) -> Arc<Index> {
        // Read before the tools are: what changes meanwhile makes for a newer edition.
        let edition = self.office.edition.load(Ordering::Acquire);
        let mut kept = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 != edition {
            let known: Vec<_> = self.servers.values().filter_map(|server| server.last_known()).collect();
            let offers = known.iter().flat_map(|offers| offers.by_name.values());
            let index = Index::new(offers.map(|offer| (Arc::clone(&offer.tool), offer.title.clone())));
            *kept = (edition, Arc::new(index));
        }
        Arc::clone(&kept.1)
    }
}

impl Tools for Registry {
    fn catalog(&self, servers: Servers) -> Reply<'_, Catalog> {
        Box::pin(async move {
            let mut catalog = Catalog::default();
            let wanted: Vec<&Arc<Server>> = match servers {
                Servers::All => self.servers.values().collect(),
                Servers::Named(names) => {
                    let (there, unknown): (Vec<_>, Vec<_>) =
                        names.into_iter().partition(|name| self.servers.contains_key(name));
                    let failure = || Failure::new(Category::NotFound, "no server of this name is configured");
                    catalog.absent = unknown.into_iter().map(|name| (name, failure())).collect();
                    there.iter().filter_map(|name| self.servers.get(name)).collect()
                }
            };
            let answers = join_all(wanted.iter().map(|server| self.offers(server))).await;
            for (server, answer) in wanted.into_iter().zip(answers) {
                match answer {
                    Ok(offers) => {
                        let tools = offers.by_name.values().map(|offer| &offer.tool);
                        catalog.tools.tools.extend(tools.map(|tool| (tool.name.clone(), Arc::clone(tool))));
                    }
                    Err(failure) => {
                        catalog.absent.push((server.name.clone(), self.secrets.redactor().failure(failure)));
                    }
                }
            }
            catalog.absent.sort_by(|(a, _), (b, _)| a.cmp(b));
            catalog
        })
    }

    fn search(&self, words: &str, limit: usize) -> Vec<ToolName> {
        Registry::search(self, words, limit).into_iter().map(|hit| hit.name).collect()
    }

    fn definition(&self, tool: &ToolName) -> Option<Hash> {
        Some(self.servers.get(server_of(tool))?.offer(tool)?.tool.definition)
    }

    fn admit(&self, tool: &ToolName, applicant: &Arc<dyn Applicant>) -> Admission {
        if !self.servers.contains_key(server_of(tool)) {
            // There is nothing to wait for; the call itself says that there is no such server.
            return Admission::Granted(Berth::free());
        }
        self.quay.admit(tool, applicant)
    }

    fn call(&self, call: Call, berth: Berth) -> Reply<'_, Return> {
        // Noted at once: who asks for an end before the call is begun is heard too.
        let entered = self.underway.enter(&call.id);
        Box::pin(async move {
            let answer = self.make(call, entered).await;
            drop(berth);
            answer
        })
    }

    fn cancel(&self, call: &CallId) {
        self.underway.cancel(call);
    }

    fn report(&self) -> Vec<ServerReport> {
        Registry::report(self)
    }

    fn reset(&self, server: &str) -> bool {
        self.servers.get(server).inspect(|server| server.breaker.reset()).is_some()
    }

    fn redactor(&self) -> Redactor {
        self.secrets.redactor()
    }
}

/// The part of a tool's name before the first dot.
fn server_of(tool: &ToolName) -> &str {
    tool.as_str().split('.').next().unwrap_or_default()
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("servers", &self.servers.keys()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Entrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrant").field("name", &self.name).finish_non_exhaustive()
    }
}
