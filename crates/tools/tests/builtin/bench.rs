//! Built-ins in a directory of their own, with a clock the test turns.

use super::receiver::Http;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PartId, PlanId, TenantId};
use rutter_core::journal::event::Side;
use rutter_core::port::Answer;
use rutter_core::port::query::{
    EntryFilter, EntrySummary, ExecutionFilter, ExecutionSummary, Listing, Page, PlanFilter, PlanSummary,
    Query, SavedPlan, Totals,
};
use rutter_core::port::tools::{CallId, Elicitation, Progress, Reply, Reporter};
use rutter_core::time::Timestamp;
use rutter_core::tool::{Category, Outcome};
use rutter_tools::builtin::{Builtins, Setting};
use rutter_tools::child::{Children, Launcher, Roster};
use rutter_tools::config::Channel;
use rutter_tools::connector::Request;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// 2026-11-16T05:30:00Z
pub const START: i64 = 1_794_807_000_000;

pub struct Bench {
    pub folder: PathBuf,
    _own: Option<tempfile::TempDir>,
    pub now: Arc<AtomicI64>,
    pub channels: BTreeMap<String, Channel>,
}

impl Bench {
    pub fn new() -> Bench {
        let own = tempfile::tempdir().unwrap();
        Bench { _own: Some(own), ..Bench::at(Path::new("")) }.settle()
    }

    /// In a directory that is somebody else's to remove.
    pub fn at(folder: &Path) -> Bench {
        Bench {
            folder: folder.to_owned(),
            _own: None,
            now: Arc::new(AtomicI64::new(START)),
            channels: BTreeMap::new(),
        }
    }

    fn settle(mut self) -> Bench {
        self.folder = self._own.as_ref().unwrap().path().to_owned();
        self
    }

    pub fn open(&self) -> Builtins {
        let own = std::env::current_exe().unwrap();
        let program = own.ancestors().nth(2).unwrap().join("examples/launch");
        let (roster, _) = Roster::open(&self.folder.join("roster")).unwrap();
        let now = Arc::clone(&self.now);
        Builtins::open(Setting {
            folder: self.folder.join("builtin"),
            channels: self.channels.clone(),
            post: Arc::new(Http::default()),
            children: Arc::new(Children::new(Launcher { program, arguments: Vec::new() }, Arc::new(roster))),
            query: Arc::new(Empty),
            clock: Arc::new(move || Timestamp(now.load(Ordering::SeqCst))),
        })
        .unwrap()
    }

    pub fn pass(&self, seconds: i64) {
        self.now.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }

    pub fn request(&self, tool: &str, key: &str, parameters: Value) -> Request {
        let identity = Identity { tenant: TenantId::new("tenant"), execution: ExecutionId::new("exec_1") };
        Request {
            id: CallId { identity, part: PartId::parse("step").unwrap(), side: Side::Do, attempt: 1 },
            tool: tool.to_owned(),
            parameters: Arc::new(parameters),
            key: key.to_owned(),
            timeout: Duration::from_secs(20),
            now: Timestamp(self.now.load(Ordering::SeqCst)),
            cancel: CancellationToken::new(),
            ticket: None,
            reporter: Arc::new(Silent),
        }
    }

    /// Calls `server.tool` with a key.
    pub async fn call(&self, builtins: &Builtins, name: &str, key: &str, parameters: Value) -> Outcome {
        let (server, tool) = name.split_once('.').unwrap();
        send(builtins, server, self.request(tool, key, parameters)).await
    }

    pub async fn done(&self, builtins: &Builtins, name: &str, key: &str, parameters: Value) -> Value {
        done(self.call(builtins, name, key, parameters).await)
    }

    /// The lines of `notifications.log`.
    pub fn notifications(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.join("builtin/notifications.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub async fn send(builtins: &Builtins, server: &str, request: Request) -> Outcome {
    let (_, connector) = builtins.servers().iter().find(|(name, _)| *name == server).unwrap();
    connector.call(request).await
}

pub fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done { result, .. } => (*result).clone(),
        other => panic!("{other:?}"),
    }
}

pub fn not_done(outcome: Outcome) -> (Category, String) {
    match outcome {
        Outcome::NotDone(failure) => (failure.category, failure.message),
        other => panic!("{other:?}"),
    }
}

pub fn maybe(outcome: Outcome) -> Category {
    match outcome {
        Outcome::Maybe(failure) => failure.category,
        other => panic!("{other:?}"),
    }
}

pub async fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < until, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

struct Silent;

impl Reporter for Silent {
    fn accepted(&self, _: String) -> Reply<'_, ()> {
        Box::pin(async {})
    }

    fn ask(&self, _: Elicitation) -> Reply<'_, Option<Value>> {
        Box::pin(async { None })
    }

    fn progress(&self, _: Progress) {}
}

/// A store with nothing in it: none of these tests asks for more.
struct Empty;

fn nothing<'a, T: Send + 'a>() -> Answer<'a, Listing<T>> {
    Box::pin(std::future::ready(Ok(Listing { items: Vec::new(), next: None })))
}

impl Query for Empty {
    fn execution(&self, _: &Identity) -> Answer<'_, Option<ExecutionSummary>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn executions(&self, _: &TenantId, _: ExecutionFilter, _: Page) -> Answer<'_, Listing<ExecutionSummary>> {
        nothing()
    }

    fn entries(&self, _: &TenantId, _: EntryFilter, _: Page) -> Answer<'_, Listing<EntrySummary>> {
        nothing()
    }

    fn plan(&self, _: &TenantId, _: &PlanId, _: Option<u32>) -> Answer<'_, Option<SavedPlan>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn plans(&self, _: &TenantId, _: PlanFilter, _: Page) -> Answer<'_, Listing<PlanSummary>> {
        nothing()
    }

    fn totals(&self, _: &TenantId) -> Answer<'_, Totals> {
        Box::pin(std::future::ready(Ok(Totals::default())))
    }
}
