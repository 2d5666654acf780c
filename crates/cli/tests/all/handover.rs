//! Two processes on one database: one owns it, the other sends commands, watches, and takes over from the owner.
#![cfg(target_os = "linux")]

use crate::fixture::{RUTTER, ended, output_text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A slow program that may be repeated.
const SETTINGS: &str = r#"
dir = "data"
[commands.clock.tools.wait]
description = "Lets some time pass"
argv = ["/bin/sleep", "2"]
result = "text"
safety = "idempotent"
"#;
const PLAN: &str = "name: slow\ngoal: take a while\nsteps:\n  - { id: first, tool: clock.wait }\n  \
                    - { id: second, tool: clock.wait, depends_on: [first] }\n";

fn rutter(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(RUTTER);
    command.args(words).current_dir(directory).env_clear().env("HOME", directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process that executes the slow plan, and the execution once it is recorded.
#[allow(clippy::zombie_processes, reason = "the caller waits for it")]
fn under_way() -> (TempDir, Child, String) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("rutter.toml"), SETTINGS).unwrap();
    fs::write(directory.path().join("plan.yaml"), PLAN).unwrap();
    let mut owner = rutter(directory.path(), &["run", "plan.yaml"]).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let listed = rutter(directory.path(), &["exec", "list", "--json"]).output().unwrap();
        let line = String::from_utf8(listed.stdout).unwrap();
        let answer = line.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
        if let Some(execution) = answer.as_ref().and_then(|report| report["execution_id"].as_str()) {
            return (directory, owner, execution.to_owned());
        }
        if Instant::now() > until {
            owner.kill().unwrap();
            owner.wait().unwrap();
            panic!("nothing was started: {line}");
        }
    }
}

#[test]
fn a_watching_process_takes_over_when_the_owner_is_killed() {
    let (directory, mut owner, execution) = under_way();
    let mut watcher = rutter(directory.path(), &["exec", "watch", &execution]).spawn().unwrap();
    assert_stays(&mut watcher);
    owner.kill().unwrap();
    owner.wait().unwrap();
    let output = ended(watcher);
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
}

#[test]
fn a_command_waits_until_a_process_without_socket_is_gone() {
    let (directory, mut owner, execution) = under_way();
    // As while a process starts, and while it stops.
    fs::remove_file(directory.path().join("data/rutter.sock")).unwrap();
    let words = ["exec", "pause", &execution, "--reason", "lunch", "--json", "--no-wait"];
    let mut asking = rutter(directory.path(), &words).spawn().unwrap();
    assert_stays(&mut asking);
    owner.kill().unwrap();
    owner.wait().unwrap();
    let output = ended(asking);
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    let visible = rutter(directory.path(), &["journal", "show", &execution]).output().unwrap();
    assert!(output_text(&visible).contains("lunch"), "{}", output_text(&visible));
}

/// It keeps waiting longer than it takes to find out that the database is in use.
fn assert_stays(child: &mut Child) {
    let until = Instant::now() + Duration::from_millis(700);
    while Instant::now() < until {
        assert!(child.try_wait().unwrap().is_none(), "it gave up");
        thread::sleep(Duration::from_millis(5));
    }
}
