//! The directory of the demo, and the server in it. Both are removed with the demo unless they are kept.

use super::processes::DemoProcesses;
use super::tools::call_log::{CallLogLines, ToolCallLog};
use super::tools::{DemoFault, SERVERS, WORD, fault_file};
use crate::CommandExit;
use crate::daemon;
use crate::failure::CommandRefusal;
use crate::socket::SocketRequest;
use anyhow::{Context, bail};
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_store::SqliteArchive;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// The person at the terminal, in the journals of the demo.
const OPERATOR: &str = "operator";
const SETTINGS: &str = "rutter.toml";
const DATA: &str = "data";
/// The directory of the tools, with their call log and their faults.
const TOOLS: &str = "tools";
/// How long a server may take to stop.
const END_MAX: Duration = Duration::from_secs(10);
/// How long a command may take.
const COMMAND_MAX: Duration = Duration::from_secs(60);
/// A server whose demo was killed stops after this many seconds.
const IDLE_SECONDS: &str = "120";

#[derive(Debug)]
pub(crate) struct DemoDirectory {
    path: PathBuf,
    program: PathBuf,
    pub(crate) processes: DemoProcesses,
    /// Whether it is kept: other programs must be able to reach it then.
    is_open: bool,
    is_retained: Cell<bool>,
    is_interrupted: Arc<AtomicBool>,
    pub(crate) server: Cell<u32>,
    /// The server's JSON output at its start.
    pub(crate) server_answer: RefCell<Value>,
}

impl DemoDirectory {
    /// Creates the directory, with settings for four tool servers.
    pub(crate) fn make(is_open: bool) -> anyhow::Result<DemoDirectory> {
        let temporary = std::env::temp_dir();
        let made = tempfile::Builder::new().prefix("rutter-demo-").tempdir();
        let made = made.with_context(|| format!("cannot create a directory in {}", temporary.display()))?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let path = made.path().canonicalize()?;
        for folder in [DATA, TOOLS] {
            fs::create_dir(path.join(folder))?;
        }
        let quoted = |path: &Path| toml_edit::Value::from(path.display().to_string()).to_string();
        let mut settings = format!("dir = \"{DATA}\"\n");
        for server in SERVERS {
            settings += &format!(
                "\n[servers.{server}]\ncommand = {}\nargs = [\"{WORD}\", \"{server}\", {}]\ntrust = true\n",
                quoted(&program),
                quoted(&path.join(TOOLS)),
            );
        }
        fs::write(path.join(SETTINGS), settings)?;
        let processes = DemoProcesses::default();
        let is_interrupted = Arc::<AtomicBool>::default();
        clean_up_when_interrupted(processes.clone(), path.clone(), is_interrupted.clone())?;
        // From here on this module removes it.
        let _ = made.keep();
        let (server, server_answer, is_retained) = (Cell::new(0), RefCell::default(), Cell::new(false));
        Ok(DemoDirectory { path, program, processes, is_open, is_retained, is_interrupted, server, server_answer })
    }

    /// Starts a server and waits until it is ready.
    pub(crate) fn start(&self) -> anyhow::Result<u32> {
        let mut command = self.command();
        command.args(["serve", "--background", "--json"]);
        match self.is_open {
            true => command.args(["--listen", "127.0.0.1:0"]),
            false => command.args(["--no-http", "--idle", IDLE_SECONDS]),
        };
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start a server")?;
        let stdout = child.stdout.take().context("the server has no output")?;
        let pid = self.processes.add(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line).unwrap_or_default();
        if answer["ok"] != true {
            bail!("no server could be started; it says: {line}{}", self.log());
        }
        self.server_answer.replace(answer);
        self.server.set(pid);
        Ok(pid)
    }

    /// Stops the server gracefully: it signs what it wrote.
    pub(crate) fn stop(&self) -> anyhow::Result<()> {
        self.ask(&SocketRequest::Stop)?;
        let ended = self.processes.wait(self.server.get(), END_MAX)?;
        ended.with_context(|| format!("the server did not end{}", self.log()))?;
        Ok(())
    }

    /// Keeps a running server and the directory.
    pub(crate) fn keep(&self) -> anyhow::Result<()> {
        self.start()?;
        self.is_retained.set(true);
        Ok(())
    }

    /// Sends a request to the server; a refusal is a reply too.
    pub(crate) fn ask(&self, greeting: &SocketRequest) -> anyhow::Result<Value> {
        daemon::ask(&self.data(), greeting)?.with_context(|| format!("the server is gone{}", self.log()))
    }

    /// Executes a plan.
    pub(crate) fn carry_out(&self, plan: &str, inputs: Value) -> anyhow::Result<ExecutionIdentity> {
        let actor = Actor::person(OPERATOR);
        let plan = plan.to_owned();
        let answer = self.ask(&SocketRequest::Run { tenant: tenant(), actor, plan, inputs, key: None })?;
        match answer["execution"].as_str() {
            Some(id) => Ok(identity(id)),
            None => Err(CommandRefusal::from_answer(&answer).into()),
        }
    }

    /// Runs a command as a person would in this directory. Returns its exit code and its output.
    pub(crate) fn run_command(&self, words: &[&str]) -> anyhow::Result<(Option<i32>, Value)> {
        let mut child = self.command().args(words).arg("--json").stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("the command has no output")?;
        let pid = self.processes.add(child);
        let mut answer = String::new();
        BufReader::new(stdout).read_to_string(&mut answer)?;
        let status = self.processes.wait(pid, COMMAND_MAX)?.context("the command did not end")?;
        Ok((status.code(), serde_json::from_str(&answer).unwrap_or_default()))
    }

    /// This program, in this directory, without the user's settings.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("RUTTER_")) {
            command.env_remove(name);
        }
        command.current_dir(&self.path).env("XDG_CONFIG_HOME", &self.path).env("USER", OPERATOR).stdin(Stdio::null());
        match OpenOptions::new().create(true).append(true).open(self.path.join(daemon::LOG)) {
            Ok(log) => command.stderr(log),
            Err(_) => command.stderr(Stdio::null()),
        };
        command
    }

    /// The command that an agent starts to speak MCP with the server.
    pub(crate) fn mcp(&self) -> Command {
        let mut command = self.command();
        command.arg("mcp");
        command
    }

    /// Sets or clears the fault of a tool.
    pub(crate) fn set_fault(&self, tool: &str, fault: Option<DemoFault>) -> anyhow::Result<()> {
        let file = self.tools().join(fault_file(tool));
        match fault {
            Some(fault) => fs::write(file, fault.text())?,
            None => fs::remove_file(file)?,
        }
        Ok(())
    }

    pub(crate) fn call_log(&self) -> anyhow::Result<CallLogLines> {
        Ok(ToolCallLog::in_folder(&self.tools()).read()?)
    }

    pub(crate) fn archive(&self) -> anyhow::Result<SqliteArchive> {
        Ok(SqliteArchive::open(&self.data())?)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    pub(crate) fn tools(&self) -> PathBuf {
        self.path.join(TOOLS)
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.path.join(SETTINGS)
    }

    /// The last lines of the server's log, for error messages.
    pub(crate) fn log(&self) -> String {
        let message = fs::read_to_string(self.path.join(daemon::LOG)).unwrap_or_default();
        let last: Vec<&str> = message.lines().rev().take(6).collect();
        last.into_iter().rev().map(|line| format!("\n  {line}")).collect()
    }
}

impl Drop for DemoDirectory {
    fn drop(&mut self) {
        // Errors from then on are irrelevant: the process is ending.
        while self.is_interrupted.load(Ordering::Acquire) {
            thread::park();
        }
        if self.is_retained.get() {
            return self.processes.release();
        }
        // A finished demo has stopped its server; after an error there is nothing to wait for.
        self.processes.end();
        remove(&self.path);
    }
}

/// On an interrupt, kills the started processes and removes the directory.
fn clean_up_when_interrupted(
    processes: DemoProcesses,
    path: PathBuf,
    is_interrupted: Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let inside = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    drop(inside);
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
        });
        is_interrupted.store(true, Ordering::Release);
        processes.end();
        remove(&path);
        std::process::exit(CommandExit::Waiting as i32);
    });
    Ok(())
}

/// A tool whose server was just killed may still write one last file.
fn remove(path: &Path) {
    for _ in 0..100 {
        match fs::remove_dir_all(path) {
            Err(_) if path.exists() => thread::sleep(Duration::from_millis(20)),
            _ => return,
        }
    }
}

pub(crate) fn tenant() -> TenantId {
    TenantId::new("default")
}

pub(crate) fn identity(execution: &str) -> ExecutionIdentity {
    ExecutionIdentity { tenant: tenant(), execution: ExecutionId::new(execution) }
}
