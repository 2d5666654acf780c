//! The setting of a scenario: servers with real effects, their `rutter.toml`, and the real program.

use crate::fixture::RUTTER;
pub use crate::fixture::{PATIENCE, effects_script, until};
use crate::scenarios::answer::Answer;
use crate::scenarios::settings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// MCP over the pipes of a child process.
    Stdio,
    Http,
    Command,
}

/// A directory with everything of one scenario. It is kept, and printed, if the test fails.
pub struct ScenarioFixture {
    place: Option<TempDir>,
    pub world: Value,
    servers: BTreeMap<String, Kind>,
    /// More lines for a server or a tool in `rutter.toml`, by name.
    pub extra: BTreeMap<String, String>,
    processes: Vec<Child>,
}

/// A command that still runs.
pub struct Running {
    child: Option<Child>,
    stdout: PathBuf,
    stderr: PathBuf,
    victim: PathBuf,
}

impl ScenarioFixture {
    pub fn new() -> ScenarioFixture {
        let place = tempfile::tempdir().unwrap();
        let world = json!({ "tools": {}, "faults": {}, "victim": place.path().join("victim") });
        ScenarioFixture {
            place: Some(place),
            world,
            servers: BTreeMap::new(),
            extra: BTreeMap::new(),
            processes: Vec::new(),
        }
    }

    /// A server with tools of the examples; they behave according to their definitions.
    pub fn server(&mut self, name: &str, kind: Kind, tools: &[&str]) -> &mut ScenarioFixture {
        let catalog: Value = serde_json::from_str(&fs::read_to_string(example("tools.json")).unwrap()).unwrap();
        for tool in tools {
            let name = format!("{name}.{tool}");
            let defined = catalog["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name);
            let defined = defined.unwrap_or_else(|| panic!("the examples have no {name}"));
            let hint = |hint: &str| defined["annotations"][hint] == true;
            let kind = match () {
                () if hint("readOnlyHint") => "read",
                () if defined.get("key_parameter").is_some() => "keyed",
                () if hint("idempotentHint") => "idempotent",
                () => "once",
            };
            self.tool(
                &name,
                json!({
                    "kind": kind, "description": defined["description"], "input": defined["inputSchema"],
                    "output": defined["outputSchema"], "annotations": defined["annotations"],
                    "safety": defined["safety"], "key_parameter": defined["key_parameter"],
                }),
            );
        }
        self.servers.insert(name.to_owned(), kind);
        self
    }

    /// A test's own tool, or more fields of an existing one.
    pub fn tool(&mut self, name: &str, about: Value) -> &mut ScenarioFixture {
        let tools = self.world["tools"].as_object_mut().unwrap();
        let tool = tools.entry(name).or_insert_with(|| json!({}));
        for (field, value) in about.as_object().unwrap() {
            tool[field] = value.clone();
        }
        self
    }

    /// The faults of a tool's calls, in order.
    pub fn faults(&mut self, tool: &str, faults: Value) -> &mut ScenarioFixture {
        self.world["faults"][tool] = faults;
        self
    }

    /// Writes all files and starts the servers of the scenario.
    pub fn open(&mut self) -> &mut ScenarioFixture {
        self.rewrite_world();
        let mut ports = BTreeMap::new();
        for (server, _) in self.servers.clone().iter().filter(|(_, kind)| **kind == Kind::Http) {
            let port_file = self.path(&format!("{server}.port"));
            let mut command = Command::new(python());
            command.args(self.arguments("http", server)).arg("--port-file").arg(&port_file);
            self.processes.push(command.stdin(Stdio::null()).spawn().unwrap());
            until("the HTTP server listens", || port_file.exists());
            ports.insert(server.clone(), fs::read_to_string(port_file).unwrap());
        }
        let text = settings::written(self, &self.servers, &ports);
        fs::write(self.path("rutter.toml"), text).unwrap();
        self
    }

    /// Writes the tools again; servers reload them.
    pub fn rewrite_world(&self) {
        let (path, part) = (self.path("world.json"), self.path("world.part"));
        fs::write(&part, self.world.to_string()).unwrap();
        fs::rename(part, path).unwrap();
    }

    /// The arguments of the script that serves as a server.
    pub fn arguments(&self, mode: &str, server: &str) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        let words = [mode, "--server", server, "--world", &path("world.json"), "--log", &path("log")];
        std::iter::once(effects_script()).chain(words.map(str::to_owned)).collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.as_ref().expect("it is removed only at the end").path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        name.to_owned()
    }

    /// Runs the program to its end.
    pub fn rutter(&self, arguments: &[&str]) -> Answer {
        self.start(arguments).wait()
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        let number = fs::read_dir(self.path("")).unwrap().count();
        let (stdout, stderr) = (self.path(&format!("{number}.out")), self.path(&format!("{number}.err")));
        let mut command = Command::new(RUTTER);
        command.args(arguments).current_dir(self.path("")).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("RUTTER_DIR", "data");
        command.env("USER", "operator").env("LC_ALL", "C.UTF-8");
        command.stdout(fs::File::create(&stdout).unwrap()).stderr(fs::File::create(&stderr).unwrap());
        let child = command.spawn().unwrap();
        fs::write(self.path("victim.part"), child.id().to_string()).unwrap();
        fs::rename(self.path("victim.part"), self.path("victim")).unwrap();
        Running { child: Some(child), stdout, stderr, victim: self.path("victim") }
    }

    /// The last execution that was started.
    pub fn execution(&self) -> String {
        let listed = self.rutter(&["exec", "list", "--json", "-n", "1"]);
        listed.json()["execution_id"].as_str().unwrap().to_owned()
    }

    /// The whole log of the servers, in order.
    pub fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The number of log lines of a kind; cheap enough to poll.
    pub fn count(&self, kind: &str) -> usize {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(&format!("{{\"{kind}\": "))).count()
    }

    /// The tools that took effect, in order.
    pub fn effects(&self) -> Vec<String> {
        let named = |line: &Value| Some(format!("{}.{}", line["server"].as_str()?, line["effect"].as_str()?));
        self.log().iter().filter_map(named).collect()
    }

    /// The lines of one kind about one tool: `effect`, `call`, `seen`, `cancelled`.
    pub fn lines(&self, kind: &str, tool: &str) -> Vec<Value> {
        let (server, tool) = tool.split_once('.').unwrap();
        self.log().into_iter().filter(|line| line[kind] == tool && line["server"] == server).collect()
    }

    /// Faults begin again with the next call of each tool.
    pub fn forget_faults(&self) {
        for entry in fs::read_dir(self.path("")).unwrap().map(Result::unwrap) {
            if entry.file_name().to_string_lossy().ends_with(".count") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }

    /// Verifies the journal, here and as an export.
    pub fn verify(&self, execution: &str) {
        let verified = self.rutter(&["journal", "verify", "--projections", "--require", "v1", "--json"]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
        let key = self.rutter(&["journal", "key"]);
        let out = ["--out", "export.jsonl", "--force"];
        let exported = self.rutter(&[&["journal", "export", "--execution", execution], &out[..]].concat());
        assert_eq!((key.code, exported.code), (Some(0), Some(0)), "{key:?} {exported:?}");
        let elsewhere = tempfile::tempdir().unwrap();
        fs::copy(self.path("export.jsonl"), elsewhere.path().join("export.jsonl")).unwrap();
        let mut command = Command::new(RUTTER);
        command.args(["journal", "verify", "--export", "export.jsonl", "--require", "v1", "--key", key.stdout.trim()]);
        let output = command.current_dir(elsewhere.path()).env_clear().output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for ScenarioFixture {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // It may have ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
        if thread::panicking()
            && let Some(place) = self.place.take()
        {
            eprintln!("everything of this scenario is in {}", place.keep().display());
        }
    }
}

impl Running {
    /// The execution it has started, as soon as it is printed.
    pub fn execution(&self) -> String {
        let named = || {
            let message = fs::read_to_string(&self.stderr).unwrap();
            let line = message.lines().find(|line| line.starts_with("exec_") && message.contains('\n'));
            line.map(str::to_owned)
        };
        until("an execution is started", || named().is_some());
        named().expect("it was there a moment ago")
    }

    pub fn wait(mut self) -> Answer {
        let mut child = self.child.take().expect("it is awaited once");
        let deadline = Instant::now() + PATIENCE * 3;
        let please = self.victim.with_extension("kill");
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if fs::remove_file(&please).is_ok() {
                child.kill().unwrap();
            }
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the program did not end: {}", fs::read_to_string(&self.stderr).unwrap());
            }
            thread::sleep(Duration::from_millis(5));
        };
        Answer {
            code: status.code(),
            stdout: fs::read_to_string(&self.stdout).unwrap(),
            stderr: fs::read_to_string(&self.stderr).unwrap(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A file of the examples.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// The interpreter itself: the one in the PATH may be a script that searches for it each time.
pub fn python() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let named = std::env::var_os("RUTTER_PYTHON").unwrap_or_else(|| "python3".into());
        let output = Command::new(named).args(["-c", "import sys; print(sys.executable)"]).output();
        let output = output.expect("the scenarios need python3 in the PATH, or its path in RUTTER_PYTHON");
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).canonicalize().unwrap()
    })
}
