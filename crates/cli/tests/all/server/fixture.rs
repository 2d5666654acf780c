//! A directory with settings and a plan, and the real program in it.

use crate::fixture::RUTTER;
pub use crate::fixture::{PATIENCE, ended, output_text, until};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A program that logs its call, and ends when the gate is opened.
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
description = "Needs a person's approval"
argv = ["/bin/sh", "-c", "echo asked >> calls; echo passed"]
result = "text"
"#;
pub const PLAN: &str = "name: slow\ngoal: pass the gate\nsteps:\n  - { id: pass, tool: gate.pass }\n";
pub const ASKING: &str =
    "name: asking\ngoal: ask first\nsteps:\n  - { id: ask, tool: gate.ask, approval: { required: true } }\n";
pub const OTHER_TOKEN: &str = "other_0123456789abcdef0123456789";

pub struct ServerFixture {
    place: TempDir,
    /// The directory of the database.
    pub data: PathBuf,
}

impl ServerFixture {
    pub fn new() -> ServerFixture {
        ServerFixture::with_data("data")
    }

    /// The same with another name of the data directory.
    pub fn with_data(name: &str) -> ServerFixture {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("rutter.toml"), SETTINGS.replace("\"data\"", &format!("{name:?}"))).unwrap();
        fs::write(place.path().join("plan.yaml"), PLAN).unwrap();
        fs::write(place.path().join("asking.yaml"), ASKING).unwrap();
        let data = place.path().join(name);
        ServerFixture { place, data }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(RUTTER);
        command.args(words).current_dir(self.place.path()).env_clear().env("HOME", self.place.path());
        // Every server gets its own address.
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
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output_text(&output)))
    }

    /// How often the programs of the gate were called.
    pub fn calls(&self) -> usize {
        fs::read_to_string(self.data.join("commands/gate/calls")).unwrap_or_default().lines().count()
    }

    pub fn open_the_gate(&self) {
        fs::write(self.data.join("commands/gate/open"), "").unwrap();
    }

    /// The process that owns the database.
    pub fn owner(&self) -> Option<u32> {
        fs::read_to_string(self.data.join("rutter.lock")).ok()?.trim().parse().ok().filter(|pid| is_alive(*pid))
    }

    pub fn execution(&self) -> String {
        let listed = self.json(&["exec", "list", "--json", "-n", "1"]);
        listed["execution_id"].as_str().unwrap().to_owned()
    }

    pub fn status(&self, execution: &str) -> String {
        self.json(&["exec", "show", execution, "--json"])["status"].as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for ServerFixture {
    /// Servers outlive their clients; this one must not outlive the test.
    fn drop(&mut self) {
        if let Some(pid) = self.owner() {
            end(pid, "-KILL");
        }
    }
}

pub fn end(pid: u32, signal: &str) {
    let sent = Command::new("/bin/kill").args([signal, &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()) || !is_alive(pid), "{pid} cannot be killed");
}

/// Zombies do not count.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Servers that were started from a directory and still run.
pub fn servers_in(directory: &Path) -> Vec<u32> {
    let directory = directory.canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let serves = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"serve")
            && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory)
    };
    processes.filter(serves).collect()
}
