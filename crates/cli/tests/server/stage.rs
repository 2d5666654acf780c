//! A directory with settings and a plan, and the real program in it.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take that has to happen.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A program that says it was called, and ends when somebody opens the gate.
const SETTINGS: &str = r#"
dir = "data"
[server.tokens.other]
role = "agent"
env = "OTHER_TOKEN"
[servers.gone]
command = "/no/such/program"
[commands.gate.tools.pass]
description = "Waits until the gate is open"
argv = ["/bin/sh", "-c", "echo called >> calls; while [ ! -e open ]; do sleep 0.05; done; echo passed"]
result = "text"
safety = "idempotent"
[commands.gate.tools.ask]
description = "Needs a person's yes"
argv = ["/bin/sh", "-c", "echo asked >> calls; echo passed"]
result = "text"
"#;
pub const PLAN: &str = "name: slow\ngoal: pass the gate\nsteps:\n  - { id: pass, tool: gate.pass }\n";
pub const ASKING: &str =
    "name: asking\ngoal: ask first\nsteps:\n  - { id: ask, tool: gate.ask, approval: { required: true } }\n";
pub const OTHER_TOKEN: &str = "other_0123456789abcdef0123456789";

pub struct Stage {
    place: TempDir,
    /// Where the database is.
    pub data: PathBuf,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with_data("data")
    }

    /// The same with a data directory of another name.
    pub fn with_data(name: &str) -> Stage {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("rutter.toml"), SETTINGS.replace("\"data\"", &format!("{name:?}")))
            .unwrap();
        fs::write(place.path().join("plan.yaml"), PLAN).unwrap();
        fs::write(place.path().join("asking.yaml"), ASKING).unwrap();
        let data = place.path().join(name);
        Stage { place, data }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rutter"));
        command.args(words).current_dir(self.place.path()).env_clear().env("HOME", self.place.path());
        // Every server gets an address of its own.
        command.env("USER", "operator").env("RUTTER_LISTEN", "127.0.0.1:0").env("OTHER_TOKEN", OTHER_TOKEN);
        command.env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub fn rutter(&self, words: &[&str]) -> Output {
        ended(self.command(words).spawn().unwrap())
    }

    pub fn json(&self, words: &[&str]) -> Value {
        let output = self.rutter(words);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", told(&output)))
    }

    /// How often the programs of the gate were called.
    pub fn calls(&self) -> usize {
        fs::read_to_string(self.data.join("commands/gate/calls")).unwrap_or_default().lines().count()
    }

    pub fn open_the_gate(&self) {
        fs::write(self.data.join("commands/gate/open"), "").unwrap();
    }

    /// The process that has the database.
    pub fn owner(&self) -> Option<u32> {
        fs::read_to_string(self.data.join("rutter.lock"))
            .ok()?
            .trim()
            .parse()
            .ok()
            .filter(|pid| is_alive(*pid))
    }

    pub fn execution(&self) -> String {
        let listed = self.json(&["exec", "list", "--json", "-n", "1"]);
        listed["execution_id"].as_str().unwrap().to_owned()
    }

    pub fn status(&self, execution: &str) -> String {
        self.json(&["exec", "show", execution, "--json"])["status"].as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Stage {
    /// Servers outlive those who started them; this one must not outlive the test.
    fn drop(&mut self) {
        if let Some(pid) = self.owner() {
            end(pid, "-KILL");
        }
    }
}

pub fn end(pid: u32, signal: &str) {
    let sent = Command::new("/bin/kill").args([signal, &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()) || !is_alive(pid), "{pid} cannot be ended");
}

/// Those that have ended and nobody waited for do not count.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Servers that were started from a directory and are still there.
pub fn servers_in(directory: &Path) -> Vec<u32> {
    let directory = directory.canonicalize().unwrap();
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let serves = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"serve")
            && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory)
    };
    processes.filter(serves).collect()
}

/// What a process said, once it has ended by itself.
pub fn ended(mut child: Child) -> Output {
    let until = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("it goes on for ever: {}", told(&child.wait_with_output().unwrap()));
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

pub fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it did not happen within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
