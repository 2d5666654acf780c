//! The directory of the demo, and the server that works in it. Both go away with the demo unless they are kept.

use super::crew::Crew;
use super::tools::book::{Book, Lines};
use super::tools::{Fault, SERVERS, WORD, fault_file};
use crate::Exit;
use crate::daemon;
use crate::failure::Refusal;
use anyhow::{Context, bail};
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_server::socket::Greeting;
use rutter_store::Archive;
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

/// Who sits at the terminal, in the journals of the demo.
const OPERATOR: &str = "operator";
const SETTINGS: &str = "rutter.toml";
const DATA: &str = "data";
/// Where the tools keep their book, and are told what goes wrong.
const TOOLS: &str = "tools";
/// How long a server may take to end by itself.
const END_MAX: Duration = Duration::from_secs(10);
/// How long a command may take.
const COMMAND_MAX: Duration = Duration::from_secs(60);
/// A server whose demo was killed ends by itself after so many seconds.
const IDLE_SECONDS: &str = "120";

#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    program: PathBuf,
    pub(crate) crew: Crew,
    /// Whether it is meant to stay: others must be able to reach it then.
    is_open: bool,
    is_kept: Cell<bool>,
    is_interrupted: Arc<AtomicBool>,
    pub(crate) server: Cell<u32>,
    /// What the server said of itself when it was there.
    pub(crate) said: RefCell<Value>,
}

impl Place {
    /// Makes the directory with the settings of a newcomer who has four servers with tools.
    pub(crate) fn make(is_open: bool) -> anyhow::Result<Place> {
        let temporary = std::env::temp_dir();
        let made = tempfile::Builder::new().prefix("rutter-demo-").tempdir();
        let made = made.with_context(|| format!("cannot create a directory in {}", temporary.display()))?;
        let program = std::env::current_exe().context("this program does not know where it is")?;
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
        let crew = Crew::default();
        let is_interrupted = Arc::<AtomicBool>::default();
        clean_up_when_interrupted(crew.clone(), path.clone(), is_interrupted.clone())?;
        // From here on this file takes care of it.
        let _ = made.keep();
        let (server, said, is_kept) = (Cell::new(0), RefCell::default(), Cell::new(false));
        Ok(Place { path, program, crew, is_open, is_kept, is_interrupted, server, said })
    }

    /// Starts a server and waits until it is there.
    pub(crate) fn start(&self) -> anyhow::Result<u32> {
        let mut command = self.command();
        command.args(["serve", "--background", "--json"]);
        match self.is_open {
            true => command.args(["--listen", "127.0.0.1:0"]),
            false => command.args(["--no-http", "--idle", IDLE_SECONDS]),
        };
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start a server")?;
        let stdout = child.stdout.take().context("the server has no output")?;
        let pid = self.crew.add(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        if said["ok"] != true {
            bail!("no server could be started; it says: {line}{}", self.log());
        }
        self.said.replace(said);
        self.server.set(pid);
        Ok(pid)
    }

    /// Ends the server in good order: what it wrote is signed then.
    pub(crate) fn stop(&self) -> anyhow::Result<()> {
        self.ask(&Greeting::Stop)?;
        let ended = self.crew.wait(self.server.get(), END_MAX)?;
        ended.with_context(|| format!("the server did not end{}", self.log()))?;
        Ok(())
    }

    /// Leaves a server up and the directory in place.
    pub(crate) fn keep(&self) -> anyhow::Result<()> {
        self.start()?;
        self.is_kept.set(true);
        Ok(())
    }

    /// Says something to the server; a refusal is an answer too.
    pub(crate) fn ask(&self, greeting: &Greeting) -> anyhow::Result<Value> {
        daemon::ask(&self.data(), greeting)?.with_context(|| format!("the server is gone{}", self.log()))
    }

    /// Has a plan carried out.
    pub(crate) fn carry_out(&self, plan: &str, inputs: Value) -> anyhow::Result<Identity> {
        let actor = Actor::person(OPERATOR);
        let plan = plan.to_owned();
        let answer = self.ask(&Greeting::Run { tenant: tenant(), actor, plan, inputs, key: None })?;
        match answer["execution"].as_str() {
            Some(id) => Ok(identity(id)),
            None => Err(Refusal::told(&answer).into()),
        }
    }

    /// Types a command, as a person would in this directory. Its exit code, and what it answers.
    pub(crate) fn type_in(&self, words: &[&str]) -> anyhow::Result<(Option<i32>, Value)> {
        let mut child = self.command().args(words).arg("--json").stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("the command has no output")?;
        let pid = self.crew.add(child);
        let mut answer = String::new();
        BufReader::new(stdout).read_to_string(&mut answer)?;
        let status = self.crew.wait(pid, COMMAND_MAX)?.context("the command did not end")?;
        Ok((status.code(), serde_json::from_str(&answer).unwrap_or_default()))
    }

    /// This program, in this directory, with nobody else's settings.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("RUTTER_")) {
            command.env_remove(name);
        }
        command
            .current_dir(&self.path)
            .env("XDG_CONFIG_HOME", &self.path)
            .env("USER", OPERATOR)
            .stdin(Stdio::null());
        match OpenOptions::new().create(true).append(true).open(self.path.join(daemon::LOG)) {
            Ok(log) => command.stderr(log),
            Err(_) => command.stderr(Stdio::null()),
        };
        command
    }

    /// What an agent starts to speak MCP with the server.
    pub(crate) fn mcp(&self) -> Command {
        let mut command = self.command();
        command.arg("mcp");
        command
    }

    /// From now on, or no longer.
    pub(crate) fn set_fault(&self, tool: &str, fault: Option<Fault>) -> anyhow::Result<()> {
        let file = self.tools().join(fault_file(tool));
        match fault {
            Some(fault) => fs::write(file, fault.text())?,
            None => fs::remove_file(file)?,
        }
        Ok(())
    }

    pub(crate) fn book(&self) -> anyhow::Result<Lines> {
        Ok(Book::in_folder(&self.tools()).read()?)
    }

    pub(crate) fn archive(&self) -> anyhow::Result<Archive> {
        Ok(Archive::open(&self.data())?)
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

    /// The last the server said, for whoever has to find out why something broke.
    pub(crate) fn log(&self) -> String {
        let said = fs::read_to_string(self.path.join(daemon::LOG)).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(6).collect();
        last.into_iter().rev().map(|line| format!("\n  {line}")).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What goes wrong from then on is of no interest: the process is being ended.
        while self.is_interrupted.load(Ordering::Acquire) {
            thread::park();
        }
        if self.is_kept.get() {
            return self.crew.let_go();
        }
        // A story that was told to its end has ended its server; where it broke off there is nothing to wait for.
        self.crew.end();
        remove(&self.path);
    }
}

/// Kills what was started and removes what was written when somebody wants the demo to end.
fn clean_up_when_interrupted(
    crew: Crew,
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
        crew.end();
        remove(&path);
        std::process::exit(Exit::Waiting as i32);
    });
    Ok(())
}

/// A tool whose server was just killed may write one last file meanwhile.
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

pub(crate) fn identity(execution: &str) -> Identity {
    Identity { tenant: tenant(), execution: ExecutionId::new(execution) }
}
