//! All tools behind one port: the catalog, the limits, and the one path every call takes.
//!
//! A server that hangs, lies or dies affects only its own calls. [`call`] is the path, [`offered_tool`] reads the
//! definitions of servers, [`breaker`] pauses a server that keeps failing, [`report`] shows the state of all of them.

pub mod breaker;
mod call;
mod definitions;
mod offered_tool;
mod once;
mod redacting_reporter;
mod report;
mod running_calls;
mod secrets;
mod server;
mod text;

use crate::config::{CallLimits, ServerSettings};
use crate::connector::Connector;
use crate::limit::CallLimiter;
use crate::search::{SearchHit, ToolIndex};
use breaker::BreakerPass;
use definitions::DefinitionStore;
use futures::future::join_all;
use running_calls::RunningCalls;
use rutter_core::hash::Hash;
use rutter_core::id::ToolName;
use rutter_core::port::register::Register;
use rutter_core::port::tools::{
    Admission, CallPermit, CallReturn, CatalogSnapshot, PermitWaiter, PortFuture, ServerSelection, ToolCallId,
    ToolCallRequest, ToolGateway,
};
use rutter_core::redact::Redactor;
use rutter_core::time::Timestamp;
use rutter_core::tool::report::ServerReport;
use rutter_core::tool::{FailureCategory, ToolFailure};
use server::{RegisteredServer, RegistryShared};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use secrets::SecretResolver;

/// For all servers together, however many there are.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(15);

pub type RegistryClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

pub struct ToolRegistry {
    servers: BTreeMap<String, Arc<RegisteredServer>>,
    limiter: CallLimiter,
    secrets: Arc<dyn SecretResolver>,
    clock: RegistryClock,
    running_calls: RunningCalls,
    shared: Arc<RegistryShared>,
    /// The search index, and the edition of the tools that it was built from.
    index: Mutex<(u64, Arc<ToolIndex>)>,
    /// Numbers calls that belong to no execution.
    scratch: AtomicU64,
}

/// A server of any kind, under the operator's name for it.
pub struct ServerRegistration {
    pub name: String,
    pub connector: Arc<dyn Connector>,
    pub common: ServerSettings,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("two servers are named {0:?}; rename one of them, even if they are of different kinds")]
    Twice(String),
    #[error("{0:?} cannot be the name of a server: expected letters, digits, `_` and `-`")]
    Name(String),
}

impl ToolRegistry {
    /// Must be called within a runtime.
    pub fn new(
        entrants: Vec<ServerRegistration>,
        limits: &CallLimits,
        secrets: Arc<dyn SecretResolver>,
        clock: RegistryClock,
    ) -> Result<ToolRegistry, Error> {
        let office = Arc::new(RegistryShared::default());
        let mut servers = BTreeMap::new();
        let mut settings = BTreeMap::new();
        for ServerRegistration { name, connector, common } in entrants {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if name.is_empty() || !name.chars().all(is_plain) {
                return Err(Error::Name(name));
            }
            settings.insert(name.clone(), common.clone());
            match servers.entry(name.clone()) {
                Entry::Occupied(_) => return Err(Error::Twice(name)),
                Entry::Vacant(entry) => {
                    entry.insert(Arc::new(RegisteredServer::new(name, connector, common, limits, Arc::clone(&office))));
                }
            }
        }
        Ok(ToolRegistry {
            servers,
            limiter: CallLimiter::new(limits, settings),
            secrets,
            clock,
            running_calls: RunningCalls::default(),
            shared: office,
            index: Mutex::default(),
            scratch: AtomicU64::new(0),
        })
    }

    /// The tools that match some words best, among those that were listed so far.
    pub fn search(&self, query: &str, limit: usize) -> Vec<SearchHit> {
        self.index().search(query, limit)
    }

    /// Keeps the definitions of all servers in the register, and takes what is there as last known. Changes are recorded in
    /// the ledger's own journal. To be called once, before anything else.
    pub async fn keep_definitions(&self, register: Arc<dyn Register>) -> Result<(), rutter_core::port::Error> {
        let store = DefinitionStore::new(register, Arc::clone(&self.clock));
        for (name, served) in store.load().await? {
            if let Some(server) = self.servers.get(&name) {
                server.restore(&served);
            }
        }
        self.shared.edition.fetch_add(1, Ordering::Release);
        _ = self.shared.definitions.set(store);
        Ok(())
    }

    /// Asks servers whose tools are not known as they are now, however long they take to start. For an operator who wants
    /// to know; everybody else gets what was known last.
    pub async fn refresh(&self, servers: &ServerSelection) {
        let wanted = self.servers.values().filter(|server| match servers {
            ServerSelection::All => true,
            ServerSelection::Named(names) => names.contains(&server.name),
        });
        join_all(wanted.map(|server| self.offers(server))).await;
    }

    /// Asks those of the servers that have never listed their tools, however long they take to start. For a process that
    /// ends with its command: it cannot ask again when a slow server is there.
    pub async fn list_unknown(&self, names: &BTreeSet<String>) {
        let unknown = |server: &&Arc<RegisteredServer>| names.contains(&server.name) && server.last_known().is_none();
        join_all(self.servers.values().filter(unknown).map(|server| self.offers(server))).await;
    }

    /// Ends all servers at once. Those that do not end in time are abandoned.
    pub async fn close(&self) {
        self.shared.closing.cancel();
        self.shared.questions.close();
        let closing = join_all(self.servers.values().map(|server| server.connector.close()));
        let all = async { tokio::join!(closing, self.shared.questions.wait()) };
        if tokio::time::timeout(CLOSE_TIMEOUT, all).await.is_err() {
            tracing::warn!("some servers did not end within {} s", CLOSE_TIMEOUT.as_secs());
        }
    }

    /// The tools of these servers, each waited for as long as its state deserves, and no longer than this.
    pub async fn catalog_within(&self, servers: ServerSelection, wait_max: Duration) -> CatalogSnapshot {
        let mut catalog = CatalogSnapshot::default();
        let wanted: Vec<&Arc<RegisteredServer>> = match servers {
            ServerSelection::All => self.servers.values().collect(),
            ServerSelection::Named(names) => {
                let (there, unknown): (Vec<_>, Vec<_>) =
                    names.into_iter().partition(|name| self.servers.contains_key(name));
                let failure = || ToolFailure::new(FailureCategory::NotFound, "no server of this name is configured");
                catalog.absent = unknown.into_iter().map(|name| (name, failure())).collect();
                there.iter().filter_map(|name| self.servers.get(name)).collect()
            }
        };
        let answers = join_all(wanted.iter().map(|server| self.offers_or_last_known(server, wait_max))).await;
        for (server, (offers, failure)) in wanted.into_iter().zip(answers) {
            let failure = failure.map(|failure| self.secrets.redactor().failure(failure));
            if let Some(failure) = &failure {
                catalog.tools.unreachable.insert(server.name.clone(), failure.message.clone());
            }
            match (offers, failure) {
                (Some(offers), _) => {
                    let tools = offers.by_name.values().map(|offer| &offer.tool);
                    catalog.tools.tools.extend(tools.map(|tool| (tool.name.clone(), Arc::clone(tool))));
                }
                (None, Some(failure)) => catalog.absent.push((server.name.clone(), failure)),
                (None, None) => {}
            }
        }
        catalog.absent.sort_by(|(a, _), (b, _)| a.cmp(b));
        catalog
    }

    fn index(&self) -> Arc<ToolIndex> {
        // Read before the tools are: a change meanwhile makes a newer edition.
        let edition = self.shared.edition.load(Ordering::Acquire);
        let mut stored = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.0 != edition {
            let known: Vec<_> = self.servers.values().filter_map(|server| server.last_known()).collect();
            let offers = known.iter().flat_map(|offers| offers.by_name.values());
            let index = ToolIndex::new(offers.map(|offer| (Arc::clone(&offer.tool), offer.title.clone())));
            *stored = (edition, Arc::new(index));
        }
        Arc::clone(&stored.1)
    }
}

impl ToolGateway for ToolRegistry {
    fn catalog(&self, servers: ServerSelection) -> PortFuture<'_, CatalogSnapshot> {
        Box::pin(self.catalog_within(servers, Duration::MAX))
    }

    fn search(&self, words: &str, limit: usize) -> Vec<ToolName> {
        ToolRegistry::search(self, words, limit).into_iter().map(|hit| hit.name).collect()
    }

    fn definition(&self, tool: &ToolName) -> Option<Hash> {
        Some(self.servers.get(server_of(tool))?.verified_offer(tool)?.tool.definition)
    }

    fn admit(&self, tool: &ToolName, applicant: &Arc<dyn PermitWaiter>) -> Admission {
        let Some(server) = self.servers.get(server_of(tool)) else {
            // There is nothing to wait for; the call itself reports that there is no such server.
            return Admission::Granted(CallPermit::unlimited());
        };
        if let Some(failure) = server.pause((self.clock)()) {
            return Admission::Paused(self.secrets.redactor().failure(failure));
        }
        match self.limiter.admit(tool, applicant) {
            // From here on it holds the trial of an open breaker, so that no other call is recorded and then refused.
            Admission::Granted(permit) => match server.breaker.enter((self.clock)()) {
                Ok(pass) => Admission::Granted(CallPermit::new(AdmittedCall { permit, pass })),
                Err(failure) => Admission::Paused(self.secrets.redactor().failure(failure)),
            },
            refused => refused,
        }
    }

    fn admit_paused(&self, tool: &ToolName, applicant: &Arc<dyn PermitWaiter>) -> Admission {
        match self.servers.contains_key(server_of(tool)) {
            true => self.limiter.admit(tool, applicant),
            false => Admission::Granted(CallPermit::unlimited()),
        }
    }

    fn call(&self, call: ToolCallRequest, permit: CallPermit) -> PortFuture<'_, CallReturn> {
        // Registered at once, so that a cancellation before the call begins takes effect.
        let entered = self.running_calls.enter(&call.id);
        Box::pin(async move {
            let (permit, pass) = AdmittedCall::split(permit);
            let answer = self.make(call, entered, pass).await;
            drop(permit);
            answer
        })
    }

    fn cancel(&self, call: &ToolCallId) {
        self.running_calls.cancel(call);
    }

    fn report(&self) -> Vec<ServerReport> {
        ToolRegistry::report(self)
    }

    fn reset(&self, server: &str) -> bool {
        self.servers.get(server).inspect(|server| server.breaker.reset()).is_some()
    }

    fn redactor(&self) -> Redactor {
        self.secrets.redactor()
    }
}

/// A permit of a call that its server's circuit breaker lets through.
struct AdmittedCall {
    permit: CallPermit,
    pass: BreakerPass,
}

impl AdmittedCall {
    fn split(permit: CallPermit) -> (CallPermit, Option<BreakerPass>) {
        match permit.held::<AdmittedCall>() {
            Ok(AdmittedCall { permit, pass }) => (permit, Some(pass)),
            Err(permit) => (permit, None),
        }
    }
}

/// The part of a tool's name before the first dot.
fn server_of(tool: &ToolName) -> &str {
    tool.as_str().split('.').next().unwrap_or_default()
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRegistry").field("servers", &self.servers.keys()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRegistration").field("name", &self.name).finish_non_exhaustive()
    }
}
