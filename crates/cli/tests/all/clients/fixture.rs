//! A directory with its own Rutter: settings, a tool server that counts, and the server process.

pub use crate::fixture::PATIENCE;
use crate::fixture::{RUTTER, effects_script};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct ClientFixture {
    folder: Option<TempDir>,
    served: Option<Served>,
    /// The name of the tool server, and more lines for `[server]`.
    server: String,
    listener: String,
}

/// A server that listens for HTTP.
pub struct Served {
    process: Child,
    pub url: String,
    pub token_file: String,
}

impl ClientFixture {
    /// With `dock.load`, which counts, and `dock.wait`, which takes until it is cancelled.
    pub fn new() -> ClientFixture {
        let crates = json!({ "type": "object", "properties": { "crate": { "type": "string" } } });
        let world = json!({
            "tools": {
                // Long enough for a progress report that does not arrive together with the response.
                "dock.load": { "kind": "once", "input": crates, "takes_ms": 1500 },
                "dock.wait": { "kind": "read", "input": crates },
            },
            "faults": { "dock.wait": ["hang_until_cancelled"] },
        });
        ClientFixture::with("dock", &world, "", "")
    }

    /// With the tools of a world behind one server, more lines for `[server]`, and more sections.
    pub fn with(server: &str, world: &Value, listener: &str, sections: &str) -> ClientFixture {
        let folder = Some(tempfile::tempdir().unwrap());
        let (server, listener) = (server.to_owned(), listener.to_owned());
        let fixture = ClientFixture { folder, served: None, server, listener };
        fixture.configure(world, sections);
        fixture
    }

    /// Writes the tools and the settings; the next server reads them.
    pub fn configure(&self, world: &Value, sections: &str) {
        let at = |name: &str| self.path(name).display().to_string();
        fs::write(at("world.json"), world.to_string()).unwrap();
        let arguments = [effects_script(), "stdio".into(), "--server".into(), self.server.clone()];
        let files = ["--world".into(), at("world.json"), "--log".into(), at("log")];
        let arguments: Vec<String> = arguments.into_iter().chain(files).collect();
        let (server, listener) = (&self.server, &self.listener);
        // Any port: the servers of several directories run in parallel.
        let settings = format!(
            "dir = \"data\"\n[server]\nlisten = \"127.0.0.1:0\"\n{listener}\n[servers.{server}]\ncommand = \"python3\"\n\
             args = {}\ntrust = true\n{sections}",
            json!(arguments)
        );
        fs::write(at("rutter.toml"), settings).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.as_ref().expect("it is removed only at the end").path().join(name)
    }

    /// The command that a client starts over stdio.
    pub fn front(&self) -> Vec<String> {
        let (data, settings) = (self.path("data"), self.path("rutter.toml"));
        let words = ["mcp", "--dir", data.to_str().unwrap(), "--config", settings.to_str().unwrap()];
        std::iter::once(RUTTER).chain(words).map(str::to_owned).collect()
    }

    /// Starts to listen for HTTP, if it does not yet.
    pub fn serve(&mut self) -> &Served {
        let started = || {
            let mut command = self.rutter(&["serve", "--listen", "127.0.0.1:0", "--json"]);
            let log = OpenOptions::new().append(true).create(true).open(self.path("served.log")).unwrap();
            let mut process = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("it printed {line:?}"));
            let text = |name: &str| answer[name].as_str().unwrap().to_owned();
            Served { process, url: text("mcp"), token_file: self.path(&text("token_file")).display().to_string() }
        };
        if self.served.is_none() {
            self.served = Some(started());
        }
        self.served()
    }

    /// The server that listens for HTTP.
    pub fn served(&self) -> &Served {
        self.served.as_ref().expect("it was started")
    }

    /// Ends the server as a failure of the machine would.
    pub fn kill(&mut self) {
        if let Some(mut served) = self.served.take() {
            served.process.kill().unwrap();
            served.process.wait().unwrap();
        }
    }

    /// Ends the server in order, also one that a client started.
    pub fn stop(&mut self) {
        self.end();
        if let Some(mut served) = self.served.take() {
            served.process.wait().unwrap();
        }
    }

    pub fn rutter(&self, words: &[&str]) -> Command {
        rutter(&self.path(""), words)
    }

    /// The process that owns the database.
    pub fn pid(&self) -> String {
        fs::read_to_string(self.path("data/rutter.lock")).unwrap_or_default().trim().to_owned()
    }

    /// How many log lines of this kind a tool has: `call`, `effect`, `cancelled`.
    pub fn count(&self, what: &str, tool: &str) -> usize {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line[what] == tool).count()
    }

    /// Stops the server, which must never have panicked, and verifies the journal.
    pub fn close(mut self) {
        self.leave();
        let verified = self.rutter(&["journal", "verify", "--projections"]).output().unwrap();
        let text = String::from_utf8_lossy(&verified.stdout);
        assert_eq!(verified.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&verified.stderr));
    }

    /// Stops the server, even if a client started it; it must never have panicked.
    pub fn leave(&mut self) {
        self.end();
        for name in ["data/server.log", "served.log"] {
            let log = fs::read_to_string(self.path(name)).unwrap_or_default();
            assert!(!log.contains("panicked"), "{log}");
        }
    }

    fn end(&mut self) {
        let pid = self.pid();
        if self.rutter(&["stop"]).output().is_ok_and(|output| output.status.success()) {
            // One that has ended and was started by a client is a zombie, without words.
            let words = Path::new("/proc").join(pid).join("cmdline");
            let runs = || fs::read(&words).is_ok_and(|words| !words.is_empty());
            let deadline = Instant::now() + PATIENCE;
            while runs() && !self.has_ended() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(10));
            }
        }
    }

    fn has_ended(&mut self) -> bool {
        self.served.as_mut().is_some_and(|served| served.process.try_wait().unwrap().is_some())
    }
}

impl Drop for ClientFixture {
    fn drop(&mut self) {
        if thread::panicking() {
            self.end();
        }
        if let Some(served) = &mut self.served {
            // It may have ended already.
            let _ = served.process.kill();
            let _ = served.process.wait();
        }
        if thread::panicking()
            && let Some(folder) = self.folder.take()
        {
            eprintln!("everything of this test is in {}", folder.keep().display());
        }
    }
}

/// The program in a folder, run by the operator.
pub fn rutter(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(RUTTER);
    command.args(words).current_dir(folder).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("USER", "operator");
    command
}
