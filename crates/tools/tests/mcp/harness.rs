//! What the tests of MCP servers share: servers with small limits, requests, and somebody who hears what is reported.

use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PartId, StepId, TenantId};
use rutter_core::journal::event::Side;
use rutter_core::port::tools::{CallId, Elicitation, Progress, Reply, Reporter};
use rutter_core::time::Timestamp;
use rutter_core::tool::{Category, Failure, Outcome};
use rutter_tools::config::mcp::{Child, Reach, Server};
use rutter_tools::connector::{Connector, Request};
use rutter_tools::mcp::process::{Launcher, Roster};
use rutter_tools::mcp::{McpServer, Patience};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Long enough for a loaded machine, short enough to notice that something waits for ever.
pub const SOON: Duration = Duration::from_secs(30);

/// Short where a test waits it out on purpose.
pub fn patience() -> Patience {
    Patience {
        start: Duration::from_secs(30),
        list: Duration::from_secs(20),
        cancel: Duration::from_millis(300),
        kill: Duration::from_millis(500),
        pause_first: Duration::from_millis(50),
        pause_max: Duration::from_millis(400),
        ..Patience::default()
    }
}

/// Who was born and who is gone.
#[derive(Default)]
pub struct Pids(pub Mutex<(Vec<u32>, Vec<u32>)>);

impl Roster for Pids {
    fn born(&self, pid: u32) -> io::Result<()> {
        self.0.lock().unwrap().0.push(pid);
        Ok(())
    }

    fn gone(&self, pid: u32) {
        self.0.lock().unwrap().1.push(pid);
    }
}

pub fn launcher(roster: Arc<dyn Roster>) -> Launcher {
    Launcher::new(std::env::vars_os(), roster, Arc::new(|command| command))
}

/// A server of `server.py`, and the folder in which it leaves its traces.
pub struct Scripted {
    pub server: McpServer,
    pub folder: tempfile::TempDir,
    pub roster: Arc<Pids>,
}

pub fn scripted(mode: &str) -> Scripted {
    scripted_with(mode, patience())
}

pub fn scripted_with(mode: &str, patience: Patience) -> Scripted {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/server.py");
    let args = [script.as_path(), Path::new(mode), folder.path()];
    let child = Child {
        command: "python3".to_owned(),
        args: args.iter().map(|arg| arg.to_str().unwrap().to_owned()).collect(),
        env: [("EXTRA".to_owned(), "configured".to_owned())].into(),
        cwd: Some(folder.path().to_owned()),
    };
    let roster = Arc::new(Pids::default());
    let server = Server::new(Reach::Child(child));
    let server = McpServer::with_patience(mode, &server, launcher(roster.clone()), patience);
    Scripted { server, folder, roster }
}

impl Scripted {
    pub async fn call(&self, tool: &str, parameters: Value) -> Outcome {
        self.server.call(request(tool, parameters).0).await
    }

    /// The lines the server wrote into one of its files.
    pub fn traces(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub async fn trace_appears(&self, name: &str) {
        until(|| !self.traces(name).is_empty()).await;
    }
}

/// Waits until something is so, and fails when it never is.
pub async fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < deadline, "it did not come about in {SOON:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Hears what is reported, and answers questions with what it was given.
#[derive(Default)]
pub struct Ear {
    pub answer: Option<Value>,
    pub accepted: Mutex<Vec<String>>,
    pub asked: Mutex<Vec<Elicitation>>,
    pub progress: Mutex<Vec<Progress>>,
}

impl Reporter for Ear {
    fn accepted(&self, ticket: String) -> Reply<'_, ()> {
        self.accepted.lock().unwrap().push(ticket);
        Box::pin(async {})
    }

    fn ask(&self, question: Elicitation) -> Reply<'_, Option<Value>> {
        self.asked.lock().unwrap().push(question);
        Box::pin(async { self.answer.clone() })
    }

    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap().push(progress);
    }
}

pub fn request(tool: &str, parameters: Value) -> (Request, Arc<Ear>, CancellationToken) {
    request_with(tool, parameters, Ear::default())
}

pub fn request_with(tool: &str, parameters: Value, ear: Ear) -> (Request, Arc<Ear>, CancellationToken) {
    let (ear, cancel) = (Arc::new(ear), CancellationToken::new());
    let identity = Identity { tenant: TenantId::new("t"), execution: ExecutionId::new("exec_1") };
    let request = Request {
        id: CallId { identity, part: PartId::whole(StepId::new("s")), side: Side::Do, attempt: 1 },
        tool: tool.to_owned(),
        parameters: Arc::new(parameters),
        key: "key".to_owned(),
        timeout: SOON,
        now: Timestamp(0),
        cancel: cancel.clone(),
        ticket: None,
        reporter: ear.clone(),
    };
    (request, ear, cancel)
}

#[track_caller]
pub fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done { result, .. } => (*result).clone(),
        other => panic!("expected done, got {other:?}"),
    }
}

#[track_caller]
pub fn not_done(outcome: Outcome, category: Category) -> Failure {
    match outcome {
        Outcome::NotDone(failure) if failure.category == category => failure,
        other => panic!("expected not done for {category:?}, got {other:?}"),
    }
}

#[track_caller]
pub fn maybe(outcome: Outcome, category: Category) -> Failure {
    match outcome {
        Outcome::Maybe(failure) if failure.category == category => failure,
        other => panic!("expected maybe for {category:?}, got {other:?}"),
    }
}

/// The text of a result that is nothing but text.
#[track_caller]
pub fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("expected a text, got {result}"))
}

pub fn is_alive(pid: u32) -> bool {
    // A zombie has ended; it only waits to be noticed.
    let stat = std::fs::read_to_string(PathBuf::from("/proc").join(pid.to_string()).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}
