//! A store, an engine and counting tools for one test.

use crate::driving::flaky::Flaky;
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, ToolName, WorkerId};
use rutter_core::journal::event::Event;
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::policy::OperatorPolicy;
use rutter_core::port::journal::IdempotentRequest;
use rutter_core::port::query::{EntryFilter, Pagination, StoreQuery};
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::port::tools::{
    Admission, CallPermit, CallReporter, CallReturn, CatalogSnapshot, PermitWaiter, PortFuture, ServerSelection,
    ToolCallId, ToolCallRequest, ToolGateway,
};
use rutter_core::port::upkeep::{ErasureRequest, StoreMaintenance};
use rutter_core::redact::Redactor;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::Elicitation;
use rutter_core::tool::report::ServerReport;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolCatalog, ToolFailure};
use rutter_engine::clock::ClockSource;
use rutter_engine::control::ControlAction;
use rutter_engine::gaps::{self, StoredGaps};
use rutter_engine::submit::PlanText;
use rutter_engine::{Engine, EngineOptions, Error, StartRequest, SystemClock};
use rutter_store::SqliteStore;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
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
    /// Take no call the first [`PAUSES`] times that one is to be made.
    pub pause: Vec<&'static str>,
    /// Give a ticket, then never answer.
    pub ticket: Vec<&'static str>,
    /// Ask for a colour, and give the answer as the result.
    pub ask: Vec<&'static str>,
    /// As `ask`, with what continues the call in another process.
    pub ask_and_keep: Vec<&'static str>,
}

/// How often a tool of [`Script::pause`] takes no call.
pub const PAUSES: u32 = 2;

pub struct EngineFixture {
    directory: TempDir,
    pub engine: Engine,
    tools: Arc<Counting>,
    counts: Arc<Mutex<BTreeMap<String, u32>>>,
    runtime: Option<tokio::runtime::Runtime>,
    store: Arc<SqliteStore>,
    policy: Arc<OperatorPolicy>,
}

impl EngineFixture {
    pub async fn new(script: Script) -> EngineFixture {
        EngineFixture::with(script, |_| {}).await
    }

    pub async fn with(script: Script, change: impl FnOnce(&mut EngineOptions)) -> EngineFixture {
        EngineFixture::on(SystemClock::system(), script, change).await
    }

    /// The same with a clock that the test sets.
    pub async fn on(clock: SystemClock, script: Script, change: impl FnOnce(&mut EngineOptions)) -> EngineFixture {
        let directory = tempfile::tempdir().unwrap();
        let counts = Arc::default();
        let mut options = EngineOptions::new(WorkerId::new("first"));
        change(&mut options);
        let policy = Arc::clone(&options.policy);
        let (engine, tools, store, runtime) = begin(&directory, script, &counts, options, clock).await;
        EngineFixture { directory, engine, tools, counts, runtime: Some(runtime), store, policy }
    }

    /// Ends the engine without a shutdown, and starts another on the same files.
    pub async fn crash(self, script: Script) -> EngineFixture {
        self.crash_and(script, Duration::ZERO, false).await
    }

    /// The same, with no engine running for a while, which counts as days if it is long.
    pub async fn crash_for(self, span: Duration, is_long: bool) -> EngineFixture {
        self.crash_and(Script::default(), span, is_long).await
    }

    /// The same, and the next engine has another clock.
    pub async fn crash_under(self, clock: SystemClock) -> EngineFixture {
        let EngineFixture { directory, engine, tools, counts, runtime, store, policy } = self;
        runtime.unwrap().shutdown_background();
        drop((engine, tools, store));
        let store = open_store(&directory).await;
        let newest = store.entries(&tenant(), EntryFilter::default(), Pagination::first(1)).await.unwrap();
        drop(store);
        let mut options = EngineOptions { policy: Arc::clone(&policy), ..EngineOptions::new(WorkerId::new("second")) };
        options.last_entry = newest.items.first().map(|entry| entry.record.at);
        let (engine, tools, store, runtime) = begin(&directory, Script::default(), &counts, options, clock).await;
        EngineFixture { directory, engine, tools, counts, runtime: Some(runtime), store, policy }
    }

    async fn crash_and(self, script: Script, span: Duration, is_long: bool) -> EngineFixture {
        let EngineFixture { directory, engine, tools, counts, runtime, store, policy } = self;
        // Every task ends at once, without any cleanup.
        runtime.unwrap().shutdown_background();
        drop((engine, tools, store));
        let since = SystemClock::system().now();
        tokio::time::sleep(span).await;
        if is_long {
            // As if that had been days ago.
            let alive_at = Timestamp(since.0 - 3 * 86_400_000);
            let stored = StoredGaps { alive_at: Some(alive_at), gaps: Vec::new() };
            let changes = vec![RegisterChange::put(RegisterKind::Mark, gaps::MARK, json!(stored))];
            let store = open_store(&directory).await;
            store.write(RegisterWrite { tenant: tenant(), at: alive_at, changes, record: None }).await.unwrap();
            drop(store);
            // A process that ends at once; the next one must know of the gap all the same.
            let options = EngineOptions::new(WorkerId::new("short-lived"));
            let clock = SystemClock::system();
            let (engine, tools, store, runtime) = begin(&directory, script.clone(), &counts, options, clock).await;
            runtime.shutdown_background();
            drop((engine, tools, store));
        }
        let options = EngineOptions { policy: Arc::clone(&policy), ..EngineOptions::new(WorkerId::new("second")) };
        let (engine, tools, store, runtime) = begin(&directory, script, &counts, options, SystemClock::system()).await;
        EngineFixture { directory, engine, tools, counts, runtime: Some(runtime), store, policy }
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
            request: request.map(|key| IdempotentRequest { key: key.to_owned(), digest: Hash::of(&[b"start"]) }),
        }
    }

    pub async fn start(&self, plan: &str) -> ExecutionIdentity {
        let plan = self.save(plan).await;
        let started = self.engine.start(self.start_of(&plan, json!({}), None)).await.unwrap();
        identity(&started.execution)
    }

    /// Erases the parameters and results of an execution.
    pub async fn erase(&self, identity: &ExecutionIdentity) {
        let (actor, at) = (Actor::person("operator"), SystemClock::system().now());
        let erasure =
            ErasureRequest { identity: identity.clone(), entries: None, actor, at, reason: "because".to_owned() };
        assert!(self.store.erase(erasure).await.unwrap().payloads > 0, "nothing was erased");
    }

    /// The tool answers a call, the first being 0, after it has ended.
    pub fn answer_late(&self, call: usize, result: Value) {
        let reporter = Arc::clone(&self.tools.reporters.lock().unwrap()[call]);
        reporter.late(CallOutcome::Done { result: Arc::new(result), cost_micros: 0 });
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

    /// Every event of an execution, in order.
    pub async fn events(&self, identity: &ExecutionIdentity) -> Vec<Event> {
        let filter = EntryFilter { execution: Some(identity.execution.clone()), ..EntryFilter::default() };
        let page = self.store.entries(&tenant(), filter, Pagination::first(100)).await.unwrap();
        let mut entries = page.items;
        entries.sort_by_key(|entry| entry.seq);
        entries.into_iter().map(|entry| entry.record.event).collect()
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

    /// What the ledger's own journal says about the clock.
    pub async fn clock_entries(&self) -> Vec<String> {
        for _ in 0..2_000 {
            let page = Pagination::first(100);
            let entries = self.store.entries(&tenant(), EntryFilter::default(), page).await.unwrap();
            let changes = entries.items.into_iter().filter_map(|entry| match entry.record.event {
                Event::SettingChanged { setting, change, .. } if setting == "clock" => Some(change),
                _ => None,
            });
            let changes: Vec<String> = changes.collect();
            if !changes.is_empty() {
                return changes;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Vec::new()
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
    clock: SystemClock,
) -> (Engine, Arc<Counting>, Arc<SqliteStore>, tokio::runtime::Runtime) {
    let store = open_store(directory).await;
    let (store_fails, commands_before_load) = (script.store_fails.clone(), script.commands_before_load);
    let tools = Arc::new(Counting {
        script,
        counts: Arc::clone(counts),
        held: Notify::new(),
        tickets: Notify::new(),
        cancels: Notify::new(),
        cancelled: AtomicU32::new(0),
        pauses: AtomicU32::new(0),
        open: Semaphore::new(0),
        catalog: Mutex::new(catalog()),
        reporters: Mutex::default(),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let engine = {
        let _entered = runtime.enter();
        let (failures, error) = store_fails.unwrap_or((0, rutter_core::port::Error::Closed));
        let (journal, failures, form) = (store.clone(), failures.into(), Default::default());
        let journal = Arc::new(Flaky { journal, failures, error, commands_before_load, posted: form });
        runtime.spawn(Engine::run(journal, store.clone(), store.clone(), tools.clone(), clock, options))
    };
    (engine.await.unwrap().unwrap(), tools, store, runtime)
}

async fn open_store(directory: &TempDir) -> Arc<SqliteStore> {
    let clock = SystemClock::system();
    let mut options = rutter_store::SqliteOptions::new(directory.path(), Arc::new(move || clock.now()));
    (options.reserve_bytes, options.free_bytes_min) = (0, 0);
    open(options).await
}

/// A clock whose wall clock a test sets.
#[derive(Clone, Debug)]
pub struct SetClock(Arc<AtomicI64>, Instant);

impl SetClock {
    pub fn new() -> SetClock {
        SetClock(Arc::default(), Instant::now())
    }

    pub fn clock(&self) -> SystemClock {
        SystemClock::reading(Box::new(self.clone()))
    }

    pub fn set_ahead(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl ClockSource for SetClock {
    fn elapsed(&self) -> Duration {
        self.1.elapsed()
    }

    fn wall(&self) -> Timestamp {
        let elapsed = i64::try_from(self.1.elapsed().as_millis()).unwrap();
        Timestamp(1_800_000_000_000 + elapsed + self.0.load(Ordering::SeqCst))
    }
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
    pauses: AtomicU32,
    open: Semaphore,
    catalog: Mutex<ToolCatalog>,
    /// Of each call, in order.
    reporters: Mutex<Vec<Arc<dyn CallReporter>>>,
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

    fn admit(&self, tool: &ToolName, _applicant: &Arc<dyn PermitWaiter>) -> Admission {
        let is_paused = self.script.pause.contains(&tool.as_str());
        if !is_paused || self.pauses.fetch_add(1, Ordering::SeqCst) >= PAUSES {
            return Admission::Granted(CallPermit::unlimited());
        }
        let failure = ToolFailure::new(FailureCategory::Unavailable, "the circuit breaker is open");
        Admission::Paused(ToolFailure { retry_after: Some(Millis(5)), ..failure })
    }

    fn call(&self, call: ToolCallRequest, _permit: CallPermit) -> PortFuture<'_, CallReturn> {
        Box::pin(async move {
            self.reporters.lock().unwrap().push(Arc::clone(&call.reporter));
            let held = self.held.notified();
            let name = match &call.ticket {
                Some(ticket) => format!("{} under {ticket}", call.tool),
                None if call.continuation.is_some() => format!("{} continued", call.tool),
                None => call.tool.to_string(),
            };
            *self.counts.lock().unwrap().entry(name).or_default() += 1;
            let does = |list: &[&str]| list.contains(&call.tool.as_str());
            if does(&self.script.ticket) {
                call.reporter.accepted("t-1".to_owned()).await;
                self.tickets.notify_one();
            }
            if does(&self.script.ask) || does(&self.script.ask_and_keep) {
                let schema = json!({ "type": "object", "required": ["colour"] });
                let kept = does(&self.script.ask_and_keep).then(|| Arc::new(json!({ "state": "s1" })));
                let continuation = call.continuation.clone().or(kept);
                let question = Elicitation { message: "which colour?".into(), schema: Arc::new(schema), continuation };
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
