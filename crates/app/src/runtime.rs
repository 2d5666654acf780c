//! The composition root: the database, tools, engine and application of one installation, opened and closed together.
//!
//! `rutter serve`, `rutter run` and `rutter mcp --embedded` are built on a [`Runtime`], and so is a Rust program that
//! embeds Rutter:
//!
//! ```
//! use rutter_app::start::NewExecution;
//! use rutter_app::plans::{PlanInput, save_plan};
//! use rutter_app::runtime::{Runtime, RuntimeOptions};
//! use rutter_core::execution::ExecutionIdentity;
//! use rutter_core::plan::Driver;
//! use rutter_core::time::Millis;
//! use serde_json::json;
//! use std::sync::Arc;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! let runtime = Runtime::open(RuntimeOptions::new(directory)).await?;
//! let (app, operator) = (&runtime.app, runtime.operator());
//! let plan = json!({ "name": "remember", "steps": [
//!     { "id": "note", "tool": "memory.store", "parameters": { "text": "the gate code is 4711" } },
//! ] });
//! let text = PlanInput::Text(plan.to_string()).text(&operator.tenant, Driver::Server)?;
//! let saved = save_plan(app, &operator, text, None, None, None).await?;
//! let (plan, inputs) = (saved.id, Arc::new(json!({})));
//! let new = NewExecution { plan, revision: None, inputs, driver: Driver::Server, request_key: None };
//! let started = app.start(&operator, new).await?;
//! let identity = ExecutionIdentity { tenant: operator.tenant, execution: started.execution };
//! let status = app.wait(&identity, Millis::seconds(30)).await?;
//! assert_eq!(status.map(|status| status.as_str()), Some("completed"));
//! runtime.close().await;
//! # Ok(())
//! # }
//! ```

use crate::app::{App, AppParts, AppSettings, TraceCollector};
use crate::auth::{AccessToken, AuthClock};
use crate::keys::InstallationKeys;
use crate::principal::Principal;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{TenantId, WorkerId};
use rutter_core::journal::verify::EntryReceipt;
use rutter_core::limits::CHANGES_MAX;
use rutter_core::policy::OperatorPolicy;
use rutter_core::port::alert_commands::{AlertCommands, NoAlertCommands};
use rutter_core::port::proof::LedgerProof;
use rutter_core::port::query::{EntryFilter, Pagination, StoreQuery};
use rutter_core::port::register::{Register, RegisterChange, RegisterItem, RegisterKind, RegisterWrite};
use rutter_core::port::tools::ToolGateway;
use rutter_core::time::Timestamp;
use rutter_engine::{Engine, EngineOptions, SystemClock};
use rutter_store::{SqliteArchive, SqliteOptions, SqliteStore};
use rutter_tools::assemble::{AssembledTools, ToolEnvironment, assemble};
use rutter_tools::child::LauncherProgram;
use rutter_tools::guard::SystemResolver;
use rutter_tools::http_sender::GuardedHttpSender;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Everything an installation is made of. [`RuntimeOptions::new`] has the defaults; change the fields you need.
pub struct RuntimeOptions {
    /// Where the database and the installation's keys are, or will be.
    pub directory: PathBuf,
    pub tools: ToolSource,
    /// Starts command tools under limits: a program that understands `rutter launch`.
    pub launcher: LauncherProgram,
    /// The environment that tools and secrets read.
    pub environment: BTreeMap<String, String>,
    /// Private hosts and networks that webhooks may be sent to.
    pub webhooks_allow: Vec<String>,
    pub collector: Option<TraceCollector>,
    /// Tokens beside those of the installation.
    pub tokens: Vec<AccessToken>,
    pub clock: SystemClock,
    /// The clock of credentials and sessions; `clock` if there is none.
    pub auth_clock: Option<AuthClock>,
    /// The name under which the owner of the database acts.
    pub operator: String,
    pub settings: AppSettings,
    /// The operator's policy, which stands above every plan.
    pub policy: Arc<OperatorPolicy>,
    /// Disk space held back for outcomes; see [`SqliteOptions::reserve_bytes`].
    pub reserve_bytes: Option<u64>,
}

/// Where the tools that plans name come from.
pub enum ToolSource {
    /// The built-in tools and the servers of a configuration.
    Config(Box<rutter_tools::config::Config>),
    /// Tools of the embedding program alone.
    Gateway(Arc<dyn ToolGateway>),
}

impl RuntimeOptions {
    pub fn new(directory: impl Into<PathBuf>) -> RuntimeOptions {
        RuntimeOptions {
            directory: directory.into(),
            tools: ToolSource::Config(Box::default()),
            launcher: LauncherProgram { program: "rutter".into(), arguments: vec!["launch".into()] },
            environment: BTreeMap::new(),
            webhooks_allow: Vec::new(),
            collector: None,
            tokens: Vec::new(),
            clock: SystemClock::system(),
            auth_clock: None,
            operator: "operator".to_owned(),
            settings: AppSettings { ask_at_client: true, templates: None },
            policy: Arc::default(),
            reserve_bytes: None,
        }
    }
}

/// Why an installation cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] rutter_core::port::Error),
    #[error(transparent)]
    Tools(#[from] rutter_tools::assemble::Error),
    #[error(transparent)]
    Engine(#[from] rutter_engine::Error),
    #[error("the keys beside the database: {0}")]
    Keys(#[source] std::io::Error),
    #[error("webhooks.allow: {0}")]
    Webhooks(String),
}

pub struct Runtime {
    pub app: Arc<App>,
    /// `None` when the embedding program brought its own tools.
    pub tools: Option<AssembledTools>,
    pub clock: SystemClock,
    operator: String,
    directory: PathBuf,
    pub store: Arc<SqliteStore>,
    shutdown: CancellationToken,
    background_tasks: Vec<JoinHandle<()>>,
}

impl Runtime {
    /// Takes ownership of the database, resumes the executions that are due, and starts the background work.
    pub async fn open(options: RuntimeOptions) -> Result<Runtime, Error> {
        let mut runtime = Runtime::prepare(options).await?;
        runtime.start();
        Ok(runtime)
    }

    /// The same without the background work (analytics, alerts, webhooks, traces, timers), which
    /// [`start`](Runtime::start) begins.
    pub async fn prepare(options: RuntimeOptions) -> Result<Runtime, Error> {
        let store = open_store(&options)?;
        let last_entry = newest_time(&store).await?;
        options.clock.not_before(last_entry.unwrap_or_default());
        let (gateway, alert_commands, tools): (Arc<dyn ToolGateway>, Arc<dyn AlertCommands>, _) = match &options.tools {
            ToolSource::Config(config) => {
                let tools = configured_tools(config, &options, store.clone()).await?;
                (tools.registry.clone(), tools.alert_commands.clone(), Some(tools))
            }
            ToolSource::Gateway(gateway) => (Arc::clone(gateway), Arc::new(NoAlertCommands), None),
        };
        let RuntimeOptions { directory, clock, operator, settings, collector, .. } = options;
        let http_sender = GuardedHttpSender::new(&options.webhooks_allow, Arc::new(SystemResolver));
        let http_sender = http_sender.map_err(|why| Error::Webhooks(why.to_string()))?;
        let keys = InstallationKeys::of(&directory).map_err(Error::Keys)?;
        let engine = start_engine(&store, Arc::clone(&gateway), clock, options.policy, last_entry).await?;
        let parts = AppParts {
            engine,
            store: Arc::clone(&store),
            tools: gateway,
            http_sender: Arc::new(http_sender),
            alert_commands,
            collector,
            clock,
            auth_clock: options.auth_clock,
            tokens: keys.tokens(options.tokens, &operator),
            settings,
            seal: keys.seal,
        };
        Ok(Runtime {
            app: App::open(parts).await?,
            tools,
            clock,
            operator,
            directory,
            store,
            shutdown: CancellationToken::new(),
            background_tasks: Vec::new(),
        })
    }

    /// Starts the background work. It ends with [`close`](Runtime::close).
    pub fn start(&mut self) {
        self.background_tasks.push(tokio::spawn(Arc::clone(&self.app).run(self.shutdown.clone())));
        if let Some(tools) = &self.tools {
            let (builtins, shutdown) = (Arc::clone(&tools.builtins), self.shutdown.clone());
            self.background_tasks.push(tokio::spawn(async move { builtins.run_timers(shutdown).await }));
        }
    }

    /// The owner of the database, who may do everything.
    pub fn operator(&self) -> Principal {
        Principal::owner(TenantId::new("default"), &self.operator)
    }

    /// The engine below the application, for measurements of it alone.
    pub fn engine(&self) -> &Engine {
        &self.app.engine
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns proof of the journal's present state, to be verified later and elsewhere.
    pub async fn receipt(&self, identity: &ExecutionIdentity) -> Result<EntryReceipt, Error> {
        self.store.sign(&identity.tenant).await?;
        Ok(SqliteArchive::open(&self.directory)?.receipt(identity, None)?)
    }

    /// Lets the calls in flight end, gives back every lease and stops the background work.
    pub async fn close(self) {
        self.shutdown.cancel();
        self.app.close().await;
        for task in self.background_tasks {
            // A panic has already been logged.
            let _ = task.await;
        }
        if let Some(tools) = self.tools {
            tools.registry.close().await;
        }
    }
}

/// The tools of a configuration alone, for a command that executes no plan. `definitions` are the last known ones of
/// another installation: items of its register.
pub async fn open_tools(
    config: &rutter_tools::config::Config,
    options: &RuntimeOptions,
    definitions: Vec<RegisterItem>,
) -> Result<AssembledTools, Error> {
    let store = open_store(options)?;
    let put = |item: &RegisterItem| RegisterChange::put(RegisterKind::Definition, &item.id, (*item.value).clone());
    for items in definitions.chunks(CHANGES_MAX) {
        let (tenant, changes) = (TenantId::new("default"), items.iter().map(put).collect());
        store.write(RegisterWrite { tenant, at: options.clock.now(), changes, record: None }).await?;
    }
    configured_tools(config, options, store).await
}

fn open_store(options: &RuntimeOptions) -> Result<Arc<SqliteStore>, Error> {
    let clock = options.clock;
    let mut sqlite = SqliteOptions::new(&options.directory, Arc::new(move || clock.now()));
    sqlite.reserve_bytes = options.reserve_bytes.unwrap_or(sqlite.reserve_bytes);
    Ok(Arc::new(SqliteStore::open(sqlite)?))
}

async fn configured_tools(
    config: &rutter_tools::config::Config,
    options: &RuntimeOptions,
    store: Arc<SqliteStore>,
) -> Result<AssembledTools, Error> {
    let clock = options.clock;
    let environment = ToolEnvironment {
        folder: options.directory.clone(),
        launcher: options.launcher.clone(),
        environment: options.environment.clone(),
        query: store.clone(),
        register: store,
        clock: Arc::new(move || clock.now()),
    };
    Ok(assemble(config, environment).await?)
}

/// The time of the newest entry: time does not run backwards over a restart, so what has expired stays expired.
async fn newest_time(store: &SqliteStore) -> Result<Option<Timestamp>, Error> {
    let newest = store.entries(&TenantId::new("default"), EntryFilter::default(), Pagination::first(1)).await?;
    Ok(newest.items.first().map(|entry| entry.record.at))
}

async fn start_engine(
    store: &Arc<SqliteStore>,
    tools: Arc<dyn ToolGateway>,
    clock: SystemClock,
    policy: Arc<OperatorPolicy>,
    last_entry: Option<Timestamp>,
) -> Result<Engine, rutter_engine::Error> {
    let worker = WorkerId::new(&rutter_engine::name::fresh("worker", clock.now()));
    let mut options = EngineOptions::new(worker);
    (options.policy, options.last_entry) = (policy, last_entry);
    Engine::run(store.clone(), store.clone(), store.clone(), tools, clock, options).await
}

impl std::fmt::Debug for RuntimeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimeOptions").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ToolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ToolSource::Config(_) => "Config",
            ToolSource::Gateway(_) => "Gateway",
        })
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("directory", &self.directory).finish_non_exhaustive()
    }
}
