//! Two processes on one database: one has it, the other asks, watches, and goes on when the first is gone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A program that takes its time and may be repeated.
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_rutter"));
    command.args(words).current_dir(directory).env_clear().env("HOME", directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process that carries the slow plan out, and the execution once it is on record.
#[allow(clippy::zombie_processes, reason = "whoever gets it waits for it")]
fn under_way() -> (TempDir, Child, String) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("rutter.toml"), SETTINGS).unwrap();
    fs::write(directory.path().join("plan.yaml"), PLAN).unwrap();
    let mut owner = rutter(directory.path(), &["run", "plan.yaml"]).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let listed = rutter(directory.path(), &["exec", "list", "--json"]).output().unwrap();
        let line = String::from_utf8(listed.stdout).unwrap();
        let told = line.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
        if let Some(execution) = told.as_ref().and_then(|told| told["execution_id"].as_str()) {
            return (directory, owner, execution.to_owned());
        }
        if Instant::now() > until {
            owner.kill().unwrap();
            owner.wait().unwrap();
            panic!("nothing was started: {line}");
        }
    }
}

/// What a process said, once it has ended by itself.
fn ended(mut child: Child) -> Output {
    let until = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("it goes on for ever: {}", told(&child.wait_with_output().unwrap()));
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn whoever_watches_carries_on_when_the_process_that_did_is_killed() {
    let (directory, mut owner, execution) = under_way();
    let mut watcher = rutter(directory.path(), &["exec", "watch", &execution]).spawn().unwrap();
    assert_stays(&mut watcher);
    owner.kill().unwrap();
    owner.wait().unwrap();
    let output = ended(watcher);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn a_request_finds_somebody_to_hear_it_although_the_one_who_should_has_no_ears() {
    let (directory, mut owner, execution) = under_way();
    // So it is while a process starts, and while it comes to its end.
    fs::remove_file(directory.path().join("data/rutter.sock")).unwrap();
    let words = ["exec", "pause", &execution, "--reason", "lunch", "--json", "--no-wait"];
    let mut asking = rutter(directory.path(), &words).spawn().unwrap();
    assert_stays(&mut asking);
    owner.kill().unwrap();
    owner.wait().unwrap();
    let output = ended(asking);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let shown = rutter(directory.path(), &["journal", "show", &execution]).output().unwrap();
    assert!(told(&shown).contains("lunch"), "{}", told(&shown));
}

/// It does not give up within a time in which it usually has found out that the database is taken.
fn assert_stays(child: &mut Child) {
    let until = Instant::now() + Duration::from_millis(700);
    while Instant::now() < until {
        assert!(child.try_wait().unwrap().is_none(), "it gave up");
        thread::sleep(Duration::from_millis(5));
    }
}
