//! A store, an engine and counting tools for one test.

use crate::driving::flaky::Flaky;
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, ToolName, WorkerId};
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::port::tools::{
    Admission, CallPermit, CallReturn, CatalogSnapshot, PermitWaiter, PortFuture, ServerSelection, ToolCallId,
    ToolCallRequest, ToolGateway,
};
use rutter_core::redact::Redactor;
use rutter_core::time::Millis;
use rutter_core::tool::Elicitation;
use rutter_core::tool::report::ServerReport;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolCatalog, ToolFailure};
use rutter_engine::control::ControlAction;
use rutter_engine::submit::PlanText;
use rutter_engine::{Engine, EngineOptions, Error, StartRequest, SystemClock};
use rutter_store::SqliteStore;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{Notify, Semaphore};

/// What the tools do.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Never answer.
    pub hang: Vec<&'static str>,
    /// Answer when released.
    pub hold: Vec<&'static str>,
    /// The same for every call, not only the first.
    pub hold_all: Vec<&'static str>,
    /// Answer when cancelled, and say that it was done.
    pub hang_until_cancelled: Vec<&'static str>,
    pub fail: Vec<&'static str>,
    /// So many appends fail with this error.
    pub store_fails: Option<(u32, rutter_core::port::Error)>,
    pub commands_before_load: u32,
    pub fail_once: Vec<&'static str>,
    /// Give a ticket, then never answer.
    pub ticket: Vec<&'static str>,
    /// Ask for a colour, and give the answer as the result.
    pub ask: Vec<&'static str>,
}

pub struct EngineFixture {
    directory: TempDir,
    pub engine: Engine,
    tools: Arc<Counting>,
    counts: Arc<Mutex<BTreeMap<String, u32>>>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl EngineFixture {
    pub async fn new(script: Script) -> EngineFixture {
        EngineFixture::with(script, |_| {}).await
    }

    pub async fn with(script: Script, change: impl FnOnce(&mut EngineOptions)) -> EngineFixture {
        let directory = tempfile::tempdir().unwrap();
        let counts = Arc::default();
        let mut options = EngineOptions::new(WorkerId::new("first"));
        change(&mut options);
        let (engine, tools, runtime) = begin(&directory, script, &counts, options).await;
        EngineFixture { directory, engine, tools, counts, runtime: Some(runtime) }
    }

    /// Ends the engine without a shutdown, and starts another on the same files.
    pub async fn crash(self, script: Script) -> EngineFixture {
        self.crash_and(script, Duration::ZERO, None).await
    }

    /// The same, with no engine running for a while.
    pub async fn crash_for(self, span: Duration, hold: Option<&str>) -> EngineFixture {
        self.crash_and(Script::default(), span, hold.map(str::to_owned)).await
    }

    async fn crash_and(self, script: Script, span: Duration, hold: Option<String>) -> EngineFixture {
        let EngineFixture { directory, engine, tools, counts, runtime } = self;
        // Every task ends at once, without any cleanup.
        runtime.unwrap().shutdown_background();
        drop((engine, tools));
        tokio::time::sleep(span).await;
        let options = EngineOptions { hold, ..EngineOptions::new(WorkerId::new("second")) };
        let (engine, tools, runtime) = begin(&directory, script, &counts, options).await;
        EngineFixture { directory, engine, tools, counts, runtime: Some(runtime) }
    }

    pub async fn save(&self, plan: &str) -> PlanId {
        let text = PlanText {
            tenant: tenant(),
            source: plan.as_bytes().to_vec(),
            format: DocumentFormat::Yaml,
            driver: Driver::Server,
        };
        let submitted = self.engine.submit(text, None, None, Actor::agent("pilot")).await;
        submitted.unwrap_or_else(|error| panic!("{error:?}")).id
    }

    pub fn start_of(&self, plan: &PlanId, inputs: Value, request: Option<&str>) -> StartRequest {
        StartRequest {
            tenant: tenant(),
            plan: plan.clone(),
            revision: None,
            inputs: Arc::new(inputs),
            driver: Driver::Server,
            actor: Actor::agent("pilot"),
            request: request.map(str::to_owned),
        }
    }

    pub async fn start(&self, plan: &str) -> ExecutionIdentity {
        let plan = self.save(plan).await;
        let started = self.engine.start(self.start_of(&plan, json!({}), None)).await.unwrap();
        identity(&started.execution)
    }

    pub async fn wait(&self, identity: &ExecutionIdentity) -> ExecutionStatus {
        let status = self.engine.wait(identity, Millis::seconds(20)).await.unwrap();
        status.unwrap_or_else(|| panic!("it neither ended nor waits"))
    }

    pub async fn signal(&self, identity: &ExecutionIdentity, signal: ExecutionInput) -> Result<(), Error> {
        self.engine.command(identity, Actor::person("operator"), signal, None).await
    }

    pub async fn control(&self, identity: &ExecutionIdentity, control: ControlAction) -> Result<(), Error> {
        let actor = Actor::person("operator");
        self.engine.control(identity, actor, control, "because".into(), None, None).await
    }

    pub fn calls(&self, tool: &str) -> u32 {
        self.counts.lock().unwrap().get(tool).copied().unwrap_or(0)
    }

    pub async fn ticket_is_on_record(&self) {
        self.tools.tickets.notified().await;
    }

    pub fn cancelled(&self) -> u32 {
        self.tools.cancelled.load(Ordering::Relaxed)
    }

    /// Changes the definition of a tool.
    pub fn change(&self, tool: &str) {
        let mut catalog = self.tools.catalog.lock().unwrap();
        let changed = catalog.tools.get_mut(tool).unwrap();
        Arc::make_mut(changed).definition = Hash::of(&[b"another"]);
    }

    pub fn release_all(&self) {
        self.tools.open.add_permits(1_000);
    }

    /// Waits past transient states.
    pub async fn wait_for(&self, identity: &ExecutionIdentity, status: ExecutionStatus) -> ExecutionStatus {
        for _ in 0..1_000 {
            let found = self.engine.view(identity).await.unwrap().status;
            if found == status {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.engine.view(identity).await.unwrap().status
    }

    pub async fn until_settled(&self, identity: &ExecutionIdentity, steps: usize) {
        for _ in 0..1_000 {
            if self.engine.view(identity).await.unwrap().settled >= steps {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the steps did not settle in time");
    }

    /// Waits until the first step has this status.
    pub async fn until_step(&self, identity: &ExecutionIdentity, status: &str) {
        for _ in 0..1_000 {
            if self.engine.view(identity).await.unwrap().steps[0].status == status {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the step did not become {status} in time");
    }

    /// The bytes of all files of the store.
    pub fn bytes_on_disk(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.directory.path()).unwrap();
        files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap_or_default()).collect()
    }

    pub fn release(&self) {
        self.tools.held.notify_waiters();
    }

    pub async fn until(&self, holds: impl Fn(&EngineFixture) -> bool) {
        for _ in 0..2_000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the condition did not hold in time");
    }

    pub async fn close(mut self) {
        self.engine.close().await;
        self.runtime.take().unwrap().shutdown_background();
    }
}

async fn begin(
    directory: &TempDir,
    script: Script,
    counts: &Arc<Mutex<BTreeMap<String, u32>>>,
    options: EngineOptions,
) -> (Engine, Arc<Counting>, tokio::runtime::Runtime) {
    let clock = SystemClock::system();
    let mut store = rutter_store::SqliteOptions::new(directory.path(), Arc::new(move || clock.now()));
    store.reserve_bytes = 0;
    store.free_bytes_min = 0;
    let store = open(store).await;
    let (store_fails, commands_before_load) = (script.store_fails.clone(), script.commands_before_load);
    let tools = Arc::new(Counting {
        script,
        counts: Arc::clone(counts),
        held: Notify::new(),
        tickets: Notify::new(),
        cancels: Notify::new(),
        cancelled: AtomicU32::new(0),
        open: Semaphore::new(0),
        catalog: Mutex::new(catalog()),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let engine = {
        let _entered = runtime.enter();
        let (failures, error) = store_fails.unwrap_or((0, rutter_core::port::Error::Closed));
        let (journal, failures, form) = (store.clone(), failures.into(), Default::default());
        let journal = Arc::new(Flaky { journal, failures, error, commands_before_load, posted: form });
        runtime.spawn(Engine::run(journal, store, tools.clone(), clock, options))
    };
    (engine.await.unwrap().unwrap(), tools, runtime)
}

/// The store of a process that has just died may need a moment to let go of the file.
async fn open(options: rutter_store::SqliteOptions) -> Arc<SqliteStore> {
    for _ in 0..400 {
        match SqliteStore::open(options.clone()) {
            Ok(store) => return Arc::new(store),
            Err(rutter_core::port::Error::Locked { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the earlier store does not release its lock");
}

pub fn tenant() -> TenantId {
    TenantId::new("default")
}

pub fn identity(execution: &ExecutionId) -> ExecutionIdentity {
    ExecutionIdentity { tenant: tenant(), execution: execution.clone() }
}

fn catalog() -> ToolCatalog {
    let catalog = json!({ "tools": [
        { "name": "fake.once", "safety": "once" },
        { "name": "fake.read", "safety": "read_only" },
        { "name": "fake.undo", "safety": "idempotent" },
    ] });
    ToolCatalog::from_json(&catalog).unwrap()
}

/// Tools in the process that count the calls they get.
pub struct Counting {
    script: Script,
    counts: Arc<Mutex<BTreeMap<String, u32>>>,
    held: Notify,
    /// Notified when a ticket is recorded.
    tickets: Notify,
    cancels: Notify,
    cancelled: AtomicU32,
    open: Semaphore,
    catalog: Mutex<ToolCatalog>,
}

impl ToolGateway for Counting {
    fn catalog(&self, _servers: ServerSelection) -> PortFuture<'_, CatalogSnapshot> {
        let tools = self.catalog.lock().unwrap().clone();
        Box::pin(async move { CatalogSnapshot { tools, absent: Vec::new() } })
    }

    fn search(&self, _words: &str, _limit: usize) -> Vec<ToolName> {
        Vec::new()
    }

    fn report(&self) -> Vec<ServerReport> {
        Vec::new()
    }

    fn reset(&self, _server: &str) -> bool {
        false
    }

    fn definition(&self, tool: &ToolName) -> Option<Hash> {
        self.catalog.lock().unwrap().tools.get(tool).map(|tool| tool.definition)
    }

    fn admit(&self, _tool: &ToolName, _applicant: &Arc<dyn PermitWaiter>) -> Admission {
        Admission::Granted(CallPermit::unlimited())
    }

    fn call(&self, call: ToolCallRequest, _permit: CallPermit) -> PortFuture<'_, CallReturn> {
        Box::pin(async move {
            let held = self.held.notified();
            let name = match &call.ticket {
                Some(ticket) => format!("{} under {ticket}", call.tool),
                None => call.tool.to_string(),
            };
            *self.counts.lock().unwrap().entry(name).or_default() += 1;
            let does = |list: &[&str]| list.contains(&call.tool.as_str());
            if does(&self.script.ticket) {
                call.reporter.accepted("t-1".to_owned()).await;
                self.tickets.notify_one();
            }
            if does(&self.script.ask) {
                let schema = json!({ "type": "object", "required": ["colour"] });
                let question = Elicitation { message: "which colour?".into(), schema: Arc::new(schema) };
                let answer = call.reporter.ask(question).await.unwrap_or(json!("no answer"));
                return CallReturn::Outcome(CallOutcome::Done { result: Arc::new(answer), cost_micros: 0 });
            }
            if does(&self.script.hang) || does(&self.script.ticket) {
                std::future::pending::<()>().await;
            }
            if does(&self.script.hang_until_cancelled) {
                self.cancels.notified().await;
            }
            if does(&self.script.hold_all) {
                self.open.acquire().await.unwrap().forget();
            }
            if does(&self.script.hold) && self.calls(call.tool.as_str()) == 1 {
                held.await;
            }
            let fails =
                does(&self.script.fail) || (does(&self.script.fail_once) && self.calls(call.tool.as_str()) == 1);
            CallReturn::Outcome(match fails {
                true => CallOutcome::NotDone(ToolFailure::new(FailureCategory::ToolError, "no luck")),
                false => CallOutcome::Done { result: Arc::new(json!({ "n": 7 })), cost_micros: 0 },
            })
        })
    }

    fn cancel(&self, _call: &ToolCallId) {
        self.cancelled.fetch_add(1, Ordering::Relaxed);
        self.cancels.notify_one();
    }

    fn redactor(&self) -> Redactor {
        Redactor::standard()
    }
}

impl Counting {
    fn calls(&self, tool: &str) -> u32 {
        self.counts.lock().unwrap().get(tool).copied().unwrap_or(0)
    }
}
