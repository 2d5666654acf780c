//! Built-ins with a database in a directory of their own, and a clock that the test moves.

use super::receiver::Http;
use super::register::TestRegister;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PartId, TenantId};
use rutter_core::journal::event::CallSide;
use rutter_core::port::query::Pagination;
use rutter_core::port::register::{Register, RegisterItem, RegisterKind};
use rutter_core::port::tools::{CallReporter, PortFuture, ToolCallId, ToolProgress};
use rutter_core::time::Timestamp;
use rutter_core::tool::Elicitation;
use rutter_core::tool::{CallOutcome, FailureCategory};
use rutter_store::{SqliteOptions, SqliteStore, wait};
use rutter_tools::builtin::{BuiltinContext, BuiltinServers, OpenError};
use rutter_tools::child::{ChildRegistry, ChildSpawner, LauncherProgram};
use rutter_tools::config::NotificationChannel;
use rutter_tools::connector::ConnectorRequest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// 2026-11-16T05:30:00Z
pub const START: i64 = 1_794_807_000_000;

pub struct Bench {
    pub folder: PathBuf,
    _own: Option<tempfile::TempDir>,
    pub now: Arc<AtomicI64>,
    pub channels: BTreeMap<String, NotificationChannel>,
    /// Of the built-ins that were opened last.
    register: Mutex<Option<Arc<TestRegister>>>,
}

impl Bench {
    pub fn new() -> Bench {
        let own = tempfile::tempdir().unwrap();
        Bench { _own: Some(own), ..Bench::at(Path::new("")) }.settle()
    }

    /// In a directory that the caller removes.
    pub fn at(folder: &Path) -> Bench {
        Bench {
            folder: folder.to_owned(),
            _own: None,
            now: Arc::new(AtomicI64::new(START)),
            channels: BTreeMap::new(),
            register: Mutex::default(),
        }
    }

    fn settle(mut self) -> Bench {
        self.folder = self._own.as_ref().unwrap().path().to_owned();
        self
    }

    /// Opens the built-ins. Those that were opened before must have been dropped.
    pub async fn open(&self) -> BuiltinServers {
        self.open_store();
        self.open_builtins().await.unwrap()
    }

    /// Opens the database alone.
    pub fn open_store(&self) -> Arc<TestRegister> {
        let mut register = self.register.lock().unwrap();
        // One process, one owner: the store of the built-ins before is closed first.
        drop(register.take());
        let now = Arc::clone(&self.now);
        let clock = Arc::new(move || Timestamp(now.load(Ordering::SeqCst)));
        let options = SqliteOptions { reserve_bytes: 0, ..SqliteOptions::new(&self.folder, clock) };
        let opened = Arc::new(TestRegister::new(SqliteStore::open(options).unwrap()));
        *register = Some(Arc::clone(&opened));
        opened
    }

    /// Opens the built-ins with the database as it is open.
    pub async fn open_builtins(&self) -> Result<BuiltinServers, OpenError> {
        let own = std::env::current_exe().unwrap();
        let program = own.ancestors().nth(2).unwrap().join("examples/launch");
        let (roster, _) = ChildRegistry::open(&self.folder.join("roster")).unwrap();
        let (now, register) = (Arc::clone(&self.now), self.register());
        let setting = BuiltinContext {
            folder: self.folder.join("builtin"),
            channels: self.channels.clone(),
            post: Arc::new(Http::default()),
            children: Arc::new(ChildSpawner::new(LauncherProgram { program, arguments: Vec::new() }, Arc::new(roster))),
            query: register.store(),
            register,
            clock: Arc::new(move || Timestamp(now.load(Ordering::SeqCst))),
        };
        BuiltinServers::open(setting).await
    }

    pub fn register(&self) -> Arc<TestRegister> {
        Arc::clone(self.register.lock().unwrap().as_ref().unwrap())
    }

    pub fn pass(&self, seconds: i64) {
        self.now.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }

    pub fn request(&self, tool: &str, key: &str, parameters: Value) -> ConnectorRequest {
        let identity = ExecutionIdentity { tenant: TenantId::new("tenant"), execution: ExecutionId::new("exec_1") };
        ConnectorRequest {
            id: ToolCallId { identity, part: PartId::parse("step").unwrap(), side: CallSide::Do, attempt: 1 },
            tool: tool.to_owned(),
            parameters: Arc::new(parameters),
            key: key.to_owned(),
            timeout: Duration::from_secs(20),
            now: Timestamp(self.now.load(Ordering::SeqCst)),
            cancel: CancellationToken::new(),
            connection: None,
            declares_output: false,
            ticket: None,
            continuation: None,
            reporter: Arc::new(Silent),
        }
    }

    /// Calls `server.tool` with a key.
    pub async fn call(&self, builtins: &BuiltinServers, name: &str, key: &str, parameters: Value) -> CallOutcome {
        let (server, tool) = name.split_once('.').unwrap();
        send(builtins, server, self.request(tool, key, parameters)).await
    }

    pub async fn done(&self, builtins: &BuiltinServers, name: &str, key: &str, parameters: Value) -> Value {
        done(self.call(builtins, name, key, parameters).await)
    }

    /// The notes of a kind, by id.
    pub fn notes(&self, kind: RegisterKind) -> Vec<RegisterItem> {
        let listing = wait(self.register().list(&TenantId::new("tenant"), kind, Pagination::first(1_000))).unwrap();
        assert_eq!(listing.next, None);
        listing.items
    }

    /// What was delivered, the oldest first.
    pub fn notifications(&self) -> Vec<Value> {
        let notes = self.notes(RegisterKind::Notification).into_iter();
        let mut delivered: Vec<Value> = notes.map(|note| (*note.value).clone()).collect();
        delivered.sort_by_key(|notification| notification["at"].as_str().unwrap().to_owned());
        delivered
    }

    /// Waits until a condition on the stored notes holds.
    pub async fn eventually(&self, what: &str, mut is_true: impl FnMut() -> bool) {
        let mut writes = self.register().writes();
        let waiting = async {
            while !is_true() {
                writes.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect(what);
    }
}

pub async fn send(builtins: &BuiltinServers, server: &str, request: ConnectorRequest) -> CallOutcome {
    let (_, connector) = builtins.servers().iter().find(|(name, _)| *name == server).unwrap();
    connector.call(request).await
}

pub fn done(outcome: CallOutcome) -> Value {
    match outcome {
        CallOutcome::Done { result, .. } => (*result).clone(),
        other => panic!("{other:?}"),
    }
}

pub fn not_done(outcome: CallOutcome) -> (FailureCategory, String) {
    match outcome {
        CallOutcome::NotDone(failure) => (failure.category, failure.message),
        other => panic!("{other:?}"),
    }
}

pub fn maybe(outcome: CallOutcome) -> FailureCategory {
    match outcome {
        CallOutcome::Maybe(failure) => failure.category,
        other => panic!("{other:?}"),
    }
}

struct Silent;

impl CallReporter for Silent {
    fn accepted(&self, _: String) -> PortFuture<'_, ()> {
        Box::pin(async {})
    }

    fn ask(&self, _: Elicitation) -> PortFuture<'_, Option<Value>> {
        Box::pin(async { None })
    }

    fn progress(&self, _: ToolProgress) {}

    fn late(&self, _: CallOutcome) {}
}
