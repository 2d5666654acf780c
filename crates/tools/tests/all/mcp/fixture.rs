//! What the tests of MCP servers share: servers with small limits, requests, and a recording reporter.

use crate::fixture;
pub use crate::fixture::{SOON, done, is_alive, until};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PartId, StepId, TenantId};
use rutter_core::journal::event::CallSide;
use rutter_core::port::tools::{CallReporter, PortFuture, ToolCallId, ToolProgress};
use rutter_core::time::Timestamp;
use rutter_core::tool::Elicitation;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use rutter_tools::config::mcp::{McpChildConfig, McpServerConfig, McpTransport};
use rutter_tools::connector::{Connector, ConnectorRequest};
use rutter_tools::mcp::process::{ChildTracker, McpChildLauncher};
use rutter_tools::mcp::{McpLimits, McpServer};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Short where a test waits it out on purpose.
pub fn patience() -> McpLimits {
    McpLimits {
        start: Duration::from_secs(30),
        list: Duration::from_secs(20),
        cancel: Duration::from_millis(300),
        kill: Duration::from_millis(500),
        pause_first: Duration::from_millis(50),
        pause_max: Duration::from_millis(400),
        ..McpLimits::default()
    }
}

/// The pids that were started, and those that ended.
#[derive(Default)]
pub struct Pids(pub Mutex<(Vec<u32>, Vec<u32>)>);

impl ChildTracker for Pids {
    fn started(&self, pid: u32) -> io::Result<()> {
        self.0.lock().unwrap().0.push(pid);
        Ok(())
    }

    fn ended(&self, pid: u32) {
        self.0.lock().unwrap().1.push(pid);
    }
}

pub fn launcher(roster: Arc<dyn ChildTracker>) -> McpChildLauncher {
    McpChildLauncher::new(std::env::vars_os(), roster, Arc::new(|command| command))
}

/// A server of `server.py`, and the folder in which it leaves its traces.
pub struct ScriptedServer {
    pub server: McpServer,
    pub folder: tempfile::TempDir,
    pub roster: Arc<Pids>,
}

pub fn scripted(mode: &str) -> ScriptedServer {
    scripted_with(mode, patience())
}

pub fn scripted_with(mode: &str, patience: McpLimits) -> ScriptedServer {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/server.py");
    let args = [script.as_path(), Path::new(mode), folder.path()];
    let child = McpChildConfig {
        command: "python3".to_owned(),
        args: args.iter().map(|arg| arg.to_str().unwrap().to_owned()).collect(),
        env: [("EXTRA".to_owned(), "configured".to_owned())].into(),
        cwd: Some(folder.path().to_owned()),
    };
    let roster = Arc::new(Pids::default());
    let server = McpServerConfig::new(McpTransport::Child(child));
    let server = McpServer::with_limits(mode, &server, launcher(roster.clone()), patience);
    ScriptedServer { server, folder, roster }
}

impl ScriptedServer {
    pub async fn call(&self, tool: &str, parameters: Value) -> CallOutcome {
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

/// Records what is reported, and answers questions with a fixed answer.
#[derive(Default)]
pub struct RecordingReporter {
    pub answer: Option<Value>,
    pub accepted: Mutex<Vec<String>>,
    pub asked: Mutex<Vec<Elicitation>>,
    pub progress: Mutex<Vec<ToolProgress>>,
    pub late: Mutex<Vec<CallOutcome>>,
}

impl CallReporter for RecordingReporter {
    fn accepted(&self, ticket: String) -> PortFuture<'_, ()> {
        self.accepted.lock().unwrap().push(ticket);
        Box::pin(async {})
    }

    fn ask(&self, question: Elicitation) -> PortFuture<'_, Option<Value>> {
        self.asked.lock().unwrap().push(question);
        Box::pin(async { self.answer.clone() })
    }

    fn progress(&self, progress: ToolProgress) {
        self.progress.lock().unwrap().push(progress);
    }

    fn late(&self, outcome: CallOutcome) {
        self.late.lock().unwrap().push(outcome);
    }
}

pub fn request(tool: &str, parameters: Value) -> (ConnectorRequest, Arc<RecordingReporter>, CancellationToken) {
    request_with(tool, parameters, RecordingReporter::default())
}

pub fn request_with(
    tool: &str,
    parameters: Value,
    ear: RecordingReporter,
) -> (ConnectorRequest, Arc<RecordingReporter>, CancellationToken) {
    let (ear, cancel) = (Arc::new(ear), CancellationToken::new());
    let identity = ExecutionIdentity { tenant: TenantId::new("t"), execution: ExecutionId::new("exec_1") };
    let request = ConnectorRequest {
        id: ToolCallId { identity, part: PartId::whole(StepId::new("s")), side: CallSide::Do, attempt: 1 },
        tool: tool.to_owned(),
        parameters: Arc::new(parameters),
        key: "key".to_owned(),
        timeout: SOON,
        now: Timestamp(0),
        cancel: cancel.clone(),
        connection: None,
        declares_output: false,
        ticket: None,
        continuation: None,
        reporter: ear.clone(),
    };
    (request, ear, cancel)
}

#[track_caller]
pub fn not_done(outcome: CallOutcome, category: FailureCategory) -> ToolFailure {
    let failure = fixture::not_done(outcome);
    assert_eq!(failure.category, category, "{failure:?}");
    failure
}

#[track_caller]
pub fn maybe(outcome: CallOutcome, category: FailureCategory) -> ToolFailure {
    let failure = fixture::maybe(outcome);
    assert_eq!(failure.category, category, "{failure:?}");
    failure
}

/// The text of a result that is nothing but text.
#[track_caller]
pub fn text_of(result: &Value) -> &str {
    result["text"].as_str().unwrap_or_else(|| panic!("expected a text, got {result}"))
}
