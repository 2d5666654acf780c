//! A copy of the examples in which a document's commands are run with the real program.

use crate::documents::console::{Command, matches_output};
use crate::fixture::{PATIENCE, RUTTER};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct DocumentFixture {
    place: TempDir,
    /// The current directory after `cd`.
    here: PathBuf,
    /// The process started with `&`.
    behind: Option<Child>,
}

impl DocumentFixture {
    pub fn new() -> DocumentFixture {
        let place = tempfile::tempdir().unwrap();
        let delivery = place.path().join("examples/parcel");
        fs::create_dir_all(&delivery).unwrap();
        for file in fs::read_dir(crate::documents::repository().join("examples/parcel")).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), delivery.join(file.file_name())).unwrap();
        }
        let programs = place.path().join("bin");
        fs::create_dir(&programs).unwrap();
        symlink(RUTTER, programs.join("rutter")).unwrap();
        DocumentFixture { here: place.path().to_owned(), place, behind: None }
    }

    pub fn play(mut self, commands: &[Command]) {
        for command in commands {
            self.type_in(command);
        }
    }

    fn type_in(&mut self, command: &Command) {
        let line = command.line.replace("cargo run --release -- ", "rutter ");
        if let Some(folder) = line.strip_prefix("cd ") {
            self.here = self.here.join(folder);
        } else if let Some(line) = line.strip_suffix(" &") {
            let started = self.shell(&format!("exec {line}")).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            self.behind = Some(started.unwrap());
            self.until("the second step is running", |visible| visible.contains("ring  running"));
        } else if line == "kill -9 %1" {
            let mut child = self.behind.take().expect("something was started with `&`");
            child.kill().unwrap();
            child.wait().unwrap();
        } else {
            self.run(&line, command);
        }
    }

    fn run(&self, line: &str, command: &Command) {
        let line = match line.contains("EXECUTION") {
            true => line.replace("EXECUTION", &self.latest().expect("there is an execution")),
            false => line.to_owned(),
        };
        // Both to one file, as on a terminal.
        let path = self.place.path().join("said");
        let message = fs::File::create(&path).unwrap();
        let status = self.shell(&line).stdout(message.try_clone().unwrap()).stderr(message).status().unwrap();
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(status.code(), Some(command.code), "{line}\n{text}");
        if command.output.is_empty() {
            return;
        }
        let latest = self.latest().expect("there is an execution");
        let output = text.replace(&latest, "EXECUTION");
        // Log messages depend on the system.
        let lines: Vec<&str> = output.lines().filter(|line| !line.trim_start().starts_with("WARN ")).collect();
        assert!(
            matches_output(&command.output, &lines),
            "{line}\nthe document has:\n{}\nand the program printed:\n{output}",
            command.output.join("\n")
        );
    }

    /// The execution that was started last.
    fn latest(&self) -> Option<String> {
        let output = self.shell("rutter exec list --json -n 1").stderr(Stdio::null()).output().unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        Some(found["execution_id"].as_str()?.to_owned())
    }

    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(latest) = self.latest() {
                let output = self.shell(&format!("rutter exec show {latest}")).output().unwrap();
                if is_so(&String::from_utf8_lossy(&output.stdout)) {
                    return;
                }
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("waited {PATIENCE:?} until {what}");
    }

    fn shell(&self, line: &str) -> process::Command {
        let path = format!("{}:/usr/bin:/bin", self.place.path().join("bin").display());
        let mut shell = process::Command::new(Path::new("/bin/sh"));
        shell.args(["-c", line]).current_dir(&self.here).env_clear().stdin(Stdio::null());
        shell.env("PATH", path).env("HOME", self.place.path()).env("USER", "operator").env("LC_ALL", "C.UTF-8");
        shell
    }
}

impl Drop for DocumentFixture {
    fn drop(&mut self) {
        // A server started by a client outlives it; mostly there is none.
        let _ = self.shell("rutter stop").output();
        if let Some(mut child) = self.behind.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
