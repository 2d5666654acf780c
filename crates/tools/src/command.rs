//! Commands as a server: every tool is a program that the operator configured, pinned by the hash of its file.
//!
//! There is no shell anywhere. A parameter becomes one argument, or part of one, exactly as it is.

mod outcome;
pub(crate) mod program;
pub(crate) mod run;
mod template;

pub(crate) use outcome::last_words;

use crate::child::{ChildSpawner, ProgramStart, SandboxPermissions, SandboxSupport, confine};
use crate::config::command as config;
use crate::connector::{Connector, ConnectorRequest, ConnectorState, ServedTool};
use program::ProgramFiles;
use run::{ProgramBounds, run};
use rutter_core::port::tools::PortFuture;
use rutter_core::tool::{CallOutcome, FailureCategory, Safety, ToolFailure};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;
use template::CommandTemplate;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The `PATH` of every program.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A server whose tools are programs.
#[derive(Debug)]
pub struct CommandServer {
    name: String,
    tools: BTreeMap<String, CommandTool>,
    children: Arc<ChildSpawner>,
    cwd: PathBuf,
    environment: BTreeMap<String, String>,
    grace: Duration,
    sandbox: SandboxSupport,
    changes: watch::Sender<u64>,
    /// Cancels every call in flight.
    closing: CancellationToken,
    calls: TaskTracker,
}

#[derive(Debug)]
struct CommandTool {
    config: config::CommandToolConfig,
    template: CommandTemplate,
    exits: BTreeMap<i32, config::ExitMeaning>,
    files: ProgramFiles,
}

/// What a command server needs.
#[derive(Clone, Debug)]
pub struct CommandEnvironment {
    pub children: Arc<ChildSpawner>,
    /// Each server without a `cwd` has its own directory in here.
    pub folder: PathBuf,
    /// Where `env_pass` takes variables from.
    pub environment: BTreeMap<String, String>,
}

/// An invalid configuration of commands.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("commands.{server}.tools.{tool}: {problem}")]
    Tool { server: String, tool: String, problem: String },
    #[error("commands.{server}: the directory {} cannot be used", cwd.display())]
    Folder {
        server: String,
        cwd: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl CommandServer {
    pub fn new(
        name: &str,
        server: &config::CommandServerConfig,
        surroundings: CommandEnvironment,
    ) -> Result<CommandServer, Error> {
        let cwd = server.cwd.clone().unwrap_or_else(|| surroundings.folder.join(name));
        let made = if server.cwd.is_none() { std::fs::create_dir_all(&cwd) } else { Ok(()) };
        let cwd = made.and_then(|()| cwd.canonicalize()).map_err(|source| Error::Folder {
            server: name.to_owned(),
            cwd: cwd.clone(),
            source,
        })?;
        let tool = |(tool, config): (&String, &config::CommandToolConfig)| match CommandTool::new(config) {
            Ok(made) => Ok((tool.clone(), made)),
            Err(problem) => Err(Error::Tool { server: name.to_owned(), tool: tool.clone(), problem }),
        };
        let passed = server.env_pass.iter().filter_map(|variable| {
            let value = surroundings.environment.get(variable)?;
            Some((variable.clone(), value.clone()))
        });
        let mut environment = basic_environment(&cwd);
        environment.extend(passed);
        environment.extend(server.env.clone());
        Ok(CommandServer {
            name: name.to_owned(),
            tools: server.tools.iter().map(tool).collect::<Result<_, _>>()?,
            children: surroundings.children,
            cwd,
            environment,
            grace: Duration::from_millis(server.grace.0),
            sandbox: sandbox(),
            changes: watch::Sender::new(0),
            closing: CancellationToken::new(),
            calls: TaskTracker::new(),
        })
    }

    /// What the sandbox of its programs restricts.
    pub fn sandbox(&self) -> &SandboxSupport {
        &self.sandbox
    }

    async fn definitions(&self) -> Result<Vec<ServedTool>, ToolFailure> {
        let mut served = Vec::new();
        let mut missing = Vec::new();
        for (name, tool) in &self.tools {
            match tool.files.read().await {
                Ok(hashes) => served.push(ServedTool {
                    name: name.clone(),
                    definition: tool.definition(&hashes, &self.sandbox),
                    result: tool.result_schema(),
                }),
                Err(problem) => {
                    tracing::warn!(tool = %format!("{}.{name}", self.name), problem, "is not offered");
                    missing.push(problem);
                }
            }
        }
        match missing.first() {
            Some(problem) if served.is_empty() => Err(ToolFailure::new(FailureCategory::Unavailable, problem.clone())),
            _ => Ok(served),
        }
    }

    async fn make_call(&self, request: ConnectorRequest) -> CallOutcome {
        let not_done = |category, message: String| CallOutcome::NotDone(ToolFailure::new(category, message));
        if request.ticket.is_some() {
            let message = "a program cannot be asked about an earlier call";
            return CallOutcome::Maybe(ToolFailure::new(FailureCategory::Internal, message));
        }
        if self.closing.is_cancelled() || request.cancel.is_cancelled() {
            return not_done(
                FailureCategory::Cancelled,
                "the call was cancelled before the program started".to_owned(),
            );
        }
        let Some(tool) = self.tools.get(&request.tool) else {
            return not_done(FailureCategory::NotFound, format!("{} has no tool {:?}", self.name, request.tool));
        };
        let arguments = match tool.template.fill(&request.parameters, tool.config.options) {
            Ok(arguments) => arguments,
            Err(problem) => return not_done(FailureCategory::InvalidInput, problem),
        };
        match tool.files.changed().await {
            Ok(false) => {}
            Ok(true) => {
                self.changes.send_modify(|changes| *changes += 1);
                let message = format!("{} has changed since it was listed", tool.template.program());
                return not_done(FailureCategory::Conflict, message);
            }
            Err(problem) => return not_done(FailureCategory::Unavailable, problem),
        }
        let input = match tool.config.stdin {
            config::StdinFormat::None => Vec::new(),
            config::StdinFormat::Json => format!("{}\n", request.parameters).into_bytes(),
        };
        let start = self.start(tool, arguments, &request.key, &request.tool);
        let bounds = tool.bounds(request.timeout, self.grace);
        let stop = async {
            tokio::select! {
                () = self.closing.cancelled() => {}
                () = request.cancel.cancelled() => {}
            }
        };
        let ran = run(&self.children, start, &bounds, input, stop).await;
        outcome::of(ran, &bounds, tool.config.result, &tool.exits)
    }

    fn start(&self, tool: &CommandTool, arguments: Vec<String>, key: &str, name: &str) -> ProgramStart {
        let mut environment = self.environment.clone();
        environment.insert("RUTTER_KEY".to_owned(), key.to_owned());
        let reach = SandboxPermissions {
            read: tool.template.fixed_paths().into_iter().chain(tool.config.read.iter().cloned()).collect(),
            write: std::iter::once(&self.cwd).chain(&tool.config.write).cloned().collect(),
            network: tool.config.network,
        };
        ProgramStart {
            program: tool.template.program().into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment,
            cwd: self.cwd.clone(),
            about: format!("{}.{name}", self.name),
            limits: tool.limits(),
            reach: (!matches!(self.sandbox, SandboxSupport::None { .. })).then_some(reach),
        }
    }
}

impl Connector for CommandServer {
    fn list(&self) -> PortFuture<'_, Result<Vec<ServedTool>, ToolFailure>> {
        Box::pin(self.definitions())
    }

    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, CallOutcome> {
        let counted = self.calls.token();
        Box::pin(async move {
            let outcome = self.make_call(request).await;
            drop(counted);
            outcome
        })
    }

    fn state(&self) -> ConnectorState {
        match self.tools.values().find_map(|tool| tool.files.missing()) {
            Some(reason) => ConnectorState::Down { reason, stderr: Vec::new() },
            None => ConnectorState::Ready,
        }
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn close(&self) -> PortFuture<'_, ()> {
        Box::pin(async {
            self.closing.cancel();
            self.calls.close();
            self.calls.wait().await;
        })
    }
}

impl CommandTool {
    fn new(tool: &config::CommandToolConfig) -> Result<CommandTool, String> {
        let input = input_schema(tool);
        let properties = input.get("properties").and_then(Value::as_object);
        let declared = properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default();
        let template = CommandTemplate::parse(&tool.argv, &declared)?;
        let exit = |(code, exit): (&String, &config::ExitMeaning)| match code.parse::<u8>() {
            Ok(code) if code > 0 => Ok((i32::from(code), *exit)),
            _ => Err(format!("`exit` has {code:?}, a number from 1 to 255 was expected")),
        };
        let exits = tool.exit.iter().map(exit).collect::<Result<_, _>>()?;
        if tool.description.trim().is_empty() {
            return Err("`description` must say what the tool does".to_owned());
        }
        let files = ProgramFiles::new(template.program_files());
        Ok(CommandTool { config: tool.clone(), template, exits, files })
    }

    fn limits(&self) -> crate::child::ResourceLimits {
        crate::child::ResourceLimits {
            memory_mib: Some(self.config.memory_mib),
            cpu_seconds: Some(self.config.cpu_seconds),
            processes: Some(self.config.processes),
            files: Some(self.config.files),
        }
    }

    fn bounds(&self, timeout: Duration, grace: Duration) -> ProgramBounds {
        ProgramBounds { timeout, grace, output_kib: self.config.output_kib, processes: self.config.processes }
    }

    fn result_schema(&self) -> Option<Value> {
        match self.config.result {
            config::ResultFormat::Json => None,
            config::ResultFormat::Text => Some(json!({"type": "string"})),
            config::ResultFormat::Lines => Some(json!({"type": "array", "items": {"type": "string"}})),
        }
    }

    /// The files are part of the definition: another program is another tool.
    fn definition(&self, hashes: &BTreeMap<String, String>, sandbox: &SandboxSupport) -> Map<String, Value> {
        let mut annotations = json!({
            "argv": self.config.argv,
            "sha256": hashes,
            "sandbox": sandbox.to_string(),
            "network": self.config.network,
        });
        match self.config.safety {
            Some(Safety::ReadOnly) => annotations["readOnlyHint"] = true.into(),
            Some(Safety::Idempotent) => annotations["idempotentHint"] = true.into(),
            Some(Safety::Once) | None => {}
        }
        let mut definition = Map::new();
        definition.insert("description".to_owned(), self.config.description.clone().into());
        definition.insert("inputSchema".to_owned(), input_schema(&self.config));
        definition.insert("annotations".to_owned(), annotations);
        if let Some(title) = &self.config.title {
            definition.insert("title".to_owned(), title.clone().into());
        }
        if let Some(output) = &self.config.output {
            definition.insert("outputSchema".to_owned(), output.clone());
        }
        definition
    }
}

fn input_schema(tool: &config::CommandToolConfig) -> Value {
    let none = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
    tool.input.clone().unwrap_or_else(none)
}

/// The directory is both the home and the place for temporary files.
pub(crate) fn basic_environment(cwd: &std::path::Path) -> BTreeMap<String, String> {
    let cwd = cwd.display().to_string();
    let variables = [("PATH", PATH), ("LANG", "C.UTF-8"), ("HOME", &cwd), ("TMPDIR", &cwd)];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Detects the sandbox; warns once if it is incomplete.
pub(crate) fn sandbox() -> SandboxSupport {
    static WARNED: Once = Once::new();
    let sandbox = confine::sandbox();
    if sandbox != SandboxSupport::FilesAndNetwork {
        WARNED.call_once(|| tracing::warn!(%sandbox, "programs are not fully sandboxed"));
    }
    sandbox
}
