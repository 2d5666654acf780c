//! Servers that do as a test says and count what they did, and a registry over them.

use rutter_core::execution::ExecutionIdentity;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, StepId, TenantId, ToolName};
use rutter_core::journal::event::CallSide;
use rutter_core::port::tools::{
    CallPermit, CallReporter, CallReturn, CatalogSnapshot, PermitWaiter, PortFuture, ServerSelection, ToolCallId,
    ToolCallRequest, ToolGateway, ToolProgress,
};
use rutter_core::redact::Redactor;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::Elicitation;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use rutter_tools::config::{CallLimits, ServerSettings};
use rutter_tools::connector::{Connector, ConnectorRequest, ConnectorState, ServedTool};
use rutter_tools::registry::{SecretResolver, ServerRegistration, ToolRegistry};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

pub type Script = Arc<dyn Fn(ConnectorRequest) -> PortFuture<'static, CallOutcome> + Send + Sync>;

/// A server that the test controls.
pub struct Puppet {
    pub tools: Mutex<Vec<ServedTool>>,
    pub script: Mutex<Script>,
    pub listing: Mutex<Listing>,
    pub lists: AtomicUsize,
    pub calls: AtomicUsize,
    pub closed: AtomicUsize,
    pub state: Mutex<ConnectorState>,
    /// Why it takes no calls, and for how long.
    pub pause: Mutex<Option<ToolFailure>>,
    /// The process that is running, and whether it announces changes.
    pub process: AtomicU64,
    pub announces: AtomicBool,
    changes: watch::Sender<u64>,
}

#[derive(Clone)]
pub enum Listing {
    Answers,
    Hangs,
    Panics,
    Fails(ToolFailure),
}

impl Puppet {
    pub fn new(tools: Vec<ServedTool>) -> Arc<Puppet> {
        Arc::new(Puppet {
            tools: Mutex::new(tools),
            script: Mutex::new(Arc::new(|_| Box::pin(async { done(json!({"ok": true})) }))),
            listing: Mutex::new(Listing::Answers),
            lists: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
            state: Mutex::new(ConnectorState::Ready),
            pause: Mutex::default(),
            process: AtomicU64::new(1),
            announces: AtomicBool::new(true),
            changes: watch::Sender::new(0),
        })
    }

    /// What every call does from now on.
    pub fn on_call<F>(&self, script: impl Fn(ConnectorRequest) -> F + Send + Sync + 'static)
    where
        F: Future<Output = CallOutcome> + Send + 'static,
    {
        *self.script.lock().unwrap() = Arc::new(move |request| Box::pin(script(request)));
    }

    pub fn serve(&self, tools: Vec<ServedTool>) {
        *self.tools.lock().unwrap() = tools;
        self.changes.send_modify(|count| *count += 1);
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub fn lists(&self) -> usize {
        self.lists.load(Ordering::SeqCst)
    }
}

impl Connector for Puppet {
    fn list(&self) -> PortFuture<'_, Result<Vec<ServedTool>, ToolFailure>> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        let listing = self.listing.lock().unwrap().clone();
        Box::pin(async move {
            // Asked of a process or over a wire, an answer is never there at once.
            tokio::task::yield_now().await;
            match listing {
                Listing::Answers => Ok(self.tools.lock().unwrap().clone()),
                Listing::Hangs => std::future::pending().await,
                Listing::Panics => panic!("as the test wants it"),
                Listing::Fails(failure) => Err(failure),
            }
        })
    }

    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, CallOutcome> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let script = Arc::clone(&self.script.lock().unwrap());
        script(request)
    }

    fn ready(&self) -> PortFuture<'_, Result<u64, ToolFailure>> {
        Box::pin(async { Ok(self.process.load(Ordering::SeqCst)) })
    }

    fn pause(&self) -> Option<ToolFailure> {
        self.pause.lock().unwrap().clone()
    }

    fn announces_changes(&self) -> bool {
        self.announces.load(Ordering::SeqCst)
    }

    fn state(&self) -> ConnectorState {
        self.state.lock().unwrap().clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn close(&self) -> PortFuture<'_, ()> {
        self.closed.fetch_add(1, Ordering::SeqCst);
        let hangs = matches!(*self.listing.lock().unwrap(), Listing::Hangs);
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
        })
    }
}

pub fn served(name: &str, definition: Value) -> ServedTool {
    ServedTool { name: name.to_owned(), definition: definition.as_object().unwrap().clone(), result: None }
}

pub fn plain(name: &str) -> ServedTool {
    served(name, json!({"description": "Does something", "inputSchema": {"type": "object"}}))
}

pub fn done(result: Value) -> CallOutcome {
    CallOutcome::Done { result: Arc::new(result), cost_micros: 0 }
}

pub fn not_done(category: FailureCategory) -> CallOutcome {
    CallOutcome::NotDone(ToolFailure::new(category, "as the test wants it"))
}

/// An execution that waits for nothing.
pub fn applicant() -> Arc<dyn PermitWaiter> {
    struct Applying(TenantId);

    impl PermitWaiter for Applying {
        fn tenant(&self) -> &TenantId {
            &self.0
        }

        fn priority(&self) -> i32 {
            0
        }

        fn wake(&self) {}
    }

    Arc::new(Applying(TenantId::new("a")))
}

/// Fills in secrets from a table, and redacts all of them.
pub struct Safe(pub BTreeMap<String, String>);

impl Safe {
    fn filled(&self, value: &Value) -> Result<Value, ToolFailure> {
        match value {
            Value::Object(fields) if fields.len() == 1 && fields.contains_key("secret") => {
                let name = fields["secret"].as_str().unwrap_or_default();
                let missing =
                    || ToolFailure::new(FailureCategory::InvalidInput, format!("there is no secret {name:?}"));
                self.0.get(name).map(|secret| Value::from(secret.as_str())).ok_or_else(missing)
            }
            Value::Object(fields) => fields.iter().map(|(key, value)| Ok((key.clone(), self.filled(value)?))).collect(),
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            other => Ok(other.clone()),
        }
    }
}

impl SecretResolver for Safe {
    fn fill(&self, value: &Value) -> PortFuture<'_, Result<Value, ToolFailure>> {
        Box::pin(std::future::ready(self.filled(value)))
    }

    fn redactor(&self) -> Redactor {
        Redactor::standard().with_secrets(self.0.clone())
    }
}

/// A registry over puppets, with a clock that stands still unless it is moved.
pub struct RegistryFixture {
    pub registry: ToolRegistry,
    pub now: Arc<AtomicI64>,
    pub secrets: Arc<Safe>,
}

/// A secret that hostile servers echo: it must not come out of the registry.
pub const CANARY: &str = "canary-9f2b77d1c0aa";

impl RegistryFixture {
    pub fn new(puppets: &[(&str, &Arc<Puppet>)]) -> RegistryFixture {
        let entrants = puppets.iter().map(|(name, puppet)| entrant(name, puppet, ServerSettings::default()));
        RegistryFixture::with(entrants.collect(), &CallLimits::default())
    }

    pub fn with(entrants: Vec<ServerRegistration>, limits: &CallLimits) -> RegistryFixture {
        let now = Arc::new(AtomicI64::new(1_000_000));
        let clock = Arc::clone(&now);
        let secrets = Arc::new(Safe(BTreeMap::from([("token".to_owned(), CANARY.to_owned())])));
        let safe: Arc<dyn SecretResolver> = Arc::<Safe>::clone(&secrets);
        let clock = Arc::new(move || Timestamp(clock.load(Ordering::SeqCst)));
        let registry = ToolRegistry::new(entrants, limits, safe, clock).unwrap();
        RegistryFixture { registry, now, secrets }
    }

    pub fn pass(&self, span: Millis) {
        self.now.fetch_add(span.0 as i64, Ordering::SeqCst);
    }

    pub async fn catalog(&self) -> CatalogSnapshot {
        self.registry.catalog(ServerSelection::All).await
    }

    /// Calls a tool as a plan would that was checked just before.
    pub async fn call(&self, tool: &str, parameters: Value) -> CallOutcome {
        self.catalog().await;
        let definition = self.registry.definition(&ToolName::new(tool)).unwrap_or(Hash::ZERO);
        match self.registry.call(call(tool, definition, parameters), CallPermit::unlimited()).await {
            CallReturn::Outcome(outcome) => outcome,
            CallReturn::Drifted { found } => panic!("drifted to {found}"),
        }
    }
}

pub fn entrant(name: &str, puppet: &Arc<Puppet>, common: ServerSettings) -> ServerRegistration {
    let connector: Arc<dyn Connector> = Arc::<Puppet>::clone(puppet);
    ServerRegistration { name: name.to_owned(), connector, common }
}

pub fn call_id(execution: &str, step: &str) -> ToolCallId {
    let identity = ExecutionIdentity { tenant: TenantId::new("tenant"), execution: ExecutionId::new(execution) };
    ToolCallId { identity, part: PartId::whole(StepId::new(step)), side: CallSide::Do, attempt: 1 }
}

pub fn call(tool: &str, definition: Hash, parameters: Value) -> ToolCallRequest {
    ToolCallRequest {
        id: call_id("exec_1", "step"),
        tool: ToolName::new(tool),
        definition,
        parameters: Arc::new(parameters),
        key: Hash::of(&[b"key"]),
        timeout: Millis::seconds(60),
        now: Timestamp(7),
        ticket: None,
        continuation: None,
        reporter: Arc::new(Heard::default()),
    }
}

/// Records what is reported.
#[derive(Default)]
pub struct Heard(pub Mutex<Vec<String>>);

impl CallReporter for Heard {
    fn accepted(&self, ticket: String) -> PortFuture<'_, ()> {
        self.0.lock().unwrap().push(format!("accepted {ticket}"));
        Box::pin(std::future::ready(()))
    }

    fn ask(&self, question: Elicitation) -> PortFuture<'_, Option<Value>> {
        self.0.lock().unwrap().push(format!("asked {} {}", question.message, question.schema));
        Box::pin(std::future::ready(Some(json!({"answer": 1}))))
    }

    fn progress(&self, progress: ToolProgress) {
        self.0.lock().unwrap().push(format!("progress {}", progress.message.unwrap_or_default()));
    }

    fn late(&self, outcome: CallOutcome) {
        self.0.lock().unwrap().push(format!("late {outcome:?}"));
    }
}
